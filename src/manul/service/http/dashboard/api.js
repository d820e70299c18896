// Requests to this service and to nobody else; the token lives as long as the tab.
const TOKEN = "manul-token"

export class Refusal extends Error {
  constructor(status, message) {
    super(message)
    this.status = status
  }
}

export const token = {
  get: () => sessionStorage.getItem(TOKEN),
  set: value => sessionStorage.setItem(TOKEN, value),
}

export async function ask(path, { method = "GET", body } = {}) {
  const headers = token.get() ? { Authorization: `Bearer ${token.get()}` } : {}
  let reply
  try {
    reply = await fetch(`v1/loops${path}`, { method, headers, body: body && JSON.stringify(body), cache: "no-store" })
  } catch {
    throw new Refusal(0, "The service does not answer. It is asked again every few seconds.")
  }
  const answer = await reply.json().catch(() => ({}))
  if (!reply.ok) throw new Refusal(reply.status, answer.error?.message ?? `The service answered ${reply.status}.`)
  return answer
}

// Why the service cannot work as it should, in a sentence; nothing if it can.
export async function trouble() {
  const reply = await fetch("readyz", { cache: "no-store" })
  return reply.ok ? "" : ((await reply.json().catch(() => ({}))).error?.message ?? "The service is not ready.")
}

export const at = (loop, rest = "") => `/${encodeURIComponent(loop)}${rest}`
