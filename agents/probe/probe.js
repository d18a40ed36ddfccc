// Last in the plugin list of every arm: one line per model request, sizes and
// digests only, no content. Written at once, so that a killed agent loses nothing.
// The probe must never break a session: every hook catches everything.
//
// Per request opencode calls, in this order: tool.definition (once per tool, not
// for titles), experimental.chat.system.transform (names the session, not the
// agent) and chat.params (names both). The line is written at chat.params; a title
// request runs beside the first main request of the same session, so waiting
// system texts are told apart by their own words.
import { createHash } from "node:crypto"
import { appendFileSync, readFileSync } from "node:fs"
import { before, charsOf } from "./shared.js"

// Defined by opencode for its own use but not offered in a headless run.
const NEVER_OFFERED = new Set(["invalid", "question"])
const TITLE_TEXT = /title generator/i

const sha256 = (text) => createHash("sha256").update(text).digest("hex")

const readContext = (file) => {
  try {
    return file ? readFileSync(file, "utf8").trim() : null
  } catch {
    return "" // expected but unreadable: no request can hold it
  }
}

export const AkmHarborProbe = async (_input, options) => {
  const file = options?.file
  const context = readContext(options?.context)
  const waiting = new Map() // session -> system texts whose request has not been named yet
  let defined = new Set()
  let lastTools = []
  let mainSession = null

  const take = (session, title) => {
    const queue = waiting.get(session) ?? []
    const at = queue.findIndex((entry) => entry.title === title)
    return queue.splice(at < 0 ? 0 : at, 1)[0] ?? null
  }

  const kindOf = (agent, session) => {
    if (agent === "title" || agent === "compaction") return agent
    mainSession ??= session
    return session === mainSession ? "main" : "other"
  }

  return {
    "tool.definition": async (input) => {
      try {
        if (!NEVER_OFFERED.has(input.toolID)) defined.add(input.toolID)
      } catch {}
    },
    "experimental.chat.system.transform": async (input, output) => {
      try {
        const parts = output.system.map(String)
        const queue = waiting.get(input.sessionID) ?? []
        waiting.set(input.sessionID, queue)
        if (queue.length > 8) queue.shift() // requests that never came
        queue.push({
          title: parts.some((part) => TITLE_TEXT.test(part.slice(0, 400))),
          system: parts.map((part) => ({ chars: part.length, sha256: sha256(part) })),
          system_chars: charsOf(parts),
          system_chars_before: before(output),
          context_chars: context === null ? null : context && parts.join("\n").includes(context) ? context.length : 0,
        })
      } catch {}
    },
    "chat.params": async (input) => {
      try {
        const agent = String(input.agent)
        const kind = kindOf(agent, input.sessionID)
        let tools = []
        if (kind === "main" || kind === "other") {
          // A parallel subagent may have taken this round's definitions.
          if (defined.size > 0) lastTools = [...defined].sort()
          defined = new Set()
          tools = lastTools
        }
        const seen = take(input.sessionID, agent === "title")
        const line = {
          version: 1,
          at: new Date().toISOString(),
          session: input.sessionID,
          kind,
          agent,
          model: `${input.model?.providerID}/${input.model?.id}`,
          tools,
          system: seen?.system ?? [],
          system_chars: seen?.system_chars ?? null,
          system_chars_before: seen?.system_chars_before ?? null,
          context_chars: seen?.context_chars ?? null,
        }
        appendFileSync(file, JSON.stringify(line) + "\n")
      } catch {}
    },
  }
}
