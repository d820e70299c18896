// Whole loops: decide, pay the loss, learn, over a table.
#pragma once

#include "policy.hpp"

namespace manul {

enum class Loss : std::uint8_t { absolute, squared };

// A regression table played as a bandit. The loss is in units of the range, so it lies in [0, 1].
struct Table {
  const float* contexts;
  std::size_t width;
  const double* targets;
  Loss loss;

  double pay(std::size_t row, double action, Range range) const {
    const double error = (action - targets[row]) / (range.high - range.low);
    return loss == Loss::squared ? error * error : error < 0.0 ? -error : error;
  }
};

// Where the outcomes of the rounds go.
struct Record {
  double* actions;
  double* densities;
  double* losses;
};

inline void simulate(Agent& agent, const Play& play, Range range, const Table& table, std::size_t first,
                     std::size_t last, std::uint64_t number, const Record& record) {
  for (std::size_t row = first; row < last; ++row) {
    const float* context = table.contexts + row * table.width;
    const Decision decision = decide(agent, play, context, range, number++);
    const double loss = table.pay(row, decision.action, range);
    agent.learn(context, {decision.action, decision.density, loss, range});
    record.actions[row] = decision.action;
    record.densities[row] = decision.density;
    record.losses[row] = loss;
  }
}

}  // namespace manul
