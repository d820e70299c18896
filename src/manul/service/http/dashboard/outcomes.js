// A loop has losses or rewards. The service stores and sends losses; a reward is a negative loss.

export const words = ({ rewards }) =>
  rewards ? { one: "reward", many: "rewards", title: "Reward" } : { one: "loss", many: "losses", title: "Loss" }

// How the outcome is computed, if it is: "profit = (action - cost) * bought".
export const formulaOf = ({ formula, parts }) =>
  formula ? `${formula}, of ${Object.entries(parts).map(([name, kind]) => `${name} (${kind})`).join(" and ")}` : null

// The member of an example of a report: values of the parts, or of the outcome itself.
export function reportOf(status) {
  if (!status.parts) return `"${words(status).one}": 0.25`
  const values = Object.entries(status.parts).map(([name, kind]) => [name, { "yes/no": true, count: 3 }[kind] ?? 12.3])
  return `"parts": ${JSON.stringify(Object.fromEntries(values))}`
}

// The context of an example; it has the numbers that the formula needs.
export function contextOf({ formula, parts, actions }) {
  const names = formula?.replace(/'[^']*'|"[^"]*"/g, "").match(/[A-Za-z_]\w*/g) ?? []
  const known = ["action", "and", "or", "not", "if", "else", "in", "min", "max", "abs", "exp", "log", "True", "False"]
  const own = [...known, ...Object.keys(parts ?? {}), ...Object.keys(actions)]
  const fields = names.filter(name => !own.includes(name))
  return fields.length ? JSON.stringify(Object.fromEntries(fields.map(name => [name, 1.2]))) : "[0.3, 1.2]"
}

// What a decision without a report counts as.
export const defaultOf = ({ default_loss, default_parts }, number) =>
  default_parts
    ? Object.entries(default_parts)
        .map(([name, value]) => `${name} ${value === true ? "yes" : value === false ? "no" : value}`)
        .join(", ")
    : number(default_loss)

export const negative = value => (value === null || value === undefined ? value : 0 - value)
const negateInterval = each => ({ ...each, loss: negative(each.loss), low: negative(each.high), high: negative(each.low) })

// The summary of a loop in the units of the user: of a loop of rewards, every loss is replaced by its reward.
export function inOwnUnits(summary) {
  const { status, history, examined, knobs } = summary
  if (!status.rewards) return summary
  const constant = best => best && negateInterval(best)
  return {
    ...summary,
    status: { ...status, mean_loss: negative(status.mean_loss), default_loss: negative(status.default_loss) },
    history: {
      ...history,
      loss: history.loss.map(negative),
      low: history.high.map(negative),
      high: history.low.map(negative),
      best_constant: constant(history.best_constant),
    },
    knobs: knobs?.map(each => ({ ...each, best_constant: constant(each.best_constant) })),
    examined: examined && {
      ...examined,
      report: { ...examined.report, candidates: examined.report.candidates.map(negateInterval) },
    },
  }
}
