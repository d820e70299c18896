// The dialogs: a new loop, confirmation of reset, delete and abort, and the token.
import { ask, at, token } from "./api.js"

const create = document.getElementById("create"),
  erase = document.getElementById("erase"),
  abort = document.getElementById("abort"),
  tokens = document.getElementById("token")

const given = field => (field.value.trim() === "" ? undefined : Number(field.value))

function agent(fields, span) {
  const kind = fields.agent.value,
    epsilon = given(fields.epsilon)
  if (kind === "auto") return { kind, epsilon }
  const leaves = given(fields.leaves)
  return kind === "cats"
    ? { kind, leaves, epsilon, bandwidth: given(fields.bandwidth) ?? span / 16 }
    : { kind, leaves, epsilon }
}

function knobs(text) {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`The knobs are not valid JSON: ${error.message}.`)
  }
}

// "won: yes/no rises, value: amount" as the kinds and the hints of parts.
function partsOf(text) {
  const kinds = {},
    hints = {}
  for (const each of text.split(",").filter(part => part.trim())) {
    const [name, words] = each.split(":").map(part => part.trim())
    const [kind, hint] = (words ?? "").split(/\s+/)
    if (!name || !kind) throw new Error(`Write each part with its kind, such as bought: yes/no, not ${each.trim()}.`)
    kinds[name] = kind
    if (hint) hints[name] = hint
  }
  return { parts: kinds, hints: Object.keys(hints).length ? hints : undefined }
}

// The default: a number, or the values of parts, such as "bought: no".
function defaults(text, outcomes) {
  if (!text.includes(":")) {
    const value = given({ value: text })
    if (Number.isNaN(value)) throw new Error(`The default must be a number, or parts such as bought: no, not ${text}.`)
    return { [outcomes === "rewards" ? "default_reward" : "default_loss"]: value }
  }
  const words = { yes: true, true: true, no: false, false: false }
  const pairs = text.split(",").map(each => each.split(":").map(part => part.trim()))
  return { default_parts: Object.fromEntries(pairs.map(([name, value]) => [name, words[value] ?? Number(value)])) }
}

function settings(fields) {
  const several = fields.knobs.value.trim()
  const actions = several ? knobs(several) : [given(fields.action_low), given(fields.action_high)]
  const outcomes = fields.outcomes.value,
    ends = [given(fields.loss_low), given(fields.loss_high)],
    formula = fields.formula.value.trim()
  // The range in the form is that of losses; what a formula gives is seldom in it.
  const untouched = [fields.loss_low, fields.loss_high].every(field => field.value === field.defaultValue)
  return {
    name: fields.name.value,
    actions,
    [outcomes]: ends.every(end => end === undefined) || (formula && untouched) ? "auto" : ends,
    agent: agent(fields, several ? 1 : actions[1] - actions[0]),
    ...(formula ? { formula, ...partsOf(fields.parts.value) } : {}),
    wait: given(fields.wait),
    ...defaults(fields.default_loss.value, outcomes),
    combine: fields.combine.value,
    apprentice: fields.apprentice.checked,
  }
}

// Keeps a dialog open and shows the error until `done` accepts the input.
function submitted(dialog, done) {
  const form = dialog.querySelector("form"),
    error = dialog.querySelector(".error")
  form.addEventListener("submit", async event => {
    event.preventDefault()
    try {
      await done(form.elements)
      error.textContent = ""
      form.reset()
      dialog.close()
    } catch (refusal) {
      error.textContent = refusal.message
    }
  })
}

const ERASING = {
  reset: {
    title: "Reset",
    meaning: "This deletes all decisions, losses and models, and restarts the loop with the same settings. It cannot be undone.",
    send: loop => ask(at(loop, "/reset"), { method: "POST" }),
  },
  delete: {
    title: "Delete",
    meaning: "This deletes the loop with all its decisions, losses and models. It cannot be undone.",
    send: loop => ask(at(loop), { method: "DELETE" }),
  },
}
let erasing = null,
  aborting = null

export function prepare({ created, allowed, erased, aborted }) {
  submitted(abort, async () => {
    await ask(at(aborting, "/rollout/abort"), { method: "POST" })
    aborted()
  })
  abort.querySelector("[value=cancel]").onclick = () => abort.close()
  submitted(erase, async fields => {
    const { loop, verb } = erasing
    if (fields.name.value !== loop) throw new Error(`Type ${loop} to confirm.`)
    await ERASING[verb].send(loop)
    erased()
  })
  erase.querySelector("[value=cancel]").onclick = () => erase.close()
  submitted(create, async fields => created((await ask("", { method: "POST", body: settings(fields) })).name))
  submitted(tokens, async fields => {
    token.set(fields.token.value)
    await ask("")
    allowed()
  })
  create.querySelector("[value=cancel]").onclick = () => create.close()
  const choose = () => {
    const kind = create.querySelector("[name=agent]").value
    for (const part of create.querySelectorAll("[data-for]")) part.hidden = !part.dataset.for.split(" ").includes(kind)
  }
  create.querySelector("form").addEventListener("change", choose)
  create.addEventListener("close", choose)
}

export function askToErase(loop, verb) {
  const { title, meaning } = ERASING[verb]
  erasing = { loop, verb }
  erase.querySelector("h2").textContent = `${title} ${loop}?`
  erase.querySelector("[data-is=erase-meaning]").textContent = meaning
  erase.querySelector("[type=submit]").textContent = title
  erase.querySelector(".error").textContent = ""
  erase.querySelector("form").reset()
  erase.showModal()
}

export function askToAbort(loop) {
  aborting = loop
  abort.querySelector("h2").textContent = `Abort the rollout of ${loop}?`
  abort.querySelector(".error").textContent = ""
  abort.showModal()
}

export const askForLoop = () => create.showModal()
export const askForToken = () => tokens.open || tokens.showModal()
