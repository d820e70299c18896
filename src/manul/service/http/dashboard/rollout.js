// The card of a rollout: its state, what the next step needs, the traffic of both arms, the evidence, and the moves.
import { ask, at } from "./api.js"
import { Lines } from "./charts.js"
import { clock, count, key, make, number, seconds } from "./format.js"
import { negative, words } from "./outcomes.js"

// The newest moves that the table shows.
const MOVES = 12
const LOOKS = { "rolled back": "back", aborted: "back", paused: "paused", "stepped down": "paused" }
const percent = share => `${number(100 * share, 3)}\u00a0%`

// A rollout in the units of the user: if the loop has rewards, an excess of losses is a lack of rewards.
function inOwnUnits(rollout) {
  if (!rollout.rewards) return rollout
  const turn = ({ low, high, ...rest }) => (rest.guard ? { ...rest, low, high } : { ...rest, low: negative(high), high: negative(low) })
  return {
    ...rollout,
    learner_loss: negative(rollout.learner_loss),
    baseline_loss: negative(rollout.baseline_loss),
    excess: rollout.excess && [negative(rollout.excess[1]), negative(rollout.excess[0])],
    moves: rollout.moves.map(turn),
    looks: rollout.looks.map(turn),
  }
}

// Bounds that are farther away than losses allow say no more than the farthest possible difference.
function within(rollout, [lowest, highest]) {
  const most = highest - lowest + rollout.tolerance * Math.max(Math.abs(lowest), Math.abs(highest))
  const clip = value => (value === null ? null : Math.max(-most, Math.min(most, value)))
  const both = each => (each.guard ? each : { ...each, low: clip(each.low), high: clip(each.high) })
  return { ...rollout, excess: rollout.excess?.map(clip), moves: rollout.moves.map(both), looks: rollout.looks.map(both) }
}

// The state in one word or two; a rollout that waits says where it came from.
function stateOf({ status, moves }) {
  if (status !== "waiting") return status
  const last = moves.findLast(({ by }) => by === "evidence")
  return last ? { "not worse": "stepping up", worse: "stepped down" }[last.reason] : "waiting"
}

// Decisions per second in the last five minutes, since the first of them.
function rateOf({ decisions }) {
  const since = decisions.findIndex(each => each > 0)
  const recent = since < 0 ? [] : decisions.slice(since)
  return recent.reduce((sum, each) => sum + each, 0) / Math.max(1, recent.length)
}

// A time with its day, unless that is today.
function when(time, now) {
  const day = moment => new Date(1000 * moment).toLocaleDateString("en-GB", { day: "numeric", month: "short" })
  return day(time) === day(now) ? clock(time) : `${day(time)}, ${clock(time)}`
}

function next({ status, needed, not_before, unsent }, rate, now) {
  const texts = []
  if (status === "waiting" && needed !== null)
    texts.push(
      rate > 0
        ? `At ${number(rate)} decisions per second, the mean of the last five minutes, ${count(needed)} decisions take about ${seconds(Math.max(1, needed / rate), 2)}.`
        : "There were no decisions in the last five minutes.",
    )
  if (not_before !== null) texts.push(`The next step does not begin before ${when(not_before, now)}.`)
  if (unsent) texts.push(`The webhook has not received ${unsent === 1 ? "one move" : `${count(unsent)} moves`} yet.`)
  return texts.join(" ")
}

const stated = (action) => {
  if (typeof action !== "object") return typeof action === "number" ? number(action) : String(action)
  const values = Object.entries(action).map(([name, value]) => `${name} ${stated(value)}`)
  return values.join(", ")
}

function describe({ baseline, tolerance, confidence, holdout }) {
  const whose = { caller: "the caller's action", policy: "a saved policy" }[baseline] ?? stated(baseline)
  return `baseline ${whose}, tolerance ${percent(tolerance)}, confidence ${percent(confidence)}, holdout ${percent(holdout)}`
}

const interval = (low, high, digits = 3) => `${number(low, digits)} to ${number(high, digits)}`

function reasonOf({ reason, low, high, guard }) {
  const bounds = low === null || high === null ? "" : `, difference ${interval(low, high)}`
  const texts = {
    started: "started by the owner",
    restarted: "started again by the owner: a new test",
    "not worse": `proven not worse${bounds}`,
    worse: `proven worse${guard ? ` in ${guard}` : ""}${bounds}`,
    "model replaced": "model replaced by the owner: a new test from the first step",
  }
  return texts[reason] ?? `${reason} by the owner`
}

const stepOf = (step, shares) => (step ? `step ${step}, ${percent(shares[step - 1])}` : "baseline")

function movesTable({ moves, steps, holdout }, now) {
  const shares = steps.map(each => Math.min(each, 1 - holdout))
  const rows = moves
    .slice(-MOVES)
    .reverse()
    .map(move =>
      make(
        "tr",
        {},
        make("td", { textContent: when(move.time, now) }),
        make("td", { textContent: stepOf(move.target, shares) }),
        make("td", { textContent: reasonOf(move) }),
        make("td", { className: "number", textContent: count(move.judged) }),
      ),
    )
  const titles = ["When", "To", "Why"].map(textContent => make("th", { textContent }))
  const head = make("tr", {}, ...titles, make("th", { className: "number", textContent: "Judged" }))
  const earlier = moves.length - rows.length
  const rest = earlier ? [make("p", { className: "caption", textContent: `${count(earlier)} earlier moves are not shown.` })] : []
  return [make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)), ...rest]
}

export class RolloutCard {
  constructor(board, change, abort) {
    this.board = board
    this.card = board.part("rollout")
    for (const verb of ["pause", "resume"]) this.button(verb).onclick = () => change(`rollout/${verb}`)
    this.button("abort").onclick = abort
  }

  button(verb) {
    return this.card.querySelector(`[data-do="rollout/${verb}"]`)
  }

  part(name) {
    return this.board.part(`rollout-${name}`)
  }

  async refresh({ rollout: exists, status, traffic, time }) {
    this.card.hidden = !exists
    if (!exists) return
    const rollout = inOwnUnits(within(await ask(at(status.name, "/rollout")), status.losses))
    this.head(rollout, rateOf(traffic), time)
    this.tiles(rollout, words(status))
    this.traffic(rollout, time, words(status))
    this.excess(rollout, time, words(status))
    this.part("moves").replaceChildren(...movesTable(rollout, time))
  }

  head(rollout, rate, now) {
    const state = stateOf(rollout)
    Object.assign(this.part("state"), { textContent: state, className: `badge ${LOOKS[state] ?? ""}` })
    this.part("limited").hidden = !rollout.limited
    this.part("about").textContent = describe(rollout)
    this.part("sentence").textContent = rollout.sentence
    const forecast = next(rollout, rate, now)
    Object.assign(this.part("next"), { textContent: forecast, hidden: !forecast })
    const running = rollout.step > 0
    const shown = { pause: running && state !== "paused" && state !== "done", resume: state === "paused", abort: running }
    for (const [verb, visible] of Object.entries(shown)) this.button(verb).hidden = !visible
    this.part("steps").replaceChildren(
      ...[0, ...rollout.steps].map((share, step) =>
        make("li", {
          textContent: step ? percent(Math.min(share, 1 - rollout.holdout)) : "baseline only",
          className: step === rollout.step ? "current" : step < rollout.step ? "reached" : "",
        }),
      ),
    )
  }

  tiles(rollout, { one }) {
    const tiles = {
      "Learner's traffic": percent(rollout.traffic),
      [`Learner's mean ${one}`]: number(rollout.learner_loss),
      [`Baseline's mean ${one}`]: number(rollout.baseline_loss),
      Difference: rollout.excess ? interval(...rollout.excess, 2) : "–",
      "Budget spent": `${rollout.spent > 0 ? number(rollout.spent) : "none"} of ${number(rollout.budget)}`,
      "Learner's decisions": count(rollout.learner_decisions),
      "Baseline's decisions": count(rollout.baseline_decisions),
      "Not judged yet": count(rollout.in_flight),
    }
    if (rollout.learner_left_out || rollout.baseline_left_out)
      tiles[`No ${one} in time`] = `${count(rollout.learner_left_out)} and ${count(rollout.baseline_left_out)}`
    for (const { name, state, learner, baseline } of rollout.guards)
      tiles[`Guard ${name}`] = learner === null || baseline === null ? state : `${state}: ${number(learner)} against ${number(baseline)}`
    this.part("tiles").replaceChildren(
      ...Object.entries(tiles).map(([name, value]) =>
        make("div", {}, make("dt", { textContent: name }), make("dd", { textContent: value })),
      ),
    )
  }

  chart(name, options) {
    return this.board.chart(Lines, `rollout-${name}`, { time: true, ...options })
  }

  traffic(rollout, now, { many }) {
    this.shares ??= this.chart("traffic", {
      y: "% of decisions",
      zero: true,
      series: [
        { colour: "accent", steps: true, area: true },
        { colour: "other", steps: true, dashed: true },
      ],
    })
    const { looks, moves, started, traffic } = rollout
    const aborted = moves.filter(({ reason }) => reason === "aborted").map(({ time }) => ({ time, traffic: 0 }))
    const first = { time: started, traffic: looks[0]?.traffic ?? traffic, learner: 0, baseline: 0 }
    const points = [first, ...looks, ...aborted].sort((a, b) => a.time - b.time)
    points.push({ time: Math.max(now, points.at(-1).time), traffic })
    const learner = points.map(each => 100 * each.traffic)
    this.shares.show([points.map(({ time }) => time), learner, learner.map(each => 100 - each)])
    this.board.readings["rollout-traffic"] = place => {
      const { time, traffic: share, learner: ours, baseline } = points[place]
      const counts = ours === undefined ? "" : `; ${count(ours)} and ${count(baseline)} ${many} so far`
      return `${when(time, now)}: learner ${percent(share)}, baseline ${percent(1 - share)}${counts}`
    }
    this.board.caption(
      "rollout-traffic",
      key(`learner, currently ${percent(traffic)}`, "var(--accent)"),
      key(`baseline, currently ${percent(1 - traffic)}`, "var(--other)", "dashed"),
    )
  }

  excess(rollout, now, { one }) {
    this.difference ??= this.chart("excess", {
      y: `difference of the mean ${one}`,
      bands: [[2, 1]],
      series: [{ colour: "accent" }, { colour: "accent" }, { colour: "other", dashed: true }],
    })
    this.part("excess-title").textContent = rollout.rewards
      ? "Learner's reward minus the least that is tolerated"
      : "Learner's loss minus the most that is tolerated"
    const points = evidence(rollout, now)
    this.difference.say(points.some(({ low }) => low !== null) ? null : "Nothing is known about the difference yet.")
    this.difference.show([
      points.map(({ time }) => time),
      points.map(({ low }) => low),
      points.map(({ high }) => high),
      points.map(() => 0),
    ])
    this.board.readings["rollout-excess"] = place =>
      `${when(points[place].time, now)}: ${points[place].low === null ? "no bounds yet" : interval(points[place].low, points[place].high)}`
    this.board.caption(
      "rollout-excess",
      key(`bounds, wrong at any time with a chance of at most ${percent(1 - rollout.confidence)}`, "", "area"),
      key(`0: ${rollout.rewards ? "above it" : "below it"}, the learner is not worse`, "var(--other)", "dashed"),
    )
  }
}

// The bounds over time. A move on evidence ends a test with its last bounds; the next test begins without any.
function evidence({ looks, moves, started, excess }, now) {
  const proofs = moves.filter(({ by, guard }) => by === "evidence" && !guard)
  const points = [...looks.map(each => ({ ...each, order: 1 })), ...proofs.map(each => ({ ...each, order: 0 }))]
  points.sort((a, b) => a.time - b.time || a.order - b.order)
  const known = points.map(({ time, low, high }) => (low === null || high === null ? { time, low: null, high: null } : { time, low, high }))
  const [low, high] = excess ?? [null, null]
  const last = { time: Math.max(now, known.at(-1)?.time ?? now), low, high }
  return [{ time: started, low: null, high: null }, ...known, last]
}
