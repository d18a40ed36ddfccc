// Copy the run's evidence into one folder and describe it in capture.json.
//
//   bun capture.js <spec file>
//
// spec: { out, facts, sources: [{ role, path, to, kind }] } with kind
//   sqlite  a consistent copy by VACUUM INTO (a WAL may be present and in use)
//   file    a plain copy
//   log     every *.log file below a folder
//   in_place  already in `out`; only described
// A source that is missing is listed, never guessed; one failure stops nothing.
import { Database } from "bun:sqlite"
import { createHash } from "node:crypto"
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"

const spec = JSON.parse(readFileSync(process.argv[2], "utf8"))
const files = []
const missing = []

const describe = (role, path) => {
  const bytes = readFileSync(join(spec.out, path))
  files.push({ role, path, bytes: bytes.length, sha256: createHash("sha256").update(bytes).digest("hex") })
}

const place = (to) => {
  const target = join(spec.out, to)
  mkdirSync(dirname(target), { recursive: true })
  rmSync(target, { force: true }) // an earlier step of the same trial
  return target
}

const copiers = {
  sqlite({ role, path, to }) {
    const target = place(to)
    const db = new Database(path, { readwrite: true, create: false })
    try {
      db.run("PRAGMA busy_timeout = 2000")
      db.run("VACUUM INTO ?", [target])
    } finally {
      db.close()
    }
    describe(role, to)
  },
  file({ role, path, to }) {
    cpSync(path, place(to))
    describe(role, to)
  },
  log({ role, path, to }) {
    const names = readdirSync(path).filter((name) => name.endsWith(".log")).sort()
    if (names.length === 0) throw new Error("no log file")
    for (const name of names) {
      cpSync(join(path, name), place(join(to, name)))
      describe(role, join(to, name))
    }
  },
  in_place({ role, to }) {
    if (statSync(join(spec.out, to)).size === 0) throw new Error("empty")
    describe(role, to)
  },
}

mkdirSync(spec.out, { recursive: true })
for (const source of spec.sources) {
  try {
    if (!existsSync(source.path)) throw new Error("not found")
    copiers[source.kind](source)
  } catch (error) {
    missing.push({ role: source.role, source: source.path, why: String(error?.message ?? error).slice(0, 300) })
  }
}

const readJson = (path) => {
  try {
    return JSON.parse(readFileSync(path, "utf8"))
  } catch {
    return null
  }
}

const capture = {
  ...spec.facts,
  captured_at: new Date().toISOString(),
  plugin_load: spec.plugin_load ? readJson(spec.plugin_load) : null,
  files,
  missing,
}
const half = join(spec.out, ".capture.json")
writeFileSync(half, `${JSON.stringify(capture, null, 2)}\n`)
renameSync(half, join(spec.out, "capture.json"))
