// Everything about one loop: shows the responses of /summary and /policy.
import { ask, at } from "./api.js"
import { Heat, Lines } from "./charts.js"
import { clock, count, key, make, milliseconds, number, seconds, text as shown } from "./format.js"
import { describe, fill, KnobCharts, knobsOf, middleAction, Pair } from "./knobs.js"
import { LimitsCard } from "./limits.js"
import { contextOf, defaultOf, formulaOf, inOwnUnits, reportOf, words } from "./outcomes.js"
import { beliefs, candidates, findings } from "./report.js"
import { RolloutCard } from "./rollout.js"

export class Board {
  constructor(root, name, { change, erase, abort }) {
    this.root = root
    this.name = name
    for (const verb of ["reset", "delete"]) root.querySelector(`[data-do=${verb}]`).onclick = () => erase(name, verb)
    for (const verb of ["pause", "resume", "promote"])
      root.querySelector(`[data-do=${verb}]`).onclick = () => change(verb)
    this.part("span").onchange = () => this.refresh(false)
    for (const name of ["feature", "knob"]) this.part(name).onchange = () => this.refresh(true)
    const chart = (kind, place, options) =>
      new kind(root.querySelector(`[data-chart=${place}]`), { ...options, read: value => this.read(place, value) })
    this.loss = chart(Lines, "loss", {
      y: "loss",
      time: true,
      bands: [[3, 2]],
      series: [{ colour: "accent" }, { quiet: true }, { quiet: true }, { colour: "other", dashed: true }],
    })
    this.rate = chart(Lines, "rate", {
      y: "decisions per second",
      time: true,
      zero: true,
      series: [{ colour: "accent", area: true }],
    })
    this.latency = chart(Lines, "latency", {
      y: "milliseconds",
      time: true,
      zero: true,
      series: [{ colour: "accent" }, { colour: "other", dashed: true }],
    })
    this.waits = chart(Lines, "waits", {
      y: "losses",
      time: true,
      zero: true,
      values: whole,
      series: [
        { colour: "accent", bars: true },
        { colour: "other", bars: true },
      ],
    })
    this.moved = chart(Heat, "moved", { y: "action", time: true })
    this.knobs = new KnobCharts(this.part("knobs"))
    this.chart = chart
    this.rollout = new RolloutCard(this, change, abort)
    this.limits = new LimitsCard(this)
  }

  part(name) {
    return this.root.querySelector(`[data-is="${name}"]`)
  }

  caption(name, ...content) {
    this.captions = { ...this.captions, [name]: content }
    this.part(`${name}-caption`).replaceChildren(...content)
  }

  // Shows the value under the cursor instead of the caption.
  read(name, value) {
    const text =
      typeof value === "string" ? value : value === null || value === undefined ? null : this.readings?.[name]?.(value)
    this.part(`${name}-caption`).replaceChildren(...(text ? [text] : (this.captions?.[name] ?? [])))
  }

  async refresh(policy) {
    const summary = inOwnUnits(await ask(at(this.name, `/summary?span=${this.part("span").value}`)))
    summary.status.apprentice &&= !summary.rollout // with a rollout, an apprentice decides
    const { one, many, title } = words(summary.status)
    this.loss.label(one)
    this.waits.label(many)
    this.part("loss-title").textContent = `${title} over time`
    this.part("waits-title").textContent = `Late and default ${many}`
    this.summary = summary
    this.readings = {}
    this.several = Boolean(summary.knobs)
    for (const part of this.root.querySelectorAll("[data-several]"))
      part.hidden = this.several !== (part.dataset.several === "yes")
    const shapes = knobsOf(summary.status)
    fill(this.part("knob"), shapes.map(({ name }) => name))
    this.place = Math.max(0, this.part("knob").selectedIndex)
    this.knob = shapes[this.place]
    this.head(summary)
    this.past(summary)
    if (this.several) await this.showKnobs(summary, policy)
    else this.now(summary)
    this.traffic(summary)
    this.waiting(summary)
    await this.rollout.refresh(summary)
    this.limits.refresh(summary)
    candidates(this.part("candidates"), summary.examined, summary.status)
    beliefs(this.part("beliefs"), summary.examined)
    findings(this.part("findings"), summary.examined, summary.status)
    if (policy || (summary.features.length && !this.policy?.plot)) await this.against(summary.features)
  }

  head({ status, history }) {
    const best = history.best_constant,
      { one, many } = words(status)
    this.part("name").textContent = status.name
    const state = status.paused ? "paused" : status.apprentice ? "apprentice" : "deciding"
    Object.assign(this.part("state"), { textContent: state, className: `badge ${state}` })
    this.part("trouble").hidden = !status.trouble
    this.part("trouble").textContent = `not ready: ${status.trouble}`
    const explored = status.epsilon == null ? "" : `, explores ${Number((100 * status.epsilon).toPrecision(2))} %`
    const formula = formulaOf(status)
    const computed = formula ? `, ${words(status).one} ${formula}` : ""
    this.part("about").textContent = `${describe(status)}${computed}, agent ${status.agent.kind}${explored}`
    const shown = { pause: !status.paused, resume: status.paused, promote: status.apprentice }
    for (const [verb, visible] of Object.entries(shown)) this.root.querySelector(`[data-do=${verb}]`).hidden = !visible
    const tiles = {
      Decisions: count(status.decisions),
      Learned: count(status.learned),
      [status.wait === null ? `Without ${one}` : "Waiting"]: count(status.waiting),
      [`Late ${many}`]: count(status.late),
      [`Default ${many}`]: count(status.defaulted),
      Refused: count(status.refused),
      [`Mean ${one}`]: number(status.mean_loss),
      ...(this.several ? {} : { "Best constant": best ? number(best.loss) : "not known" }),
    }
    this.part("tiles").replaceChildren(
      ...Object.entries(tiles).map(([name, value]) =>
        make("div", {}, make("dt", { textContent: name }), make("dd", { textContent: value })),
      ),
    )
    if (best && !this.several)
      this.part("tiles").lastChild.append(
        make("dd", { className: "caption", textContent: `${number(best.low)} to ${number(best.high)}` }),
      )
    this.part("start").hidden = status.decisions > 0
    this.part("first").textContent = status.apprentice ? "Report the first observation" : "Request the first decision"
    if (!status.decisions) this.part("commands").textContent = commands(status)
  }

  async showKnobs(summary, policy) {
    this.knobs.show(summary)
    this.pair ??= new Pair(this)
    if (policy || !this.pair.heat.plot) await this.pair.refresh()
  }

  past({ history, status, knobs, examined }) {
    const times = history.outcomes.map((_, place) => history.start + (place + 0.5) * history.seconds)
    const best = history.best_constant,
      { one, many } = words(status)
    const settled = history.loss.some(each => each !== null)
    this.loss.say(
      settled
        ? null
        : status.paused
          ? `Paused: ${many} are stored, and shown once they are learned.`
          : status.wait !== null && status.decisions
            ? `No wait is over yet: ${many} are learned and shown ${seconds(status.wait)} after their decisions.`
            : `No ${many} yet. Report the ${one} of a decision to start the curve.`,
    )
    this.moved.say(settled ? null : `Shows the actions over time once ${many} are reported.`)
    if (!settled) return
    this.loss.show([times, history.loss, history.low, history.high, times.map(() => best?.loss ?? null)])
    this.readings.loss = place =>
      `${clock(times[place])}: ${number(history.loss[place])} (${number(history.low[place])} to ${number(history.high[place])}) over ${count(history.outcomes[place])} ${many}`
    this.caption(
      "loss",
      key(`mean ${one} in intervals of ${seconds(history.seconds)}`, "var(--accent)"),
      key("95 % confidence interval", "", "area"),
      ...(best
        ? [
            key(
              `best constant action on the last ${count(examined.report.rows)} decisions, ${shown(best.action)}: ${number(best.loss)} (${number(best.low)} to ${number(best.high)})`,
              "var(--other)",
              "dashed",
            ),
          ]
        : []),
      make("span", { className: "key", textContent: `at the time of the decision${unfinished(status)}` }),
    )
    const played = knobs ? knobs[this.place].played : history.played
    const { name, ends, names, step } = this.knob
    const discrete = names || step
    const rows = played.map(row => shares(row, discrete ? 1 : (ends[1] - ends[0]) / row.length))
    const edges = { x: [history.start, history.start + history.seconds * rows.length], y: ends }
    const most = strongest(rows)
    const what = discrete ? "share" : "density"
    this.moved.y = name
    this.moved.show({ rows, edges, names, most, value: value => `${what} ${number(value)}` })
    this.caption("moved", key(`${what} of the actions, 0 to ${number(most)}${discrete ? "" : " per unit"}`, "", "ramp"))
  }

  now({ density, status }) {
    const [low, high] = status.actions
    this.density ??= this.chart(Lines, "density", {
      x: "action",
      y: "density",
      zero: true,
      range: status.actions,
      series: [{ colour: "accent", steps: true, area: true }],
    })
    this.density.say(density.length ? null : `${first(status)}. The density depends on the context.`)
    if (!density.length) return
    const width = (high - low) / density.length
    const edges = [...density.map((_, place) => low + place * width), high]
    this.density.show([edges, [...density, density.at(-1)]])
    const total = density.reduce((sum, each) => sum + each, 0)
    const at = share => {
      let sum = 0
      const place = density.findIndex(each => (sum += each) >= share * total)
      return low + (place + 0.5) * width
    }
    const mean = density.reduce((sum, each, place) => sum + each * (low + (place + 0.5) * width), 0) / total
    this.readings.density = place =>
      `action ${number(edges[place])} to ${number(edges[Math.min(place + 1, density.length)])}: density ${number(density[Math.min(place, density.length - 1)])}`
    this.caption(
      "density",
      `Mean action ${number(mean)}; 80 % of actions between ${number(at(0.1))} and ${number(at(0.9))}. Density per unit of action, averaged over the latest contexts.`,
    )
  }

  traffic({ traffic }) {
    const times = traffic.decisions.map((_, place) => traffic.start + (place + 0.5) * traffic.seconds)
    const busy = traffic.decisions.some(each => each > 0)
    this.rate.show([times, traffic.decisions])
    this.latency.say(busy ? null : "No decisions in the last five minutes.")
    this.latency.show([times, traffic.median, traffic.slowest])
    const last = traffic.median.findLastIndex(each => each !== null)
    this.caption(
      "rate",
      `Current: ${number(traffic.decisions.at(-1))}. Maximum of the last five minutes: ${number(Math.max(...traffic.decisions))}.`,
    )
    this.caption(
      "latency",
      key(`median, currently ${milliseconds(traffic.median[last])}`, "var(--accent)"),
      key(`p99, currently ${milliseconds(traffic.slowest[last])}`, "var(--other)", "dashed"),
    )
    this.readings.rate = place => `${clock(times[place])}: ${number(traffic.decisions[place])} decisions per second`
    this.readings.latency = place =>
      `${clock(times[place])}: median ${milliseconds(traffic.median[place])}, p99 ${milliseconds(traffic.slowest[place])}`
  }

  waiting({ history, status }) {
    const times = history.outcomes.map((_, place) => history.start + (place + 0.5) * history.seconds)
    const { one, many } = words(status)
    const any = [...history.late, ...history.defaulted].some(each => each > 0)
    const rule =
      status.wait === null
        ? `This loop has no time limit for ${many}, so none is late.`
        : `A ${one} is learned ${seconds(status.wait)} after its decision; if none has come, the default of ${defaultOf(status, number)}.`
    this.waits.say(any ? null : status.wait === null ? rule : `${rule} No late or default ${many} in this period.`)
    const both = history.defaulted.map((each, place) => each + history.late[place])
    if (any) this.waits.show([times, positive(both), positive(history.late)])
    this.caption(
      "waits",
      make("span", {
        className: "key",
        textContent: `${count(status.waiting)} decisions ${status.wait === null ? `without a ${one}` : "whose wait is not over"}`,
      }),
      ...(any
        ? [
            key(`default, ${count(status.defaulted)} in total`, "var(--accent)", "block"),
            key(`late, ${count(status.late)} in total`, "var(--other)", "block"),
          ]
        : []),
    )
    this.readings.waits = place =>
      `${clock(times[place])}: ${count(history.defaulted[place])} default, ${count(history.late[place])} late`
  }

  async against(features) {
    const choice = this.part("feature")
    if ([...choice.options].map(option => option.value).join("\n") !== features.join("\n")) {
      const before = choice.value
      choice.replaceChildren(...features.map(value => make("option", { value, textContent: this.named(value) })))
      if (features.includes(before)) choice.value = before
    }
    choice.parentElement.hidden = !features.length
    const box = this.root.querySelector("[data-chart=policy]")
    this.policy ??= new Heat(box, { x: "feature", y: "action", read: value => this.read("policy", value) })
    this.policy.y = this.knob.name
    this.policy.say(
      features.length
        ? null
        : this.summary.status.decisions
          ? "The contexts of this loop are empty, so the density is always the same."
          : `${first(this.summary.status)} to see its features.`,
    )
    if (!features.length) return
    const knob = this.several ? `&knob=${encodeURIComponent(this.knob.name)}` : ""
    this.view(await ask(at(this.name, `/policy?feature=${encodeURIComponent(choice.value)}${knob}`)))
  }

  named(feature) {
    return /^\d+$/.test(feature) ? `number ${Number(feature) + 1}` : feature
  }

  view({ feature, values, typical, density, mean }) {
    if (!values.length) return this.policy.say("This feature has no values yet.")
    if (!density[0].length) return this.policy.say("There are too many combinations of options to show the policy.")
    const discrete = this.knob.names || this.knob.step
    const what = discrete ? "probability" : "density"
    const texts = typeof values[0] === "string" || values.length === 1
    const ends = texts ? [-0.5, values.length - 0.5] : widened(values)
    this.policy.x = this.named(feature)
    if (this.shown !== feature) this.policy.shape = null
    this.shown = feature
    const labels = texts ? values.map(each => (typeof each === "string" ? each : number(each))) : undefined
    const most = Math.max(...density.flat())
    this.policy.show({
      rows: density,
      most,
      edges: { x: ends, y: this.knob.ends },
      labels,
      names: this.knob.names,
      line: mean,
      value: value => `${what} ${number(value)}`,
    })
    const usual = typeof typical === "number" ? number(typical) : typical
    return this.caption(
      "policy",
      key(`${what}, 0 to ${number(most)}`, "", "ramp"),
      ...(mean.length ? [key("mean action", "var(--other)")] : []),
      `Other features at typical values; ${this.named(feature)} is typically ${usual}.`,
    )
  }
}

const whole = value => (Number.isInteger(value) ? count(value) : "")
const positive = values => values.map(value => value || null)

const widened = values => {
  const half = (values.at(-1) - values[0]) / (values.length - 1) / 2
  return [values[0] - half, values.at(-1) + half]
}

// The 99th percentile, so that a few extreme cells do not make all others pale.
function strongest(rows) {
  const filled = rows
    .flat()
    .filter(value => value > 0)
    .sort((a, b) => a - b)
  return filled[Math.floor(0.99 * (filled.length - 1))] ?? 1
}

const first = ({ apprentice }) => (apprentice ? "Report an observation first" : "Request a decision first")

const unfinished = ({ wait }) => (wait === null ? "" : `; those of the last ${seconds(wait)} still wait`)

function shares(row, part) {
  const total = row.reduce((sum, each) => sum + each, 0)
  return row.map(each => (total ? each / total / part : 0))
}

function commands(status) {
  const { name, apprentice } = status,
    context = contextOf(status),
    report = reportOf(status)
  const here = new URL(`v1/loops/${name}`, location.href).href.split("#")[0]
  if (apprentice)
    return `curl ${here}/observations -d '{"context": ${context}, "action": ${middleAction(status)}, ${report}}'`
  const id = "order-1"
  return `curl ${here}/decisions -d '{"context": ${context}, "id": "${id}"}'\ncurl ${here}/decisions/${id}/loss -d '{${report}}'`
}
