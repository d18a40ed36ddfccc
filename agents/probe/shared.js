// State shared by the first and the last probe plugin of one opencode process.
const KEY = Symbol.for("akm-harbor.probe")
const state = (globalThis[KEY] ??= { before: new WeakMap() })

export const charsOf = (parts) => parts.reduce((sum, part) => sum + String(part).length, 0)

// The hooks of one request share one `output` object: it is the request's identity.
export const noteBefore = (_input, output) => {
  state.before.set(output, charsOf(output.system))
}

export const before = (output) => state.before.get(output) ?? null
