// Requests to this service; the token is stored until the tab is closed.
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
    throw new Refusal(0, "The service does not respond. Retrying every few seconds.")
  }
  const answer = await reply.json().catch(() => ({}))
  if (!reply.ok) throw new Refusal(reply.status, answer.error?.message ?? `The service responded with status ${reply.status}.`)
  return answer
}

// Why the service is not ready; empty if it is.
export async function trouble() {
  const reply = await fetch("readyz", { cache: "no-store" })
  return reply.ok ? "" : ((await reply.json().catch(() => ({}))).error?.message ?? "The service is not ready.")
}

export const at = (loop, rest = "") => `/${encodeURIComponent(loop)}${rest}`
