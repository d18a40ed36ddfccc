// Treatment only: build akm's index once, then check on a copy that akm answers.
//
//   bun prepare.js <spec file>
//
// spec: { akm, index: bool, out, dirs: {config, data, cache, state}, scratch }
// Writes index.json (akm's own output) and selfcheck.json ({ok, detail, ...}) to
// `out` and prints {index, selfcheck, timings} as its last line. Every akm call here is marked
// as the harness's own, and the check runs on copies of akm's folders, so that
// nothing of it can be found in, or changes, what the agent's akm does.
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const spec = JSON.parse(readFileSync(process.argv[2], "utf8"))
const timings = {}
const marked = { ...process.env, AKM_EVENT_SOURCE: "audit" }

const akm = async (args, env) => {
  const child = Bun.spawn([spec.akm, ...args], { env, stdin: "ignore", stdout: "pipe", stderr: "pipe" })
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

const timed = async (step, work) => {
  const start = performance.now()
  try {
    return await work()
  } finally {
    timings[step] = Math.round(performance.now() - start) / 1000
  }
}

const buildIndex = async () => {
  const call = await akm(["index", "--format", "json"], marked)
  writeFileSync(join(spec.out, "index.json"), `${JSON.stringify(call.json() ?? call, null, 2)}\n`)
  const entries = Number(call.json()?.totalEntries ?? 0)
  return { ok: call.code === 0 && call.json() !== null, total_entries: entries, detail: call.code === 0 ? "" : call.stderr.slice(0, 300) }
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
  const version = akm(["--version"], env)
  const search = await akm(["search", "", "--limit", "1", "--format", "json", "--no-track-usage"], env)
  const info = await akm(["info", "--format", "json"], env)
  const calls = [await version, search, info]
  const hits = search.json()?.hits?.length ?? 0
  const entries = Number(info.json()?.indexStats?.entryCount ?? 0)
  const failed = calls.find((call) => call.code !== 0)
  if (failed) return { ok: false, detail: `akm ${failed.args[0]}: exit ${failed.code}: ${failed.stderr || failed.stdout}`.slice(0, 300), calls }
  if (hits === 0 || entries === 0) return { ok: false, detail: `akm answers but holds nothing: ${entries} entries, ${hits} hits`, calls }
  return { ok: true, detail: `${entries} entries`, calls }
}

mkdirSync(spec.out, { recursive: true })
const index = spec.index ? await timed("index", buildIndex) : null
const selfcheck = await timed("selfcheck", check)
const version = selfcheck.calls[0]?.stdout?.match(/\d+\.\d+\.\d+\S*/)?.[0] ?? null
writeFileSync(join(spec.out, "selfcheck.json"), `${JSON.stringify(selfcheck, null, 2)}\n`)
rmSync(spec.scratch, { recursive: true, force: true })
console.log(JSON.stringify({ index, selfcheck: { ok: selfcheck.ok, detail: selfcheck.detail }, akm_version: version, timings }))
