// Several knobs: what is played of each, and heat maps of pairs. A knob is {name, values, ends, names, step}: `values` are the middles
// of its cells, `ends` those of its axis, and `names` the options of a choice.
import { ask, at } from "./api.js"
import { Heat, Lines } from "./charts.js"
import { count, key, make, number, text } from "./format.js"
import { negative, words } from "./outcomes.js"

// Whether a loop has one knob with steps or options, which has no name.
const single = actions => Array.isArray(actions.options) || Number.isFinite(actions.low)

// Names and knobs of a loop in the order of its settings; a nameless one is called "action".
const entries = actions => (single(actions) ? [["action", actions]] : Object.entries(actions))

export function knobsOf({ actions }) {
  if (Array.isArray(actions)) return [{ name: "action", ends: actions }]
  return entries(actions).map(([name, knob]) => {
    if (Array.isArray(knob)) return { name, ends: knob }
    if (knob.options) return { name, ends: [-0.5, knob.options.length - 0.5], names: knob.options.map(text) }
    return { name, ends: [knob.low - knob.step / 2, knob.high + knob.step / 2], step: knob.step }
  })
}

export function describe({ actions }) {
  if (Array.isArray(actions)) return `actions ${number(actions[0])} to ${number(actions[1])}`
  return entries(actions)
    .map(([name, knob]) =>
      knob.options
        ? `${name} ${knob.options.map(text).join(" or ")}`
        : `${name} ${number(knob.low ?? knob[0])} to ${number(knob.high ?? knob[1])}`,
    )
    .join(", ")
}

// An action in the middle of every knob, for the example of a first observation.
export function middleAction({ actions }) {
  if (Array.isArray(actions)) return number((actions[0] + actions[1]) / 2)
  const middle = knob => knob.options?.[0] ?? knob.low ?? Number(number((knob[0] + knob[1]) / 2))
  if (single(actions)) return JSON.stringify(middle(actions))
  return JSON.stringify(Object.fromEntries(Object.entries(actions).map(([name, knob]) => [name, middle(knob)])))
}

// Fills a choice with names, and keeps what is chosen if it can.
export function fill(choice, names, place = 0) {
  if ([...choice.options].map(option => option.value).join("\n") === names.join("\n")) return
  const before = choice.value
  choice.replaceChildren(...names.map(value => make("option", { value, textContent: value })))
  choice.value = names.includes(before) ? before : names[Math.min(place, names.length - 1)]
}

const total = numbers => numbers.reduce((sum, each) => sum + each, 0)

// The value below which a share of the decisions is.
function quantile(values, density, share) {
  let sum = 0
  return values[density.findIndex(each => (sum += each) >= share * total(density))]
}

function options(knob, { values, density }) {
  const most = Math.max(...density)
  const rows = values.map((value, place) =>
    make(
      "tr",
      { className: density[place] === most ? "plays" : "" },
      make("td", { textContent: text(value) }),
      make("td", {}, make("i", { className: "share", style: { width: `${8 * density[place]}rem` } })),
      make("td", { className: "number", textContent: `${number(100 * density[place], 3)} %` }),
    ),
  )
  return make("table", { className: "options" }, ...rows)
}

// One small chart per knob, in the card of its board.
export class KnobCharts {
  constructor(box) {
    this.box = box
    this.charts = {}
  }

  show({ knobs, status }) {
    const { one } = words(status)
    const shapes = knobsOf(status)
    if (!this.figures) {
      this.figures = shapes.map(({ name }) =>
        make("figure", {}, make("figcaption", { textContent: name }), make("div"), make("p", { className: "caption" })),
      )
      this.box.replaceChildren(...this.figures)
    }
    knobs.forEach((knob, place) => {
      const [, body, caption] = this.figures[place].children
      const best = knob.best_constant
      const constant = best
        ? `Best constant: ${text(best.action)}, ${one} ${number(best.loss)} (${number(best.low)} to ${number(best.high)})${shapes.length > 1 ? ", the other knobs as they were set" : ""}.`
        : ""
      if (!knob.density.length) {
        body.replaceChildren(make("p", { className: "caption", textContent: this.reason(status) }))
        caption.textContent = ""
      } else if (shapes[place].names) {
        body.replaceChildren(options(shapes[place], knob))
        caption.textContent = constant
      } else {
        this.draw(body, shapes[place], knob)
        const [low, high] = [0.1, 0.9].map(share => number(quantile(knob.values, knob.density, share)))
        caption.textContent = `80 % of decisions between ${low} and ${high}. ${constant}`
      }
    })
  }

  reason({ decisions }) {
    return decisions
      ? "There are too many combinations of options to show the current distribution."
      : "Request a decision first. The distribution depends on the context."
  }

  draw(body, { name, ends, step }, { values, density }) {
    if (!this.charts[name]) {
      const box = make("div", { className: "chart small" })
      body.replaceChildren(box)
      const series = [step ? { colour: "accent", bars: true } : { colour: "accent", steps: true, area: true }]
      this.charts[name] = new Lines(box, { x: name, y: step ? "probability" : "density", zero: true, range: ends, series })
    }
    const width = (ends[1] - ends[0]) / density.length
    const edges = [...density.map((_, place) => ends[0] + place * width), ends[1]]
    this.charts[name].show(step ? [values, density] : [edges, [...density, density.at(-1)]])
  }
}

// The heat map of two knobs: predicted or recent losses, of which the better ones have a stronger colour.
export class Pair {
  constructor(board) {
    this.board = board
    this.first = board.part("pair-first")
    this.second = board.part("pair-second")
    this.kind = board.part("pair-kind")
    for (const choice of [this.first, this.second, this.kind]) choice.onchange = () => this.refresh()
    const box = board.root.querySelector("[data-chart=pair]")
    this.heat = new Heat(box, { x: "", y: "", read: value => board.read("pair", value) })
  }

  async refresh() {
    const { status } = this.board.summary
    const shapes = knobsOf(status)
    const names = shapes.map(({ name }) => name)
    fill(this.first, names)
    fill(this.second, names, 1)
    if (names.length < 2) return
    const query = `first=${encodeURIComponent(this.first.value)}&second=${encodeURIComponent(this.second.value)}`
    this.view(await ask(at(this.board.name, `/pair?${query}`)), shapes, status)
  }

  view({ first, second, predicted, loss, count: counts }, shapes, status) {
    const { one, many } = words(status)
    const own = value => (value === null || value === undefined ? null : status.rewards ? negative(value) : value)
    const shown = (this.kind.value === "predicted" ? predicted : loss).map(row => row.map(own))
    const known = shown.flat().filter(value => value !== null)
    this.heat.say(known.length ? null : this.reason(status, many))
    if (!known.length) return
    const [worst, best] = (status.rewards ? [Math.min, Math.max] : [Math.max, Math.min]).map(end => end(...known))
    const good = value => (value === null ? null : 0.2 + (0.8 * (value - worst)) / (best - worst || 1))
    const shape = name => shapes.find(each => each.name === name)
    Object.assign(this.heat, { x: first, y: second })
    this.heat.show({
      rows: shown.map(row => row.map(good)),
      edges: { x: shape(first).ends, y: shape(second).ends },
      labels: shape(first).names,
      names: shape(second).names,
      most: 1,
      power: 2,
      value: (_, x, y) =>
        `predicted ${one} ${number(own(predicted[x]?.[y]))}, ${one} of ${count(counts[x][y])} recent decisions ${number(own(loss[x][y]))}`,
    })
    this.board.caption(
      "pair",
      key(`${one} ${number(worst)} to ${number(best)}; a stronger colour is better`, "", "ramp"),
      this.kind.value === "predicted"
        ? "Predicted by the model in the latest contexts, the other knobs at their best."
        : `Mean ${one} of the latest ${count(counts.flat().reduce((sum, each) => sum + each, 0))} decisions with an outcome.`,
    )
  }

  reason({ losses, decisions }, many) {
    if (this.kind.value === "recent") return `Shows recent decisions once ${many} are reported.`
    return losses === "auto" && decisions
      ? `The model predicts ${many} on a scale of its own, because their range is not declared. Choose recent decisions.`
      : "Request a decision first."
  }
}
