import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "fs"
import { tmpdir } from "os"
import { join } from "path"
import { createProvider, getAvailableProviders } from ".."
import { getProviderConfig } from "../../utils/config"
import type { ProviderName } from "../../types/provider"
import { AkmProvider, sessionText, settingsFrom } from "."
import { lead, opaqueName } from "./store"

setDefaultTimeout(120_000) // every call starts akm anew

const session = (id: string, date: string, ...messages: string[]) => ({
    sessionId: id,
    messages: messages.map((content, i) => ({ role: i % 2 ? ("assistant" as const) : ("user" as const), content })),
    metadata: { date },
})
const SESSIONS = [
    session("answer_1", "2024-03-01", "I bought an oboe in Ghent.", "Congratulations on the oboe!"),
    session("filler_2", "2024-03-09", "Which rivers meet at Koblenz?", "The Moselle and the Rhine."),
    session("filler_3", "2024-04-02", "How do I remove candle wax?", "Cool it, then scrape."),
]

describe("without akm", () => {
    test("is registered", () => {
        expect(getAvailableProviders()).toContain("akm" as ProviderName)
        expect(createProvider("akm" as ProviderName)).toBeInstanceOf(AkmProvider)
        expect(getProviderConfig("akm")).toEqual({ apiKey: "" })
    })
    test("names say nothing and differ by container", () => {
        expect(opaqueName("q1-run", "answer_1")).toMatch(/^m[0-9a-f]{12}$/)
        expect(opaqueName("q1-run", "answer_1")).not.toBe(opaqueName("q2-run", "answer_1"))
    })
    test("a session's text has its date and no id", () => {
        expect(sessionText(SESSIONS[0])).toBe("[2024-03-01]\nuser: I bought an oboe in Ghent.\nassistant: Congratulations on the oboe!")
    })
    test("a description is whole sentences, or one cut short", () => {
        expect(lead("One. Two. Three.", 9)).toBe("One. Two.")
        expect(lead("x".repeat(300))).toHaveLength(250)
    })
    test("a setting that does not exist is refused", () => {
        expect(() => settingsFrom({ AKM_MEMORYBENCH_COMMAND: "guess" })).toThrow("one of curate, search")
    })
    test("not initialized, and a program that is not there", async () => {
        await expect(new AkmProvider().search("x", { containerTag: "c" })).rejects.toThrow("not initialized")
        const before = process.env.AKM_CLI
        process.env.AKM_CLI = "/nowhere/akm"
        await expect(new AkmProvider().initialize({ apiKey: "" })).rejects.toThrow("cannot be started")
        if (before === undefined) delete process.env.AKM_CLI
        else process.env.AKM_CLI = before
    })
})

describe.skipIf(!process.env.AKM_CLI)("with a real akm (AKM_CLI)", () => {
    const home = mkdtempSync(join(tmpdir(), "akm-memorybench-"))
    const provider = new AkmProvider()
    beforeAll(async () => {
        process.env.AKM_MEMORYBENCH_HOME = home
        await provider.initialize({ apiKey: "" })
        for (const tag of ["one", "two"]) {
            const listed = tag === "one" ? SESSIONS : SESSIONS.slice(1)
            for (const each of listed) await provider.ingest([each], { containerTag: tag })
            await provider.awaitIndexing({ documentIds: [] }, tag)
        }
    }, 120_000)
    afterAll(() => rmSync(home, { recursive: true, force: true }))

    test("finds the session, with its text and date", async () => {
        const found = await provider.search("Where did I buy the oboe?", { containerTag: "one", limit: 10 })
        expect(found[0].memory).toContain("oboe in Ghent")
        expect(found[0].date).toBe("2024-03-01")
    })
    test("containers do not see each other", async () => {
        const found = await provider.search("Where did I buy the oboe?", { containerTag: "two", limit: 10 })
        expect(found.every(hit => !hit.memory.includes("Ghent"))).toBe(true)
    })
    test("a session that comes again is one document", async () => {
        await provider.ingest([SESSIONS[1]], { containerTag: "two" })
        await provider.awaitIndexing({ documentIds: [] }, "two")
    })
    test("questions that look like options or paths are questions", async () => {
        for (const odd of ["--help", "-x", "memories/", "", "\"quoted\" AND (oboe)"]) {
            expect(Array.isArray(await provider.search(odd, { containerTag: "one", limit: 3 }))).toBe(true)
        }
    })
    test("no id of the benchmark is stored", () => {
        const files = readdirSync(home, { recursive: true }).map(String).filter(file => file.endsWith(".md"))
        expect(files).toHaveLength(5)
        for (const file of files) expect(file + readFileSync(join(home, file), "utf8")).not.toMatch(/answer_|filler_/)
    })
    test("cleared is gone", async () => {
        await provider.clear("two")
        await expect(provider.awaitIndexing({ documentIds: [] }, "two")).resolves.toBeUndefined()
        expect(readdirSync(home)).toHaveLength(1)
        expect(existsSync(home)).toBe(true)
    })
})
