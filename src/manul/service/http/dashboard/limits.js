// The card of limits in expectation: the budget of the current period, and the rate that is kept.
import { Lines } from "./charts.js"
import { clock, count, key, make, number } from "./format.js"

const tile = ([name, value]) => make("div", {}, make("dt", { textContent: name }), make("dd", { textContent: value }))
const percent = share => (share === null ? "–" : `${number(100 * share, 3)}\u00a0%`)

export class LimitsCard {
  constructor(board) {
    this.board = board
    this.box = board.part("limits")
    this.spent = board.chart(Lines, "limits", {
      x: "share of the period, %",
      y: "spent",
      zero: true,
      range: [0, 100],
      series: [{ colour: "accent" }, { colour: "other", dashed: true }],
    })
  }

  refresh({ status, time }) {
    const { budget, kept } = status
    this.box.hidden = !budget && !kept
    this.board.part("budget").hidden = !budget
    this.board.part("kept").hidden = !kept
    if (budget) this.showBudget(budget, time)
    if (kept) this.showKept(kept)
  }

  say(name, sentence) {
    const part = this.board.part(name)
    part.hidden = !sentence
    part.textContent = sentence ?? ""
  }

  showBudget(budget, time) {
    const { formula, amount, period, available, spent, held, left, waiting, pace, forecast, price, latest } = budget
    const named = typeof period === "number" ? `${count(period)} decisions` : period
    this.board.part("budget-about").textContent = `${formula}, at most ${number(amount)} per ${named}`
    this.say("budget-trouble", budget.trouble)
    const tiles = {
      Available: number(available, 4),
      Spent: number(spent, 4),
      "Held back": number(held, 4),
      Left: number(left, 4),
      "Waiting for costs": count(waiting),
      "Share of the plan": percent(pace),
      Forecast: number(forecast, 4),
      Price: number(price),
    }
    this.board.part("budget-tiles").replaceChildren(...Object.entries(tiles).map(tile))
    const slots = budget.planned.length
    const places = Array.from({ length: slots + 1 }, (_, place) => (100 * place) / slots)
    const known = [0, ...budget.spent_by_slot.slice(0, -1)] // the last one is not over
    this.spent.show([places, places.map((_, place) => known[place] ?? null), [0, ...budget.planned]])
    this.board.readings.limits = place =>
      `${number(places[place])} % of the period: ${number(known[place])} spent, ${number([0, ...budget.planned][place])} planned`
    const before = latest.at(-1)
    this.board.caption(
      "limits",
      key("spent", "var(--accent)"),
      key("planned", "var(--other)", "dashed"),
      [
        budget.started === null ? "" : `This period began ${new Date(1000 * budget.started).toLocaleDateString("en-GB")}, ${clock(budget.started)}.`,
        before ? `The period before spent ${number(before.spent, 4)} of ${number(before.available, 4)}.` : "",
      ]
        .filter(Boolean)
        .join(" "),
    )
  }

  showKept({ formula, sign, value, mean, outcomes, price, reachable, trouble }) {
    this.board.part("kept-about").textContent = `${formula} ${sign === ">=" ? "at least" : "at most"} ${number(value)} in the mean`
    this.say("kept-trouble", trouble)
    const tiles = {
      "Mean of the latest 1,000": number(mean, 4),
      Outcomes: count(outcomes),
      Price: number(price),
      "Within reach": number(reachable, 4),
    }
    this.board.part("kept-tiles").replaceChildren(...Object.entries(tiles).map(tile))
  }
}
