// Decides with a model: checked input, epsilon-greedy exploration, numbered decisions, loops over tables.
#pragma once

#include <atomic>
#include <cmath>
#include <memory>
#include <stdexcept>

#include "contexts/column_sketch.hpp"
#include "contexts/field_hashing.hpp"
#include "contexts/named_batch.hpp"
#include "numerics/buffer.hpp"
#include "play/simulation.hpp"

namespace manul {

// Thrown before anything has changed. The caller has the message.
class Rejected : public std::invalid_argument {
 public:
  Rejected() : std::invalid_argument("rejected") {}
};

// Beyond these limits, weights and their squares overflow. Python checks the same limits and has the message.
inline constexpr double least_density = 1e-100, largest_density = 1e100;

// The kinds of contexts: rows of numbers, or named fields, hashed into the model's tables, numbered in the order in
// which they were learned, or sketched into a row.
enum class Naming : std::uint8_t { rows, hashed, numbered, sketched };

struct PlayerSettings {
  Range actions;
  Range losses;
  std::size_t width;
  Exploration exploration;
  Naming naming = Naming::rows;
  std::size_t features = 0;  // how many are numbered
};

// The importance weight of a logged action for the greedy window: its density there divided by the logged one. Times
// the loss, it is the paper's c_t of the leaf (Algorithm 3).
inline double window_weight(Window played, const Outcome& outcome) {
  constexpr double rounding = 1e-9;  // generous; the density below decides at the ends
  if (std::abs(outcome.action - played.centre) > played.bandwidth * (1.0 + rounding)) return 0.0;  // usually
  const Mixture window(played, 0.0, outcome.within);
  return window.density(outcome.action) / outcome.density;
}

// Many contexts at once, rows of numbers or named; `lows` and `highs` are null if every decision has the whole range.
struct Rows {
  const float* contexts;
  std::size_t count;
  const double* lows;
  const double* highs;
  const NamedBatch* named = nullptr;
};

// The outcomes of the decisions, one per row.
struct Outcomes {
  const double* actions;
  const double* densities;
  const double* losses;
};

// The output arrays of many decisions.
struct DecisionArrays {
  double* actions;
  double* densities;
  double* floors;
};

class Player {
 public:
  Player(std::unique_ptr<PolicyModel> model, const PlayerSettings& settings)
      : model_(std::move(model)), settings_(settings), row_(settings.width + 1),
        sketch_(settings.naming == Naming::numbered ? settings.features : settings.width) {
    encoder.flags_are_numbers = settings.naming == Naming::numbered;
  }

  const PlayerSettings& settings() const { return settings_; }
  PolicyModel& model() { return *model_; }
  std::uint64_t decisions = 0;
  std::uint64_t learned = 0;  // rounds

  // The epsilon of the next decision.
  double epsilon() const { return settings_.exploration.schedule.at(model_->age(static_cast<double>(learned))); }

  Encoder encoder;

  const ColumnSketch::Columns& columns() const { return sketch_.columns(); }
  void set_columns(const ColumnSketch::Columns& columns) {
    if (!sketch_.restore(columns)) throw Rejected();
  }

  void sketch_names() { settings_.naming = Naming::sketched; }

  // The view of the context that the encoder has read.
  ContextView named_view(bool learning) {
    const ContextView context = encoder.view();
    if (learning) assign_columns(context);
    return named_view(context);
  }

  // Assigns columns to the features of a context before it is learned from, if the model takes columns.
  void assign_columns(const ContextView& context) {
    if (settings_.naming == Naming::sketched || settings_.naming == Naming::numbered) sketch_.assign(context);
  }

  template <class T>
  ContextView row_view(const T* context, std::size_t width) {
    if (width != settings_.width || settings_.naming != Naming::rows) throw Rejected();
    for (std::size_t i = 0; i < width; ++i) row_[i] = static_cast<float>(context[i]);
    if (!finite(row_.data())) throw Rejected();
    return row_view(row_.data());
  }

  Window window(const ContextView& context, Range within) {
    const Busy busy(*this);
    return model_->window(context, check(within));
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
  Outcome outcome(double action, double density, double loss, Range within) const {
    check(within);
    const Range losses = settings_.losses;
    if (!(action >= within.low && action <= within.high)) throw Rejected();
    if (!(density >= least_density && density <= largest_density)) throw Rejected();
    if (!(loss >= losses.low && loss <= losses.high && std::isfinite(loss))) throw Rejected();
    return scale(action, density, loss, within);
  }

  // Decisions get the next numbers, or are repeated with `numbers`.
  void decide_many(const Rows& rows, const std::uint64_t* numbers, const DecisionArrays& arrays) {
    visit(rows, [&](std::size_t i, double epsilon, const ContextView& context, Range within) {
      const std::uint64_t number = numbers == nullptr ? decisions++ : numbers[i];
      const Decision decision = manul::decide(*model_, settings_.exploration, epsilon, context, within, number);
      arrays.actions[i] = decision.action, arrays.densities[i] = decision.density, arrays.floors[i] = decision.floor;
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
      outcome(outcomes.actions[i], outcomes.densities[i], outcomes.losses[i], range(rows, i));
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
  // One caller at a time, because loops run without the interpreter's lock.
  class Busy {
   public:
    explicit Busy(Player& player) : flag_(player.busy_) {
      if (flag_.test_and_set()) throw std::runtime_error("agent is in use by another thread; give each thread its own");
    }
    ~Busy() { flag_.clear(); }

   private:
    std::atomic_flag& flag_;
  };

  // Calls `each(i, epsilon, context, within)` for every row after checking all of them.
  template <class Each>
  void visit(const Rows& rows, Each&& each) {
    const Busy busy(*this);
    check(rows);
    const double now = epsilon();
    for (std::size_t i = 0; i < rows.count; ++i) each(i, now, context(rows, i), range(rows, i));
  }

  ContextView row_view(const float* row) const { return {ContextKind::row, row, settings_.width}; }

  ContextView named_view(const ContextView& context) {
    if (settings_.naming == Naming::hashed) return context;
    if (settings_.naming == Naming::numbered) return sketch_.number(context);
    sketch_.write(context, row_.data());
    return row_view(row_.data());
  }

  ContextView context(const Rows& rows, std::size_t i) {
    return rows.named != nullptr ? named_view((*rows.named)[i]) : row_view(rows.contexts + i * settings_.width);
  }

  Range range(const Rows& rows, std::size_t i) const {
    return rows.lows == nullptr ? settings_.actions : Range{rows.lows[i], rows.highs[i]};
  }

  Outcome logged(const Rows& rows, const Outcomes& outcomes, std::size_t i) const {
    return scale(outcomes.actions[i], outcomes.densities[i], outcomes.losses[i], range(rows, i));
  }

  bool finite(const float* context) const {
    bool all = true;
    for (std::size_t i = 0; i < settings_.width; ++i) all &= std::isfinite(context[i]);
    return all;
  }

  void check(const Rows& rows) const {
    for (std::size_t i = 0; i < rows.count; ++i) {
      if (rows.named == nullptr && !finite(rows.contexts + i * settings_.width)) throw Rejected();
      check(range(rows, i));
    }
  }

  Range check(Range within) const {
    const Range actions = settings_.actions;
    if (!(within.low >= actions.low && within.high <= actions.high && within.low < within.high)) throw Rejected();
    const auto& atoms = settings_.exploration.atoms;
    if (atoms.leaves > 0 && atoms.inside(within).first > atoms.inside(within).last) throw Rejected();
    return within;
  }

  Outcome scale(double action, double density, double loss, Range within) const {
    return {action, density, scaled_loss(loss, settings_.losses), within};
  }

  std::unique_ptr<PolicyModel> model_;
  PlayerSettings settings_;
  MANUL_SIMD::Buffer<float> row_;
  ColumnSketch sketch_;
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
};

}  // namespace manul
