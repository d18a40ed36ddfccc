// Treatment only: build akm's index once, then check on a copy that akm answers.
//
//   bun prepare.js <spec file>
//
// spec: { akm, plugin, index: bool, out, dirs: {config, data, cache, state}, scratch }
// Writes index.json (akm's own output) and selfcheck.json ({ok, detail, ...}) to
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
    return { args, code: 127, stdout: "", stderr: String(error?.message ?? error), json: () => null }
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
  return { args, code, stdout: stdout.slice(0, 2000), stderr: stderr.slice(0, 2000), json: () => json }
}

const akm = (args, env) => call(spec.akm, args, env)

// A plugin that can't be imported leaves opencode running as a baseline: see it now.
const importPlugin = (env) => {
  const own = { TMPDIR: spec.scratch, XDG_STATE_HOME: spec.scratch }
  return call(process.execPath, ["--no-install", "-e", "await import(process.argv[1])", spec.plugin], { ...env, ...own })
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
  return { ok: done.code === 0 && done.json() !== null, total_entries: entries, detail: done.code === 0 ? "" : done.stderr.slice(0, 300) }
}

const onCopy = () => {
  rmSync(spec.scratch, { recursive: true, force: true })
  mkdirSync(spec.scratch, { recursive: true })
  const env = { ...marked }
  for (const [name, dir] of Object.entries(spec.dirs)) {
    const copy = join(spec.scratch, name)
    if (existsSync(dir)) cpSync(dir, copy, { recursive: true })
    else mkdirSync(copy)
    env[`AKM_${name.toUpperCase()}_DIR`] = copy
  }
  return env
}

const check = async () => {
  const env = onCopy()
  // An empty query lists what is indexed; the first read builds a missing index, here
  // on the copy, and only then can info count it.
  const plugin = importPlugin(env)
  const version = akm(["--version"], env)
  const search = await akm(["search", "", "--limit", "1", "--format", "json", "--no-track-usage"], env)
  const info = await akm(["info", "--format", "json"], env)
  const imported = { ...(await plugin), args: ["plugin", "import"] }
  const calls = [await version, search, info, imported]
  const hits = search.json()?.hits?.length ?? 0
  const entries = Number(info.json()?.indexStats?.entryCount ?? 0)
  const failed = calls.find(({ code }) => code !== 0)
  if (failed === imported) {
    const why = imported.stderr.split("\n").find((line) => /error|cannot/i.test(line)) ?? imported.stderr
    return { ok: false, detail: `the plugin can't be imported: ${why}`.slice(0, 300), calls }
  }
  if (failed) return { ok: false, detail: `akm ${failed.args[0]}: exit ${failed.code}: ${failed.stderr || failed.stdout}`.slice(0, 300), calls }
  if (hits === 0 || entries === 0) return { ok: false, detail: `akm answers but holds nothing: ${entries} entries, ${hits} hits`, empty: true, calls }
  return { ok: true, detail: `${entries} entries`, calls }
}

mkdirSync(spec.out, { recursive: true })
const index = spec.index ? await timed("index", buildIndex) : null
const selfcheck = await timed("selfcheck", check)
const version = selfcheck.calls[0]?.stdout?.match(/\d+\.\d+\.\d+\S*/)?.[0] ?? null
writeFileSync(join(spec.out, "selfcheck.json"), `${JSON.stringify(selfcheck, null, 2)}\n`)
rmSync(spec.scratch, { recursive: true, force: true })
console.log(JSON.stringify({ index, selfcheck: { ...selfcheck, calls: undefined }, akm_version: version, timings }))
