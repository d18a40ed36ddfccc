import { homedir, tmpdir } from "os"
import { join } from "path"
import type { IngestOptions, IngestResult, Provider, ProviderConfig, SearchOptions } from "../../types/provider"
import type { UnifiedSession } from "../../types/unified"
import { logger } from "../../utils/logger"
import { AkmError, AkmStore, type AkmSettings, opaqueName, run } from "./store"

/** What the answering model reads for one hit. */
export interface AkmMemory {
    memory: string
    date: string | null
    score: number | null
}

function oneOf<T extends string>(name: string, value: string | undefined, allowed: readonly T[]): T {
    const chosen = (value || allowed[0]) as T
    if (!allowed.includes(chosen)) throw new AkmError(`${name}=${chosen}: one of ${allowed.join(", ")}`)
    return chosen
}

export function settingsFrom(env: Record<string, string | undefined>): AkmSettings {
    return {
        executable: env.AKM_CLI || "akm",
        // Not below the checkout: akm passes over what a .gitignore above names, and `data/` is named there.
        home: env.AKM_MEMORYBENCH_HOME || join(homedir(), ".cache", "akm-memorybench"),
        command: oneOf("AKM_MEMORYBENCH_COMMAND", env.AKM_MEMORYBENCH_COMMAND, ["curate", "search"] as const),
        synthesis: oneOf("AKM_MEMORYBENCH_SYNTHESIS", env.AKM_MEMORYBENCH_SYNTHESIS, ["lead", "off"] as const),
    }
}

/** akm through its command line: no key, no network, one store per container. */
export class AkmProvider implements Provider {
    name = "akm"
    // No prompts of its own: the default answer prompt, so that what differs is the memory.
    private settings: AkmSettings | null = null

    async initialize(_config: ProviderConfig): Promise<void> {
        const settings = settingsFrom(process.env)
        const seen = await run(settings.executable, ["--version"], { PATH: process.env.PATH ?? "", HOME: tmpdir() }, process.cwd())
        if (seen.code !== 0) throw new AkmError(`${settings.executable} --version ended with ${seen.code}: ${seen.stderr.slice(0, 300)}`)
        this.settings = settings
        const how = `${settings.command}, description ${settings.synthesis}, keyword search, a document is a session`
        logger.info(`Initialized akm provider: akm ${seen.stdout.trim()} (${how})`)
    }

    async ingest(sessions: UnifiedSession[], options: IngestOptions): Promise<IngestResult> {
        const store = this.store(options.containerTag)
        store.open()
        const documentIds: string[] = []
        for (const session of sessions) {
            const name = opaqueName(options.containerTag, session.sessionId)
            store.write(name, sessionText(session))
            documentIds.push(name)
        }
        return { documentIds }
    }

    async awaitIndexing(_result: IngestResult, containerTag: string): Promise<void> {
        await this.store(containerTag).index()
    }

    async search(query: string, options: SearchOptions): Promise<AkmMemory[]> {
        const store = this.store(options.containerTag)
        const hits = await store.search(query, options.limit ?? 10)
        return hits.map(hit => {
            const text = store.read(hit.name)
            return { memory: text, date: /^\[(.*)\]$/m.exec(text.split("\n", 1)[0])?.[1] ?? null, score: hit.score }
        })
    }

    async clear(containerTag: string): Promise<void> {
        this.store(containerTag).remove()
        logger.info("Cleared an akm store")
    }

    private store(containerTag: string): AkmStore {
        if (!this.settings) throw new Error("Provider not initialized")
        return new AkmStore(this.settings, containerTag)
    }
}

/** A session under its date, one turn a line; ids and evidence marks stay out. */
export function sessionText(session: UnifiedSession): string {
    const date = session.metadata?.formattedDate ?? session.metadata?.date
    const turns = session.messages.map(message => `${message.speaker ?? message.role}: ${message.content}`)
    return [...(date ? [`[${String(date)}]`] : []), ...turns].join("\n")
}

export default AkmProvider
