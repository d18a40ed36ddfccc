import { createHash } from "crypto"
import { spawn } from "child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "fs"
import { join, resolve } from "path"

/** How akm is used; all of it belongs beside every number. */
export interface AkmSettings {
    /** The akm executable. */
    executable: string
    /** Folder that holds one store per container. */
    home: string
    /** `curate` copes with whole questions; `search` of akm 0.9.0 needs every word to match. */
    command: "curate" | "search"
    /** What goes into a document's description: its leading sentences, or nothing. */
    synthesis: "lead" | "off"
}

export interface AkmHit {
    name: string
    score: number | null
}

const BUNDLE = "bench"
const LEAD_CHARS = 250
const TIMEOUT_MS = 120_000
const BUSY = 75
const KEPT = ["PATH", "LANG", "SSL_CERT_FILE", "SystemRoot"]
/** Left out again where an akm does not know them. */
const OPTIONAL_FLAGS = [["--shape", "agent"], ["--no-track-usage"], ["--no-project-context"]]

export class AkmError extends Error {}

function digest(text: string, length: number): string {
    return createHash("sha256").update(text).digest("hex").slice(0, length)
}

/** A name that says nothing: session ids of a benchmark can give the answer away. */
export function opaqueName(containerTag: string, sessionId: string): string {
    return `m${digest(`${containerTag}/${sessionId}`, 12)}`
}

/** The leading sentences that fit; one that is too long is cut. */
export function lead(text: string, limit = LEAD_CHARS): string {
    const flat = text.replace(/\s+/g, " ").trim()
    let kept = ""
    for (const sentence of flat.split(/(?<=[.!?])\s+/)) {
        const longer = `${kept} ${sentence}`.trim()
        if (longer.length > limit) break
        kept = longer
    }
    return kept || (flat.length > limit ? `${flat.slice(0, limit - 1).trimEnd()}…` : flat)
}

/** One store below one folder; nothing of the user's own akm is seen or touched. */
export class AkmStore {
    readonly folder: string
    private readonly memories: string
    private dropped = new Set<string>()

    constructor(
        private readonly settings: AkmSettings,
        private readonly containerTag: string
    ) {
        this.folder = join(resolve(settings.home), digest(containerTag, 24))
        this.memories = join(this.folder, "bundle", "memories")
    }

    /** Make the store unless it is there: memorybench ingests a container session by session. */
    open(): void {
        if (existsSync(join(this.folder, "config", "config.json"))) return
        for (const name of ["config", "data", "cache", "state", "home", "tmp"]) {
            mkdirSync(join(this.folder, name), { recursive: true })
        }
        mkdirSync(this.memories, { recursive: true })
        const config = {
            configVersion: "0.9.0",
            semanticSearchMode: "off",
            registries: [],
            bundles: { [BUNDLE]: { path: join(this.folder, "bundle"), writable: true } },
            defaultBundle: BUNDLE,
            output: { format: "json", detail: "brief" },
        }
        writeFileSync(join(this.folder, "config", "config.json"), JSON.stringify(config))
    }

    write(name: string, text: string): void {
        const description = this.settings.synthesis === "lead" ? `description: ${JSON.stringify(lead(text))}\n` : ""
        const head = description ? `---\ntype: memory\n${description}---\n\n` : ""
        writeFileSync(join(this.memories, `${name}.md`), `${head}${text}\n`)
    }

    read(name: string): string {
        return readFileSync(join(this.memories, `${name}.md`), "utf8").replace(/^---\n[\s\S]*?\n---\n\n/, "").trimEnd()
    }

    names(): string[] {
        return existsSync(this.memories) ? readdirSync(this.memories).map(file => file.replace(/\.md$/, "")) : []
    }

    remove(): void {
        rmSync(this.folder, { recursive: true, force: true })
    }

    /** Index everything and check the count: an akm without SQLite says ok, exits 0 and has stored nothing. */
    async index(): Promise<number> {
        const wanted = this.names()
        if (wanted.length === 0) return 0
        const reply = await this.call(["index"])
        const verification = reply.verification as { entryCount?: unknown } | undefined
        const counted = typeof reply.totalEntries === "number" ? reply.totalEntries : verification?.entryCount
        if (counted !== wanted.length) {
            const hint = counted === 0 ? "; does a .gitignore above it name this folder?" : ""
            throw new AkmError(`akm counts ${String(counted)} entries where ${wanted.length} were written (${this.folder})${hint}`)
        }
        const found = await this.hits("search", wanted[0], 5)
        if (!found.some(hit => hit.name === wanted[0])) {
            throw new AkmError(`akm indexed ${wanted.length} documents but does not find ${wanted[0]} by its name`)
        }
        return wanted.length
    }

    /** The best documents in akm's order; a hit that was never stored here is an error. */
    async search(query: string, limit: number): Promise<AkmHit[]> {
        const text = query.trim().replace(/\/+$/, "").trim()
        if (!text) return []
        const known = new Set(this.names())
        const found = await this.hits(this.settings.command, text, limit)
        const foreign = found.find(hit => !known.has(hit.name))
        if (foreign) throw new AkmError(`akm returned ${foreign.name}, which was never stored in this container`)
        return found.slice(0, limit)
    }

    private async hits(command: "curate" | "search", query: string, limit: number): Promise<AkmHit[]> {
        for (;;) {
            const flags = OPTIONAL_FLAGS.filter(flag => !this.dropped.has(flag[0]))
            try {
                const reply = await this.call([command, "--limit", String(limit), ...flags.flat(), "--", query])
                return this.parse(reply[command === "curate" ? "items" : "hits"])
            } catch (error) {
                const unknown = flags.find(flag => error instanceof AkmError && isUnknownFlag(error.message, flag[0]))
                if (!unknown) throw error
                this.dropped.add(unknown[0])
            }
        }
    }

    private parse(listed: unknown): AkmHit[] {
        if (!Array.isArray(listed)) throw new AkmError("akm's answer holds no list of hits")
        const seen = new Map<string, AkmHit>()
        for (const item of listed as Array<{ ref?: unknown; score?: unknown }>) {
            if (typeof item.ref !== "string") throw new AkmError("akm returned a hit without a ref")
            const name = item.ref.replace(/#.*$/, "").split("/").pop() ?? ""
            if (!seen.has(name)) seen.set(name, { name, score: typeof item.score === "number" ? item.score : null })
        }
        return [...seen.values()]
    }

    private async call(args: string[]): Promise<Record<string, unknown>> {
        for (let attempt = 0; ; attempt++) {
            const done = await run(this.settings.executable, args, this.environment(), this.folder)
            if (done.code === BUSY && attempt < 5) {
                await new Promise(r => setTimeout(r, 200 * 2 ** attempt))
                continue
            }
            if (done.code !== 0) throw new AkmError(`akm ${args[0]} ended with ${done.code}: ${done.stderr.slice(0, 400)}`)
            if (/bindings file|better-sqlite3/.test(done.stderr)) throw new AkmError(`akm has no SQLite: ${done.stderr.slice(0, 300)}`)
            try {
                return JSON.parse(done.stdout)
            } catch {
                throw new AkmError(`akm ${args[0]} printed no JSON: ${done.stdout.slice(0, 200)}`)
            }
        }
    }

    private environment(): Record<string, string> {
        const kept = Object.fromEntries(KEPT.flatMap(name => (process.env[name] ? [[name, process.env[name] as string]] : [])))
        const folders = Object.fromEntries(
            ["config", "data", "cache", "state", "bundle"].map(name => [`AKM_${name.toUpperCase()}_DIR`, join(this.folder, name)])
        )
        return {
            ...kept,
            ...folders,
            HOME: join(this.folder, "home"),
            TMPDIR: join(this.folder, "tmp"),
            // Scored queries leave no trace that could move a later ranking.
            AKM_EVENT_SOURCE: "audit",
            AKM_FORCE_INIT_TMP_STASH: "1",
            TZ: "UTC",
            NO_COLOR: "1",
        }
    }
}

function isUnknownFlag(message: string, flag: string): boolean {
    return /UNKNOWN_FLAG|unknown (flag|option)/i.test(message) && message.includes(flag)
}

interface Done {
    code: number | null
    stdout: string
    stderr: string
}

export function run(program: string, args: string[], env: Record<string, string>, cwd: string): Promise<Done> {
    return new Promise((done, fail) => {
        const child = spawn(program, args, { env, cwd, stdio: ["ignore", "pipe", "pipe"], timeout: TIMEOUT_MS })
        const out: Buffer[] = []
        const err: Buffer[] = []
        child.stdout.on("data", chunk => out.push(chunk))
        child.stderr.on("data", chunk => err.push(chunk))
        child.on("error", error => fail(new AkmError(`${program} cannot be started: ${error.message}`)))
        child.on("close", code =>
            done({ code, stdout: Buffer.concat(out).toString("utf8"), stderr: Buffer.concat(err).toString("utf8") })
        )
    })
}
