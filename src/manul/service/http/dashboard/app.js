// The page: chooses the loop to show, and refreshes it every two seconds while the page is visible.
import { ask, at, trouble } from "./api.js"
import { Board } from "./board.js"
import { forgetAll, redrawAll } from "./charts.js"
import { make } from "./format.js"
import { askForLoop, askForToken, askToAbort, askToErase, prepare } from "./forms.js"

const PERIOD = 2000
const main = document.getElementById("main"),
  notice = document.getElementById("notice"),
  chooser = document.getElementById("loops")
let board = null,
  turn = 0,
  busy = false

const wanted = () => decodeURIComponent(location.hash.slice(1))

function say(sentence = "") {
  notice.textContent = sentence
  notice.hidden = !sentence
}

function show(name) {
  forgetAll()
  const content = document.getElementById(name ? "board" : "welcome").content.cloneNode(true)
  main.replaceChildren(content)
  board = name ? new Board(main, name, { change, erase: askToErase, abort: () => askToAbort(name) }) : null
  for (const button of main.querySelectorAll("[data-do=new]")) button.onclick = askForLoop
}

// Loops that cannot be read, which can only be deleted.
function showBroken(loops) {
  const list = document.getElementById("out-of-service")
  list.hidden = !loops.length
  list.replaceChildren(
    ...loops.map(({ name, trouble }) =>
      make("li", {}, `${name}: ${trouble} `, make("button", { textContent: "Delete", onclick: () => askToErase(name, "delete") })),
    ),
  )
}

async function choose() {
  const { loops, out_of_service: broken } = await ask("")
  showBroken(broken)
  const names = loops.map(loop => loop.name)
  const name = names.includes(wanted()) ? wanted() : names[0]
  chooser.parentElement.hidden = !names.length
  if ([...chooser.options].map(option => option.value).join("\n") !== names.join("\n"))
    chooser.replaceChildren(...names.map(each => make("option", { value: each, textContent: each })))
  if (name) chooser.value = name
  if (board?.name !== name || !main.children.length) show(name)
}

async function refresh() {
  if (busy || document.hidden) return
  busy = true
  try {
    if (turn % 5 === 0) await choose()
    await board?.refresh(turn % 3 === 0)
    turn += 1
    say(await trouble())
  } catch (refusal) {
    showRefusal(refusal)
  } finally {
    busy = false
  }
}

function showRefusal(refusal) {
  if (refusal.status === 401) return askForToken()
  if (refusal.status === 404) turn = 0
  return say(refusal.message)
}

async function change(verb) {
  try {
    await ask(at(board.name, `/${verb}`), { method: "POST" })
    await board.refresh(true)
    say()
  } catch (refusal) {
    showRefusal(refusal)
  }
}

async function again() {
  turn = 0
  if (board) main.replaceChildren()
  await refresh()
}

function switchTheme() {
  const root = document.documentElement
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches
  root.dataset.theme = dark ? "light" : "dark"
  localStorage.setItem("manul-theme", root.dataset.theme)
  redrawAll()
}

prepare({
  created: name => {
    location.hash = encodeURIComponent(name)
    again()
  },
  allowed: again,
  erased: again,
  aborted: () => board?.refresh(false),
})
document.getElementById("new").onclick = askForLoop
document.getElementById("theme").onclick = switchTheme
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll)
chooser.onchange = () => {
  location.hash = encodeURIComponent(chooser.value)
}
addEventListener("hashchange", again)
document.addEventListener("visibilitychange", refresh)
setInterval(refresh, PERIOD)
refresh()
