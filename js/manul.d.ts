/** A value of a field. A Date is a date and time in UTC; null, undefined and NaN are missing. */
export type FieldValue =
  | number
  | bigint
  | string
  | boolean
  | null
  | undefined
  | Date
  | { readonly $date: string }
  | { readonly $time: string }
  | readonly FieldValue[]
  | { readonly [name: string]: FieldValue }

/** A row of numbers or an object of fields; always the same kind as the first one of the agent. */
export type Context = readonly number[] | Float64Array | Float32Array | { readonly [name: string]: FieldValue } | null

/** A number, or the option of a choice. */
export type KnobValue = number | string | boolean

/** The value of the only knob, or of each knob by name. */
export type Action = KnobValue | { readonly [knob: string]: KnobValue }

/** A narrower range of a knob: its ends, or the options that are allowed. */
export type Range = readonly [number, number] | readonly KnobValue[]

/** A narrower range of the only knob, or of some knobs by name. */
export type Within = Range | { readonly [knob: string]: Range }

/** A decision. Log its density, and its number, model and copy, by which the service can check the density and learns it once. */
export interface Decision<A extends Action = Action> {
  readonly action: A
  /** The density of the action, which is a probability for steps and choices, and a product for several knobs. */
  readonly density: number
  /** The smallest density that any action could have. */
  readonly floor: number
  /** How many decisions this copy of the agent had made before. */
  readonly number: number
  /** The SHA-256 of the bytes that were loaded, in lower-case hexadecimal digits; null if this copy had learned before. */
  readonly model: string | null
  /** The text of this copy of the agent. */
  readonly copy: string
  readonly within?: KnobValue[] | Record<string, KnobValue[]>
  /** The density of each named knob. */
  readonly densities?: { readonly [knob: string]: number }
}

export type Outcome = { readonly loss: number; readonly reward?: undefined } | { readonly reward: number; readonly loss?: undefined }

export interface DecideOptions {
  /** The narrower range of this decision. */
  readonly within?: Within | null
  /** Draws with this whole number below 2^64 instead of the seed of the agent, so that copies of a file differ. */
  readonly seed?: number | bigint
}

export interface LoadOptions {
  /** A text of 1 to 40 letters, digits, '.', '_' or '-' that no other copy of the file has; by default a random one. */
  readonly copy?: string
}

/** An agent in this process. Its calls are synchronous, and need no request. */
export interface Agent<A extends Action = Action> {
  /** The SHA-256 of the bytes that were loaded. */
  readonly model: string
  /** The text by which the service tells this copy of the model from others. */
  readonly copy: string
  /** Whether it learns from losses or rewards. */
  readonly outcome: 'loss' | 'reward'
  /** The space of actions, as in the file. */
  readonly actions: unknown

  /** Draws an action. */
  decide(context: Context, options?: DecideOptions): Decision<A>

  /** The action without exploration, which has no density. */
  best(context: Context, options?: { readonly within?: Within | null }): A

  /** Learns from the loss or the reward of a decision, which may have been kept as JSON. */
  learn(context: Context, decision: Pick<Decision<A>, 'action' | 'density'> & { readonly within?: Within | null }, outcome: Outcome): void

  /** The bytes of a .manul file with what the agent has learned; `manul.load` in Python reads it. */
  save(): Uint8Array
}

/** What is wrong with an argument, in one sentence. */
export class InputError extends Error {
  /** The name of the argument, field or knob. */
  readonly field: string
}

/** Opens an agent from the bytes of a .manul file. */
export function load<A extends Action = Action>(bytes: ArrayBuffer | ArrayBufferView, options?: LoadOptions): Promise<Agent<A>>

/** Says where manul.wasm is, if it is not beside this module: a URL, its bytes, a Response or a compiled module. */
export function setModule(source: string | URL | ArrayBuffer | ArrayBufferView | Response | WebAssembly.Module): void
