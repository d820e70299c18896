// Simulates whole loops over a table: decide, observe the loss, learn.
#pragma once

#include "play/exploration.hpp"

namespace manul {

enum class Loss : std::uint8_t { absolute, squared, knots };

// The loss of every action of every round. A regression has one knot per round, its target; the loss is the distance to
// it as a share of the range of actions. Otherwise the loss is linear between ascending knots; two knots at one
// position are a jump, where the loss is that of the first.
struct Table {
  const float* contexts;
  std::size_t width;
  Loss loss;
  Range actions;
  std::size_t knots;
  const double* positions;
  const double* values;
  const double* lows;  // null, like `highs`, if every round has the whole range
  const double* highs;

  ContextView context(std::size_t row) const { return {ContextKind::row, contexts + row * width, width}; }

  Range within(std::size_t row) const { return lows == nullptr ? actions : Range{lows[row], highs[row]}; }

  double loss_at(std::size_t row, double action) const {
    if (loss == Loss::knots) return interpolate(positions + row * knots, values + row * knots, action);
    const double error = (action - positions[row]) / (actions.high - actions.low);
    return loss == Loss::squared ? error * error : error < 0.0 ? -error : error;
  }

 private:
  double interpolate(const double* position, const double* value, double action) const {
    std::size_t next = 0;
    while (next < knots && position[next] < action) ++next;
    if (next == 0) return value[0];
    if (next == knots) return value[knots - 1];
    const double share = (action - position[next - 1]) / (position[next] - position[next - 1]);
    return value[next - 1] + share * (value[next] - value[next - 1]);
  }
};

// The output arrays.
struct Record {
  double* actions;
  double* densities;
  double* losses;
  double* floors;
  double* windows;
};

// A range of losses is infinite if it is unknown. Models then learn from the losses as they are.
inline bool is_unknown(Range losses) { return losses.high == __builtin_inf(); }

inline double scaled_loss(double loss, Range losses) {
  return is_unknown(losses) ? loss : (loss - losses.low) / (losses.high - losses.low);
}

// `losses` is the agent's range of losses; its model learns from scaled losses. `number` is that of the first decision,
// and `rounds` the rounds learned before it.
inline void simulate(PolicyModel& model, const Exploration& exploration, Range losses, const Table& table,
                     std::size_t first, std::size_t last, std::uint64_t number, std::uint64_t rounds,
                     const Record& record) {
  for (std::size_t row = first; row < last; ++row) {
    const ContextView context = table.context(row);
    const Range within = table.within(row);
    const double epsilon = exploration.epsilon(model, static_cast<double>(rounds++));
    const Decision decision = decide(model, exploration, epsilon, context, within, number++);
    const double loss = table.loss_at(row, decision.action);
    model.learn(context, {decision.action, decision.density, scaled_loss(loss, losses), within});
    record.actions[row] = decision.action;
    record.densities[row] = decision.density;
    record.losses[row] = loss;
    record.floors[row] = decision.floor;
    decision.window.write(record.windows + DrawnWindow::size * row);
  }
}

}  // namespace manul
