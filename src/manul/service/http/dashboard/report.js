// Tables: candidate policies with their intervals, the agent's estimates, and the doctor's findings.
import { clock, count, make, number, text } from "./format.js"
import { knobsOf } from "./knobs.js"
import { words } from "./outcomes.js"

const NAMES = { played: "all decisions", greedy: "without exploration", model: "the model" }
const CONSTANT = "best constant"

const note = text => make("p", { className: "caption", textContent: text })

function table(heads, rows) {
  const cells = (kind, row) =>
    row.map(each =>
      make(
        kind,
        { className: each?.node || typeof each === "string" ? "" : "number", colSpan: each?.span ?? 1 },
        each?.node ?? each?.text ?? each,
      ),
    )
  const element = make("table")
  element.append(
    make("tr", {}, ...cells("th", heads)),
    ...rows.map(({ row, plays }) => make("tr", { className: plays ? "plays" : "" }, ...cells("td", row))),
  )
  return element
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

const named = ({ name, action, knob }, apprentice) => {
  if (name.startsWith("constant")) return [CONSTANT, knob, action === null ? null : text(action)].filter(Boolean).join(" ")
  return name === "played" && apprentice ? "the caller" : NAMES[name]
}

// The number and the interval of a candidate, or why it is not known.
function judged(candidate, ends) {
  if (candidate.loss !== null) return [{ text: number(candidate.loss) }, { node: interval(candidate, ends) }]
  const why = make("span", { className: "caption", textContent: `Cannot be known. ${candidate.note}` })
  return [{ node: why, span: 2 }]
}

export function candidates(box, examined, { actions, apprentice, rewards }) {
  const { one, many } = words({ rewards })
  const policies = examined?.report.candidates ?? []
  if (!policies.length)
    return box.replaceChildren(
      note(`Once ${many} are reported, this compares what was decided with the best constant action.`),
    )
  const known = policies.filter(each => each.loss !== null)
  const low = Math.min(...known.map(each => each.low)),
    high = Math.max(...known.map(each => each.high))
  const room = 0.06 * (high - low || 1)
  const rows = policies.map(each => ({
    row: [named(each, apprentice), ...judged(each, [low - room, high + room])],
    plays: each.name === "played",
  }))
  const who = apprentice
    ? "The caller decides. The model is judged on each decision before it learns from it."
    : "The model decides."
  const constant = knobsOf({ actions }).length < 2 ? "" : " A constant sets one knob, the others as they were."
  const chosen = `The best constant is chosen on one half of them and judged on the other; those that they cannot judge are left out.${constant}`
  const caption = `${who} Estimated ${one} on the last ${count(examined.report.rows)} decisions with 95 % confidence intervals. ${chosen}`
  const range = known.length ? `${number(low)} to ${number(high)}` : ""
  return box.replaceChildren(table(["", { text: one }, range], rows), note(caption))
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

// What exploration cost in the decisions of the report; a cost below 0 by chance is shown as 0.
function cost({ exploration, rows }) {
  if (!rows) return []
  if (!exploration)
    return [note("The cost of exploration is unknown: none of these decisions was drawn from a greedy window of the agent.")]
  const { explored, cost, error, share } = exploration
  const outside = `${count(explored)} of ${count(rows)} decisions were outside the greedy window`
  if (cost < -1.96 * error)
    return [note(`Exploration did not cost but gain ${number(-cost, 2)} ± ${number(error, 1)} per decision: ${outside}.`)]
  const part = share === null ? "" : `${number(100 * Math.max(share, 0), 2)} % of the loss, `
  const each = `${number(Math.max(cost, 0), 2)} ± ${number(error, 1)} per decision`
  return [note(`Exploration cost ${part}${each}: ${outside}.`)]
}

export function beliefs(box, examined) {
  const { members = [], ...others } = examined?.report.beliefs ?? {}
  const spent = examined ? cost(examined.report) : []
  if (!Object.keys(others).length) return box.replaceChildren(...spent)
  const kind = KINDS[members[0] && "weight" in members[0] ? "weight" : "risk"]
  const best = Math.max(...members.map(each => each.weight ?? 0))
  const plays = each => ("weight" in each ? each.weight === best : each.bandwidth === others.bandwidth)
  const rows = members.map(each => ({ row: kind.row(each), plays: plays(each) }))
  const words = Object.entries(others).filter(([, value]) => value !== null && typeof value !== "object")
  const texts = words.map(
    ([name, value]) => `${name.replaceAll("_", " ")} ${typeof value === "number" ? number(value) : value}`,
  )
  return box.replaceChildren(...(rows.length ? [table(kind.heads, rows)] : []), note(`${texts.join(", ")}.`), ...spent)
}

export function findings(box, examined, status) {
  const { many } = words(status)
  const problems = examined?.findings
  if (!problems) return box.replaceChildren(note(`Available once there are decisions with ${many} and known densities.`))
  const paragraphs = problems.map(each =>
    make(
      "p",
      { className: `finding ${each.severity}` },
      make("strong", { textContent: `${each.severity}: ${each.title}. ` }),
      each.sentence,
    ),
  )
  if (!problems.length)
    paragraphs.push(
      make("p", {
        className: "finding good",
        textContent: "No problems found in densities, support, sample size, drift and duplicates.",
      }),
    )
  return box.replaceChildren(
    ...paragraphs,
    note(`Based on the last ${count(examined.report.rows)} decisions with ${many}, at ${clock(examined.time)}.`),
  )
}
