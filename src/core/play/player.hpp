// Decides with a model: checked input, epsilon-greedy exploration, numbered decisions, loops over tables.
#pragma once

#include "play/base_player.hpp"
#include "play/simulation.hpp"

namespace manul {

// The importance weight of a logged action for the greedy window: its density there divided by the logged one. Times
// the loss, it is the paper's c_t of the leaf (Algorithm 3).
inline double window_weight(Window played, const Outcome& outcome) {
  constexpr double rounding = 1e-9;  // generous; the density below decides at the ends
  if (std::abs(outcome.action - played.centre) > played.bandwidth * (1.0 + rounding)) return 0.0;  // usually
  const Mixture window(played, 0.0, outcome.within);
  return window.density(outcome.action) / outcome.density;
}

// The outcomes of the decisions, one per row.
struct Outcomes {
  const double* actions;
  const double* densities;
  const double* losses;
  const double* parts = nullptr;   // one row per outcome, or null
  const double* judged = nullptr;  // 1 or 0
};

// The output arrays of many decisions; `windows` may be null.
struct DecisionArrays {
  double* actions;
  double* densities;
  double* floors;
  double* windows;
};

class Player : public BasePlayer {
 public:
  Player(PolicyModel* model, const PlayerSettings& settings)
      : BasePlayer(std::unique_ptr<Model>(model), settings), model_(model) {}

  Window window(const ContextView& context, Range within) {
    const Busy busy(*this);
    return model_->window(context, check(within));
  }

  // The distribution around a window if a share of the decisions explores nearby.
  Ladder ladder(Window window, Range within) const {
    return settings_.exploration.ladder(window, window.exploring(epsilon()), check(within));
  }

  Decision decide(const ContextView& context, Range within) {
    const Busy busy(*this);
    check(within);  // before the decision is counted
    return manul::decide(*model_, settings_.exploration, epsilon(), context, within, decisions++);
  }

  // Draws the decision with a given number without counting it, to repeat a decision.
  Decision decide_again(const ContextView& context, Range within, std::uint64_t number) {
    const Busy busy(*this);
    return manul::decide(*model_, settings_.exploration, epsilon(), context, check(within), number);
  }

  void learn(const ContextView& context, const Outcome& outcome) {
    const Busy busy(*this);
    model_->learn(context, outcome);
    ++learned;
  }

  // The outcome with a scaled loss; throws if it is invalid.
  Outcome outcome(double action, double density, double loss, Range within, const double* parts = nullptr,
                  bool judged = false) const {
    check(within);
    const Range losses = settings_.losses;
    if (!(action >= within.low && action <= within.high)) throw Rejected();
    if (!(density >= least_density && density <= largest_density)) throw Rejected();
    if (!(loss >= losses.low && loss <= losses.high && std::isfinite(loss))) throw Rejected();
    if (parts != nullptr && !settings_.outcome.allows(parts)) throw Rejected();
    return scale(action, density, loss, within, parts, judged);
  }

  // Decisions get the next numbers, or are repeated with `numbers`.
  void decide_many(const Rows& rows, const std::uint64_t* numbers, const DecisionArrays& arrays) {
    visit(rows, [&](std::size_t i, double epsilon, const ContextView& context, Range within) {
      const std::uint64_t number = numbers == nullptr ? decisions++ : numbers[i];
      const Decision decision = manul::decide(*model_, settings_.exploration, epsilon, context, within, number);
      arrays.actions[i] = decision.action, arrays.densities[i] = decision.density, arrays.floors[i] = decision.floor;
      if (arrays.windows != nullptr) decision.window.write(arrays.windows + DrawnWindow::size * i);
    });
  }

  void learn_many(const Rows& rows, const Outcomes& outcomes) {
    const Busy busy(*this);
    check(rows, outcomes);
    for (std::size_t i = 0; i < rows.count; ++i) model_->learn(context(rows, i), logged(rows, outcomes, i));
    learned += rows.count;
  }

  // Progressive validation: the policy is evaluated on each row before it learns from it. Adds to one sum for all
  // batches, so that the result does not depend on the sizes of batches. The rows have passed `check`. The weight of
  // each row is written to `weights`, unless it is null.
  void replay(const Rows& rows, const Outcomes& outcomes, double& sum, double* weights) {
    const Busy busy(*this);
    for (std::size_t i = 0; i < rows.count; ++i) {
      const Outcome outcome = logged(rows, outcomes, i);
      const double weight = window_weight(model_->replay(context(rows, i), outcome), outcome);
      sum += weight * outcome.loss;
      if (weights != nullptr) weights[i] = weight;
    }
    learned += rows.count;
  }

  void check(const Rows& rows, const Outcomes& outcomes) const {
    check(rows);
    for (std::size_t i = 0; i < rows.count; ++i)
      outcome(outcomes.actions[i], outcomes.densities[i], outcomes.losses[i], range(rows, i), parts(outcomes, i));
  }

  // Whether both players accept the same rows and outcomes.
  bool accepts_same_rows(const Player& other) const {
    const auto same = [](Range one, Range two) { return one.low == two.low && one.high == two.high; };
    return settings_.width == other.settings_.width && same(settings_.actions, other.settings_.actions) &&
           same(settings_.losses, other.settings_.losses) &&
           settings_.exploration.atoms.leaves == other.settings_.exploration.atoms.leaves;
  }

  void densities_many(const Rows& rows, const double* actions, double* densities) {
    visit(rows, [&](std::size_t i, double epsilon, const ContextView& context, Range within) {
      densities[i] = manul::density(*model_, settings_.exploration, epsilon, context, within, actions[i]);
    });
  }

  void largest_densities_many(const Rows& rows, double* densities) {
    visit(rows, [&](std::size_t i, double epsilon, const ContextView& context, Range within) {
      densities[i] = manul::density_of_mode(*model_, settings_.exploration, epsilon, context, within);
    });
  }

  void moments_many(const Rows& rows, double* means, double* squares) {
    visit(rows, [&](std::size_t i, double epsilon, const ContextView& context, Range within) {
      const Moments moments = manul::moments(*model_, settings_.exploration, epsilon, context, within);
      means[i] = moments.mean, squares[i] = moments.square;
    });
  }

  // Calls `each(i, context)` for every row.
  template <class Each>
  void visit_contexts(const Rows& rows, Each&& each) {
    visit(rows, [&](std::size_t i, double, const ContextView& context, Range) { each(i, context); });
  }

  void simulate(const Table& table, std::size_t first, std::size_t last, const Record& record) {
    const Busy busy(*this);
    manul::simulate(*model_, settings_.exploration, settings_.losses, table, first, last, decisions, learned, record);
    decisions += last - first, learned += last - first;
  }

 private:
  // Calls `each(i, epsilon, context, within)` for every row after checking all of them.
  template <class Each>
  void visit(const Rows& rows, Each&& each) {
    const Busy busy(*this);
    check(rows);
    const double now = epsilon();
    for (std::size_t i = 0; i < rows.count; ++i) each(i, now, context(rows, i), range(rows, i));
  }

  Range range(const Rows& rows, std::size_t i) const {
    return rows.lows == nullptr ? settings_.actions : Range{rows.lows[i], rows.highs[i]};
  }

  Outcome logged(const Rows& rows, const Outcomes& outcomes, std::size_t i) const {
    return scale(outcomes.actions[i], outcomes.densities[i], outcomes.losses[i], range(rows, i), parts(outcomes, i),
                 outcomes.judged != nullptr && outcomes.judged[i] != 0.0);
  }

  void check(const Rows& rows) const {
    check_contexts(rows);
    for (std::size_t i = 0; i < rows.count; ++i) check(range(rows, i));
  }

  Range check(Range within) const {
    const Range actions = settings_.actions;
    if (!(within.low >= actions.low && within.high <= actions.high && within.low < within.high)) throw Rejected();
    const auto& atoms = settings_.exploration.atoms;
    if (atoms.leaves > 0 && atoms.inside(within).first > atoms.inside(within).last) throw Rejected();
    return within;
  }

  const double* parts(const Outcomes& outcomes, std::size_t i) const {
    return outcomes.parts == nullptr ? nullptr : outcomes.parts + i * settings_.outcome.kinds.size();
  }

  Outcome scale(double action, double density, double loss, Range within, const double* parts, bool judged) const {
    return {action, density, scaled_loss(loss, settings_.losses), within, parts, judged};
  }

  PolicyModel* model_;  // owned by the base class
};

}  // namespace manul
