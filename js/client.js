// A client of `manul serve` for browsers and Node: every route of a loop, with retries that are safe to repeat.
// It needs nothing but fetch. Types are in client.d.ts; docs/service.md describes the service.

const FIRST_PAUSE = 0.05
const LONGEST_PAUSE = 2
// The statuses of a service that is busy or unavailable, or of a proxy in front of it.
const BUSY = [502, 503, 504]
// The status of a caller over its rate limit. If the service asks for a longer wait, the call fails at once.
const TOO_MANY = 429
const LONGEST_WAIT = 30
// Elements of one request of decideMany, reportLosses and observeMany.
const BATCH = 1000

/** The service rejects a request or cannot be reached; `code` identifies the error for programs. */
export class ServiceError extends Error {
  constructor(message, { status = null, code = "unknown", field = null, cause } = {}) {
    super(message, { cause })
    this.name = "ServiceError"
    this.status = status
    this.code = code
    this.field = field
  }
}

export class Client {
  #url
  #headers
  #timeout
  #retries
  #fetch
  #wait

  /** A client of the service at a URL; `timeout` in seconds is that of one attempt. */
  constructor(url, { token = null, timeout = 10, retries = 8, fetch = globalThis.fetch, wait = sleep } = {}) {
    if (!/^https?:\/\//.test(url)) {
      throw new TypeError(`url must start with http:// or https://, got ${JSON.stringify(url)}. Example: http://127.0.0.1:8000.`)
    }
    this.#url = url.replace(/\/+$/, "")
    this.#headers = token === null ? {} : { Authorization: `Bearer ${token}` }
    this.#timeout = timeout
    this.#retries = retries
    // Browsers refuse a fetch that is called as a method of another object.
    this.#fetch = (...given) => fetch(...given)
    this.#wait = wait
  }

  create(settings) {
    return this.#post("/v1/loops", settings)
  }

  async loops() {
    return (await this.#get("/v1/loops")).loops
  }

  status(loop) {
    return this.#get(path(loop))
  }

  decide(loop, context = null, { within, id, action, at } = {}) {
    return this.#post(path(loop, "decisions"), { context, within, id: id ?? newId(), action, at: isoTime(at) })
  }

  async decideMany(loop, decisions) {
    const rows = decisions.map(each => ({ ...each, id: each.id ?? newId(), at: isoTime(each.at) }))
    return this.#inBatches(rows, path(loop, "decisions", "batch"), "decisions")
  }

  async reportLoss(loop, decision, { loss, reward, parts, key } = {}) {
    const told = finite({ loss, reward, parts, key: key ?? newId() })
    return this.#post(path(loop, "decisions", idOf(decision), "loss"), told)
  }

  async reportLosses(loop, losses) {
    const rows = losses.map(({ decision, id, ...told }) => ({ ...finite(told), id: id ?? idOf(decision), key: told.key ?? newId() }))
    return this.#inBatches(rows, path(loop, "losses"), "losses")
  }

  async observe(loop, observation) {
    return this.#post(path(loop, "observations"), withId(finite(observation)))
  }

  async observeMany(loop, observations) {
    return this.#inBatches(observations.map(each => withId(finite(each))), path(loop, "observations", "batch"), "observations")
  }

  pause(loop) {
    return this.#post(path(loop, "pause"))
  }

  resume(loop) {
    return this.#post(path(loop, "resume"))
  }

  async changeBudget(loop, amount) {
    return this.#json({ method: "PUT", path: path(loop, "budget"), body: finite({ amount }) })
  }

  promote(loop) {
    return this.#post(path(loop, "promote"))
  }

  startRollout(loop, settings) {
    return this.#json({ method: "PUT", path: path(loop, "rollout"), body: settings })
  }

  rollout(loop) {
    return this.#get(path(loop, "rollout"))
  }

  pauseRollout(loop) {
    return this.#post(path(loop, "rollout", "pause"))
  }

  resumeRollout(loop) {
    return this.#post(path(loop, "rollout", "resume"))
  }

  abortRollout(loop) {
    return this.#post(path(loop, "rollout", "abort"))
  }

  // Sent twice, these would do harm to what happened in between.
  reset(loop) {
    return this.#json({ method: "POST", path: path(loop, "reset"), repeatable: false })
  }

  delete(loop) {
    return this.#json({ method: "DELETE", path: path(loop), repeatable: false })
  }

  replace(loop, model) {
    return this.#json({ method: "PUT", path: path(loop, "model"), bytes: model, repeatable: false })
  }

  report(loop) {
    return this.#get(path(loop, "report"))
  }

  /** The log as the bytes of a Parquet file. */
  log(loop) {
    return this.#bytes(path(loop, "log"))
  }

  /** The model as the bytes of a .manul file. */
  model(loop) {
    return this.#bytes(path(loop, "model"))
  }

  #get(path) {
    return this.#json({ method: "GET", path })
  }

  #post(path, body) {
    return this.#json({ method: "POST", path, body })
  }

  async #inBatches(rows, path, name) {
    const answers = []
    for (let first = 0; first < rows.length; first += BATCH) {
      answers.push(...(await this.#post(path, { [name]: rows.slice(first, first + BATCH) }))[name])
    }
    return answers
  }

  async #bytes(path) {
    return (await this.#send({ method: "GET", path })).bytes
  }

  async #json(request) {
    const { status, bytes } = await this.#send(request)
    try {
      return JSON.parse(new TextDecoder().decode(bytes))
    } catch (cause) {
      throw new ServiceError("The response is not from a manul service. Check the URL.", { status, cause })
    }
  }

  /** Send a request, and send it again if the service is busy or cannot be reached. */
  async #send({ method, path, body, bytes, repeatable = true }) {
    const sent = bytes ?? (body === undefined ? undefined : JSON.stringify(toJson(body)))
    const type = bytes === undefined ? "application/json" : "application/octet-stream"
    const headers = sent === undefined ? this.#headers : { ...this.#headers, "Content-Type": type }
    for (let attempt = 0; ; attempt += 1) {
      let answer = null
      let failure = null
      try {
        const signal = AbortSignal.timeout(1000 * this.#timeout)
        const response = await this.#fetch(this.#url + path, { method, headers, body: sent, signal, redirect: "error" })
        answer = { status: response.status, after: waitSeconds(response), bytes: new Uint8Array(await response.arrayBuffer()) }
      } catch (error) {
        failure = error
      }
      if (answer !== null && answer.status >= 200 && answer.status < 300) return answer
      if (attempt >= this.#retries || !canRetry(answer, repeatable)) throw answer === null ? unreachable(failure) : refusal(answer)
      const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** attempt) * (0.5 + Math.random() / 2)
      await this.#wait(answer === null ? pause : answer.after + pause)
    }
  }
}

/** Whether sending a request again can help and cannot do harm. Without an answer, it may have been processed. */
const canRetry = (answer, repeatable) => {
  if (answer === null) return repeatable
  if (answer.status === TOO_MANY) return answer.after <= LONGEST_WAIT
  return repeatable ? BUSY.includes(answer.status) : answer.status === 503
}

/** The seconds that a response to too many requests asks for; 0 for others, and for a date. */
const waitSeconds = response => {
  const given = response.headers.get("Retry-After") ?? ""
  return response.status === TOO_MANY && /^\d+$/.test(given) ? Number(given) : 0
}

const refusal = ({ status, bytes }) => {
  try {
    const { message, code, field } = JSON.parse(new TextDecoder().decode(bytes)).error
    return new ServiceError(message, { status, code, field })
  } catch {
    return new ServiceError(`Unexpected response with status ${status}. Check the URL, and proxies before the service.`, { status })
  }
}

const unreachable = cause =>
  new ServiceError(`The service cannot be reached (${cause?.cause?.code ?? cause?.name}). Check the URL, and that manul serve is running.`, {
    code: "unreachable",
    cause,
  })

/** Values as JSON: dates become {"$date": ...}, numbers and dates that are not valid become missing values. */
const toJson = value => {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : { $date: value.toISOString() }
  if (typeof value === "bigint") return Number(value)
  if (Array.isArray(value)) return value.map(toJson)
  if (ArrayBuffer.isView(value)) return Array.from(value, toJson)
  if (typeof value === "number") return Number.isFinite(value) ? value : null
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, toJson(each)]))
  }
  return value
}

/** The time of a decision, which unlike a date of a context is a text. */
const isoTime = at => (at instanceof Date ? at.toISOString() : at)

/** A body whose numbers are finite: in JSON, others would be null, as if they had not been given. */
const finite = body => {
  const { density, floor, loss, reward, amount, densities } = body
  for (const [field, value] of Object.entries({ density, floor, loss, reward, amount, ...densities })) {
    if (typeof value === "number" && !Number.isFinite(value)) {
      throw new ServiceError(`${field} must be a finite number, got ${value}.`, { code: "invalid", field })
    }
  }
  return body
}

/** An observation that is known by an id, or by its number in a copy of a model. */
const withId = observation => {
  const known = observation.model != null && observation.number != null
  return observation.id != null || known ? observation : { ...observation, id: newId() }
}

const path = (...parts) => ["/v1/loops", ...parts.map(encodeURIComponent)].join("/")

const idOf = decision => (typeof decision === "string" ? decision : decision.id)

const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, "0")).join("")

const sleep = seconds => new Promise(resolve => setTimeout(resolve, 1000 * seconds))
