// Treatment only: build akm's index once, then check on a copy that akm answers.
//
//   bun prepare.js <spec file>
//
// spec: { akm, plugin, index: bool, out, dirs: {config, data, cache, state}, scratch }
// Writes index.json (akm's own output) and selfcheck.json ({ok, detail, calls}) to
// `out` and prints {index, selfcheck, timings} as its last line. Every akm call here is marked
// as the harness's own, and the check runs on copies of akm's folders, so that
// nothing of it can be found in, or changes, what the agent's akm does.
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const spec = JSON.parse(readFileSync(process.argv[2], "utf8"))
const timings = {}
const marked = { ...process.env, AKM_EVENT_SOURCE: "audit" }

const call = async (command, args, env) => {
  let child
  try {
    child = Bun.spawn([command, ...args], { env, stdin: "ignore", stdout: "pipe", stderr: "pipe" })
  } catch (error) {
    return { code: 127, stdout: "", stderr: String(error?.message ?? error), json: () => null }
  }
  const timer = setTimeout(() => child.kill("SIGKILL"), 60_000)
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  clearTimeout(timer)
  let json = null
  try {
    json = JSON.parse(stdout)
  } catch {
    // Not JSON: `stdout` says what it was.
  }
  return { code, stdout: stdout.slice(0, 2000), stderr: stderr.slice(0, 2000), json: () => json }
}

const akm = (args, env) => call(spec.akm, args, env)

// A plugin that can't be imported leaves opencode running as a baseline: see it now.
// Its own folders are scratch, so that importing it leaves nothing behind.
const importPlugin = () => {
  const home = join(spec.scratch, "plugin")
  mkdirSync(home, { recursive: true })
  const env = { ...marked, TMPDIR: home, XDG_STATE_HOME: home }
  return call(process.execPath, ["--no-install", "-e", "await import(process.argv[1])", spec.plugin], env)
}

const timed = async (step, work) => {
  const start = performance.now()
  try {
    return await work()
  } finally {
    timings[step] = Math.round(performance.now() - start) / 1000
  }
}

const buildIndex = async () => {
  const done = await akm(["index", "--format", "json"], marked)
  writeFileSync(join(spec.out, "index.json"), `${JSON.stringify(done.json() ?? done, null, 2)}\n`)
  const entries = Number(done.json()?.totalEntries ?? 0)
  return { ok: done.code === 0 && done.json() !== null, total_entries: entries, detail: done.code === 0 ? "" : done.stderr.trim().slice(0, 300) }
}

const onCopy = () => {
  const env = { ...marked }
  for (const [name, dir] of Object.entries(spec.dirs)) {
    const copy = join(spec.scratch, name)
    if (existsSync(dir)) cpSync(dir, copy, { recursive: true })
    else mkdirSync(copy)
    env[`AKM_${name.toUpperCase()}_DIR`] = copy
  }
  return env
}

// An empty query lists what is indexed; where there is no index yet, this first read
// builds one, on the copy.
const search = () => akm(["search", "", "--limit", "1", "--format", "json", "--no-track-usage"], onCopy())

const judge = (searched, imported) => {
  const hits = searched.json()?.hits?.length ?? 0
  const said = ({ code, stdout, stderr }) => ({ code, stdout, stderr })
  const calls = { search: said(searched), plugin_import: said(imported) }
  const failed = (detail, more) => ({ ok: false, detail: detail.slice(0, 300), ...more, calls })
  if (searched.code !== 0) return failed(`akm search: exit ${searched.code}: ${searched.stderr || searched.stdout}`)
  if (imported.code !== 0) {
    const why = imported.stderr.split("\n").find((line) => /error|cannot/i.test(line)) ?? imported.stderr
    return failed(`the plugin can't be imported: ${why}`)
  }
  if (hits === 0) return failed("akm answers but holds nothing", { empty: true })
  return { ok: true, detail: "akm answers and holds the bundle", calls }
}

rmSync(spec.scratch, { recursive: true, force: true })
mkdirSync(spec.out, { recursive: true })
const importing = timed("plugin_import", importPlugin)
const index = spec.index ? await timed("index", buildIndex) : null
const selfcheck = judge(await timed("search", search), await importing)
writeFileSync(join(spec.out, "selfcheck.json"), `${JSON.stringify(selfcheck, null, 2)}\n`)
rmSync(spec.scratch, { recursive: true, force: true })
console.log(JSON.stringify({ index, selfcheck: { ...selfcheck, calls: undefined }, timings }))
