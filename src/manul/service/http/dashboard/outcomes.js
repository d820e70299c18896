// A loop has losses or rewards. The service stores and sends losses; a reward is a negative loss.

export const words = ({ rewards }) =>
  rewards ? { one: "reward", many: "rewards", title: "Reward" } : { one: "loss", many: "losses", title: "Loss" }

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
