// Tables: candidates with their intervals, what the agent believes, and the doctor's findings.
import { clock, count, make, number } from "./format.js"

const NAMES = { played: "what was played", model: "the model now" }

const note = text => make("p", { className: "caption", textContent: text })

function table(heads, rows) {
  const cells = (kind, row) =>
    row.map(each =>
      make(
        kind,
        { className: each?.node || typeof each === "string" ? "" : "number" },
        each?.node ?? each?.text ?? each,
      ),
    )
  const made = make("table")
  made.append(
    make("tr", {}, ...cells("th", heads)),
    ...rows.map(({ row, plays }) => make("tr", { className: plays ? "plays" : "" }, ...cells("td", row))),
  )
  return made
}

function interval({ loss, low, high }, [from, to]) {
  const at = value => `${(100 * (value - from)) / (to - from || 1)}%`
  const bar = make("i", { style: { left: at(low), width: `${(100 * (high - low)) / (to - from || 1)}%` } })
  return make(
    "div",
    { className: "interval", title: `${number(low)} to ${number(high)}` },
    bar,
    make("b", { style: { left: at(loss) } }),
  )
}

export function candidates(box, examined, { apprentice }) {
  const found = examined?.report.candidates ?? []
  if (!found.length)
    return box.replaceChildren(
      note("Once losses come in, what was played, the model now and the best constant are compared here."),
    )
  const low = Math.min(...found.map(each => each.low)),
    high = Math.max(...found.map(each => each.high))
  const room = 0.06 * (high - low || 1)
  const rows = found.map(each => ({
    row: [
      NAMES[each.name] ?? each.name.replace(/[-\d.e+]+$/, action => number(Number(action))),
      { text: number(each.loss) },
      { node: interval(each, [low - room, high + room]) },
    ],
    plays: each.name === (apprentice ? "played" : "model"),
  }))
  const who = apprentice ? "The caller plays, the model learns beside it." : "The model plays."
  const said = `${who} Loss on the latest ${count(examined.report.rows)} decisions, with 95 % intervals; the model has learned from them, and so looks a little too good.`
  return box.replaceChildren(table(["", { text: "loss" }, `${number(low)} to ${number(high)}`], rows), note(said))
}

function share(weight) {
  return {
    node: make(
      "span",
      { title: `${number(100 * weight)} %` },
      make("i", { className: "share", style: { width: `${4 * weight}rem` } }),
      ` ${number(100 * weight, 2)} %`,
    ),
  }
}

const KINDS = {
  weight: {
    heads: ["member", { text: "error" }, "share"],
    row: each => [each.name, { text: number(each.error) }, share(each.weight)],
  },
  risk: {
    heads: ["bandwidth", { text: "estimate" }, { text: "risk" }],
    row: each => [number(each.bandwidth), { text: number(each.estimate) }, { text: number(each.risk) }],
  },
}

export function beliefs(box, examined) {
  const { members = [], ...others } = examined?.report.beliefs ?? {}
  if (!Object.keys(others).length) return box.replaceChildren()
  const kind = KINDS[members[0] && "weight" in members[0] ? "weight" : "risk"]
  const best = Math.max(...members.map(each => each.weight ?? 0))
  const plays = each => ("weight" in each ? each.weight === best : each.bandwidth === others.bandwidth)
  const rows = members.map(each => ({ row: kind.row(each), plays: plays(each) }))
  const words = Object.entries(others).filter(([, value]) => value !== null && typeof value !== "object")
  const told = words.map(
    ([name, value]) => `${name.replaceAll("_", " ")} ${typeof value === "number" ? number(value) : value}`,
  )
  return box.replaceChildren(...(rows.length ? [table(kind.heads, rows)] : []), note(`${told.join(", ")}.`))
}

export function findings(box, examined) {
  const found = examined?.findings
  if (!found) return box.replaceChildren(note("Examined once there are decisions with losses and known densities."))
  const made = found.map(each =>
    make(
      "p",
      { className: `finding ${each.severity}` },
      make("strong", { textContent: `${each.severity}: ${each.title}. ` }),
      each.sentence,
    ),
  )
  if (!found.length)
    made.push(
      make("p", {
        className: "finding good",
        textContent: "Nothing speaks against it: densities, support, sample, drift and duplicates look right.",
      }),
    )
  return box.replaceChildren(
    ...made,
    note(`From the latest ${count(examined.report.rows)} decisions with losses, at ${clock(examined.time)}.`),
  )
}
