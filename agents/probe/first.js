// First in the plugin list: how long was the system text before any other
// plugin touched it? probe.js, last in the list, reads the answer.
// The probe must never break a session: every hook catches everything.
import { noteBefore } from "./shared.js"

export const AkmHarborProbeFirst = async () => ({
  "experimental.chat.system.transform": async (input, output) => {
    try {
      noteBefore(input, output)
    } catch {}
  },
})
