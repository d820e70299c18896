// The two dialogs: a new loop, and the token where the service asks for one.
import { ask, token } from "./api.js"

const create = document.getElementById("create"),
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

function settings(fields) {
  const actions = [given(fields.action_low), given(fields.action_high)]
  return {
    name: fields.name.value,
    actions,
    losses: [given(fields.loss_low), given(fields.loss_high)],
    agent: agent(fields, actions[1] - actions[0]),
    wait: given(fields.wait),
    default_loss: given(fields.default_loss),
    combine: fields.combine.value,
    apprentice: fields.apprentice.checked,
  }
}

// Keeps a dialog open, and says why, until `done` takes what was entered.
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

export function prepare({ created, allowed }) {
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

export const askForLoop = () => create.showModal()
export const askForToken = () => tokens.open || tokens.showModal()
