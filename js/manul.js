// manul in browsers and Node: opens an agent that manul has saved, decides, learns and saves it again.
//
// Each agent has an instance of manul.wasm of its own. A call that fails ends by a trap after it has written a sentence;
// then the stack pointer is restored here, and the agent goes on.

const MOST_KNOBS = 16
const SIZE = { context: 12, error: 640, sentence: 512, decision: 48 + 24 * MOST_KNOBS, value: 24 }
const COPY = /^[A-Za-z0-9._-]{1,40}$/ // as the service takes it
const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** What is wrong with an argument, in one sentence; `field` names the argument, field or knob. */
export class InputError extends Error {
  constructor(message, field) {
    super(message)
    this.name = 'InputError'
    this.field = field
  }
}

let compiled

/** Says where manul.wasm is: a URL, its bytes, a Response, or a compiled WebAssembly.Module. */
export function setModule(source) {
  compiled = compile(source)
}

async function compile(source) {
  if (source instanceof WebAssembly.Module) return source
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return WebAssembly.compile(source)
  if (typeof Response !== 'undefined' && source instanceof Response) return WebAssembly.compile(await source.arrayBuffer())
  const url = new URL(source, import.meta.url)
  if (url.protocol === 'file:') {
    const { readFile } = await import('node:fs/promises')
    return WebAssembly.compile(await readFile(url))
  }
  const response = await fetch(url)
  if (!response.ok) throw new Error(`${url}: HTTP status ${response.status}.`)
  return WebAssembly.compile(await response.arrayBuffer())
}

/** Opens an agent from the bytes of a .manul file; `copy` is a text that no other copy of the file has. */
export async function load(bytes, { copy } = {}) {
  if (!(bytes instanceof ArrayBuffer || ArrayBuffer.isView(bytes)))
    throw new InputError('bytes must be those of a .manul file, an ArrayBuffer or a Uint8Array.', 'bytes')
  if (copy !== undefined && !(typeof copy === 'string' && COPY.test(copy)))
    throw new InputError(`copy must be a text of 1 to 40 letters, digits, '.', '_' or '-', got ${JSON.stringify(copy) ?? String(copy)}.`, 'copy')
  compiled ??= compile('./dist/manul.wasm')
  return new Agent(await compiled, bytes, copy ?? randomText())
}

// 32 hexadecimal digits: pages without HTTPS have no crypto.randomUUID.
function randomText() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

class Agent {
  #wasm
  #agent = 0
  #context // where structures and texts are written; a text may move when it grows
  #error
  #decision
  #seed
  #text
  #room
  #written = 0
  #knobs
  #learned = false

  constructor(module, bytes, copy) {
    // The library needs nothing of its host, except that the C library may want to write a message before it aborts.
    const imports = {}
    for (const { module: from, name } of WebAssembly.Module.imports(module)) (imports[from] ??= {})[name] = () => 52
    this.#wasm = new WebAssembly.Instance(module, imports).exports
    this.#wasm._initialize?.()
    const data = bytes instanceof ArrayBuffer ? new Uint8Array(bytes) : new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const memory = this.#allocate(SIZE.context + 4 + SIZE.error + SIZE.decision + 8)
    this.#context = memory
    this.#error = memory + SIZE.context + 4
    this.#decision = this.#error + SIZE.error
    this.#seed = this.#decision + SIZE.decision
    this.#room = Math.max(data.length, 1 << 12)
    this.#text = this.#allocate(this.#room)
    new Uint8Array(this.#wasm.memory.buffer).set(data, this.#text)
    this.#agent = this.#call('manul_open', this.#text, data.length, this.#error)
    if (this.#room > 1 << 16) this.#reserve(1 << 12)
    const about = JSON.parse(this.#string(this.#wasm.manul_describe(this.#agent)))
    /** The SHA-256 of the bytes that were loaded, by which the service knows the version of the model. */
    this.model = about.model
    /** The text by which the service tells this copy of the model from others. */
    this.copy = copy
    /** Whether it learns from a "loss" or a "reward". */
    this.outcome = about.outcome
    /** The space of actions, as in the file. */
    this.actions = about.actions
    this.#knobs = about.knobs
    Object.freeze(this)
  }

  decide(context, { within, seed } = {}) {
    const [range, limited] = this.#arguments(context, within)
    let seeded = 0
    if (seed !== undefined) {
      const number = typeof seed === 'bigint' ? seed : Number.isSafeInteger(seed) ? BigInt(seed) : -1n
      if (number < 0n || number >= 1n << 64n) throw new InputError(`seed must be a whole number in [0, 2^64), got ${String(seed)}.`, 'seed')
      seeded = this.#seed
      this.#view().setBigUint64(seeded, number, true)
    }
    this.#call('manul_decide', this.#agent, this.#context, range, seeded, this.#decision, this.#error)
    const view = this.#view()
    const at = this.#decision
    const decision = {
      action: this.#action(view),
      density: view.getFloat64(at + 8, true),
      floor: view.getFloat64(at + 16, true),
      number: Number(view.getBigUint64(at, true)),
      // What has learned since is not the model that the service knows: its densities are others.
      model: this.#learned ? null : this.model,
      copy: this.copy,
    }
    if (limited !== undefined) decision.within = limited
    if (this.#knobs[0] !== '') decision.densities = this.#byKnob((value) => view.getFloat64(value + 16, true))
    return decision
  }

  best(context, { within } = {}) {
    const [range] = this.#arguments(context, within)
    this.#call('manul_best', this.#agent, this.#context, range, this.#decision, this.#error)
    return this.#action(this.#view())
  }

  learn(context, decision, outcome) {
    const value = this.#outcome(outcome)
    if (decision === null || typeof decision !== 'object')
      throw new InputError('decision must be one returned by decide.', 'decision')
    const action = json(decision.action, 'action') + '\0'
    const within = decision.within == null ? '' : json(decision.within, 'within') + '\0'
    const density = Number(decision.density)
    const start = this.#write(action + within)
    const range = within === '' ? 0 : start + encoder.encode(action).length
    this.#call('manul_read_decision', this.#agent, start, range, density, this.#decision, this.#error)
    this.#arguments(context, undefined)
    this.#call('manul_learn', this.#agent, this.#context, this.#decision, value, this.#error)
    this.#learned = true
  }

  save() {
    const [bytes, size] = [this.#seed, this.#seed + 4]
    this.#call('manul_save', this.#agent, bytes, size, this.#error)
    const view = this.#view()
    const start = view.getUint32(bytes, true)
    const saved = new Uint8Array(this.#wasm.memory.buffer, start, view.getUint32(size, true)).slice()
    this.#wasm.manul_free_bytes(start)
    return saved
  }

  #outcome(outcome) {
    const other = this.outcome === 'loss' ? 'reward' : 'loss'
    const given = typeof outcome === 'object' && outcome !== null ? outcome : {}
    if (given[other] !== undefined)
      throw new InputError(`${other} must not be given to an agent made with ${this.outcome === 'loss' ? 'losses' : 'rewards'}; pass ${this.outcome}.`, other)
    const value = given[this.outcome]
    if (typeof value !== 'number' && typeof value !== 'boolean')
      throw new InputError(`pass {${this.outcome}: a number} to learn, got ${String(value)}.`, this.outcome)
    return Number(value)
  }

  // Writes a context and, behind it, a narrower range; returns where that is, and what it is.
  #arguments(context, within) {
    const limited = within === undefined || within === null ? undefined : within
    if (ArrayBuffer.isView(context) && typeof context.length === 'number') {
      const after = limited === undefined ? '' : json(limited, 'within') + '\0'
      const bytes = 8 * context.length
      const start = this.#reserve(bytes + 8 + 3 * after.length)
      const numbers = Math.ceil(start / 8) * 8
      new Float64Array(this.#wasm.memory.buffer, numbers, context.length).set(context)
      if (after !== '') encoder.encodeInto(after, new Uint8Array(this.#wasm.memory.buffer, numbers + bytes))
      this.#setContext(0, numbers, context.length)
      return [after === '' ? 0 : numbers + bytes, limited]
    }
    const text = json(context === undefined ? null : context, 'context')
    const after = limited === undefined ? '' : '\0' + json(limited, 'within') + '\0'
    const start = this.#write(text + after)
    let size = this.#written
    if (after !== '') size = encoder.encode(text).length
    this.#setContext(start, 0, size)
    return [after === '' ? 0 : start + size + 1, limited]
  }

  #setContext(text, row, size) {
    const view = this.#view()
    view.setUint32(this.#context, text, true)
    view.setUint32(this.#context + 4, row, true)
    view.setUint32(this.#context + 8, size, true)
  }

  #action(view) {
    const value = (at) => {
      const option = view.getUint32(at + 8, true)
      return option === 0 ? view.getFloat64(at, true) : JSON.parse(this.#string(option))
    }
    return this.#knobs[0] === '' ? value(this.#decision + 48) : this.#byKnob(value)
  }

  #byKnob(each) {
    return Object.fromEntries(this.#knobs.map((name, knob) => [name, each(this.#decision + 48 + SIZE.value * knob)]))
  }

  #view() {
    return new DataView(this.#wasm.memory.buffer)
  }

  #string(start) {
    const bytes = new Uint8Array(this.#wasm.memory.buffer)
    return decoder.decode(bytes.subarray(start, bytes.indexOf(0, start)))
  }

  #allocate(size) {
    const start = this.#wasm.malloc(size)
    if (start === 0) throw new Error('memory is exhausted.')
    return start
  }

  #reserve(size) {
    if (size > this.#room || this.#room > 1 << 16) {
      this.#wasm.free(this.#text)
      this.#room = Math.max(size, 1 << 12)
      this.#text = this.#allocate(this.#room)
    }
    return this.#text
  }

  #write(text) {
    const start = this.#reserve(3 * text.length)
    this.#written = encoder.encodeInto(text, new Uint8Array(this.#wasm.memory.buffer, start, this.#room)).written
    return start
  }

  #call(name, ...given) {
    const stack = this.#wasm.__stack_pointer.value
    try {
      return this.#wasm[name](...given)
    } catch (error) {
      if (!(error instanceof WebAssembly.RuntimeError)) throw error
      this.#wasm.__stack_pointer.value = stack
      const sentence = this.#string(this.#error)
      if (sentence === '') throw error
      const field = this.#string(this.#error + SIZE.sentence)
      new Uint8Array(this.#wasm.memory.buffer)[this.#error] = 0
      throw new InputError(sentence, field)
    }
  }
}

// A value as JSON: a Date is a date of a context, what is missing is null, and what JSON has no form for is an error.
function json(value, what, depth = 0) {
  // The core refuses more than 32 levels; a context that contains itself would never get there.
  if (depth > 64) throw new InputError(`context must be nested at most 32 levels deep; field '${what}' exceeds the limit.`, 'context')
  switch (typeof value) {
    case 'number':
      if (Number.isNaN(value)) return 'null'
      if (Math.abs(value) === Infinity)
        throw new InputError(
          what === 'context' || what === 'within' || what === 'action'
            ? `${what} must be finite numbers, got infinity.`
            : `field '${what}' must be a finite number, got infinity. Omit fields with missing values.`,
          what === 'within' || what === 'action' ? what : 'context',
        )
      return Object.is(value, -0) ? '-0' : String(value)
    case 'string':
      return JSON.stringify(value)
    case 'boolean':
      return String(value)
    case 'bigint':
      return String(value)
    case 'undefined':
      return 'null'
    case 'object':
      break
    default:
      throw new InputError(`field '${what}' must be a number, text, boolean, Date, null, list or object, got a ${typeof value}.`, 'context')
  }
  if (value === null) return 'null'
  if (value instanceof Date) {
    if (Number.isNaN(value.getTime())) return 'null'
    return `{"$date":"${value.toISOString()}"}`
  }
  if (Array.isArray(value) || ArrayBuffer.isView(value)) {
    let text = '['
    for (let i = 0; i < value.length; ++i) text += (i > 0 ? ',' : '') + json(value[i], what, depth + 1)
    return text + ']'
  }
  let text = '{'
  for (const name in value) {
    if (value[name] === undefined) continue
    text += (text.length > 1 ? ',' : '') + JSON.stringify(name) + ':' + json(value[name], what === 'within' || what === 'action' ? what : name, depth + 1)
  }
  return text + '}'
}
