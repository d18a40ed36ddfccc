// The entry through which opencode loads the akm-opencode plugin.
//
// It lies outside the plugin's package folder on purpose: for a file inside a
// folder with a package.json opencode loads the package's `main` instead. It
// re-exports only the plugin's own function, because opencode calls *every*
// exported function as a plugin and a helper exported beside it ends the session.
// A plugin that can't be imported would leave no trace at all, so the outcome of
// the import is written down. `inject: "off"` and `tools: "off"` take one half of
// the treatment away (the placebo arms); the other half is untouched.
import { writeFileSync } from "node:fs"

const note = (file, outcome) => {
  try {
    if (file) writeFileSync(file, `${JSON.stringify(outcome)}\n`)
  } catch {
    // Evidence is lost; the session goes on.
  }
}

// Which export is the plugin: `default` (a function, or `{ server }`), else the one
// name that ends in "Plugin", else the only function there is.
const pick = (module) => {
  if (typeof module.default === "function") return ["default", module.default]
  if (typeof module.default?.server === "function") return ["default.server", module.default.server]
  const functions = Object.entries(module).filter(([, value]) => typeof value === "function")
  const named = functions.filter(([name]) => /plugin$/i.test(name))
  if (named.length === 1) return named[0]
  if (functions.length === 1) return functions[0]
  throw new Error(`which export is the plugin? found ${functions.map(([name]) => name).join(", ") || "no function"}`)
}

export const AkmHarborTreatment = async (input, options) => {
  let name
  let plugin
  try {
    ;[name, plugin] = pick(await import(options.entry))
    note(options.note, { ok: true, detail: "imported", export: name })
  } catch (error) {
    note(options.note, { ok: false, detail: String(error?.message ?? error).slice(0, 500), export: null })
    throw error
  }
  const hooks = { ...(await plugin(input, undefined)) }
  if (options.tools === "off") delete hooks.tool
  if (options.inject === "off") delete hooks["experimental.chat.system.transform"]
  return hooks
}
