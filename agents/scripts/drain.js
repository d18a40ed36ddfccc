// Wait, within a bound, until the processes of one agent run are gone; with `kill`
// end those that are left. A run's processes carry AKM_HARBOR_RUN=<id> in their
// environment, which detached children inherit too.
//
//   bun drain.js <run id> <seconds> [kill]
import { readFileSync, readdirSync } from "node:fs"

const [run, seconds, mode] = process.argv.slice(2)
const mark = `AKM_HARBOR_RUN=${run}`

const alive = () =>
  readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return false
    try {
      if (readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").pop().startsWith("Z")) return false
      return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(mark)
    } catch {
      return false // gone, or not ours to read
    }
  })

const signal = (name) => {
  for (const pid of alive()) {
    try {
      process.kill(Number(pid), name)
    } catch {
      // gone meanwhile
    }
  }
}

const wait = (limit) => {
  const end = Date.now() + limit * 1000
  while (Date.now() < end && alive().length > 0) Bun.sleepSync(20)
  return alive().length
}

let left = wait(Number(seconds))
if (left > 0 && mode === "kill") {
  signal("SIGTERM")
  left = wait(1)
  signal("SIGKILL")
}
process.exit(0)
