// One part of an outcome, as a mixture of experts that the likelihood of what was seen weighs.
#pragma once

#include "numerics/random.hpp"
#include "parts/part_expert.hpp"

namespace manul::MANUL_SIMD {

class OutcomePart {
 public:
  OutcomePart() = default;

  // Contexts have up to `columns`.
  OutcomePart(const PartSettings& settings, std::size_t columns, const ActionBasis& basis) : settings_(settings) {
    choose_experts(columns, basis);
    for (std::size_t k = 0; k < count_; ++k) numbers_ += experts_[k].numbers();
    numbers_ += sizeof(State) / sizeof(double);
  }

  // The numbers of its state, which is zeroed at first.
  std::size_t numbers() const { return numbers_; }
  void hold(double* state) {
    state_ = reinterpret_cast<State*>(state);
    state += sizeof(State) / sizeof(double);
    for (std::size_t k = 0; k < count_; ++k) {
      experts_[k].hold(state);
      state += experts_[k].numbers();
    }
  }

  void start() {
    for (std::size_t k = 0; k < count_; ++k) {
      experts_[k].start();
      state_->weights[k] = first_weights_[k];
    }
    state_->above = first_spread, state_->below = first_spread;
  }

  void add_column(std::size_t column, double columns) {
    for (std::size_t k = 0; k < count_; ++k) experts_[k].add_column(column, columns);
  }

  // Whether it can be predicted: an amount must have been seen.
  bool is_known() const { return settings_.kind != PartKind::amount || state_->seen > 0.0; }

  // The expectation at each action of the grid, in the context.
  void curve(const ActionBasis& basis, const double* z, std::size_t used, const float (*directions)[8],
             double* expectations) {
    double shares[most], one[ActionBasis::points], total = 0.0;
    find_shares(shares);
    for (std::size_t g = 0; g < ActionBasis::points; ++g) expectations[g] = 0.0;
    for (std::size_t k = 0; k < count_; ++k) {
      if (shares[k] < least_share) continue;
      total += shares[k];
      experts_[k].look(z, used, directions);
      experts_[k].curve(basis, settings_.kind, one);
      for (std::size_t g = 0; g < ActionBasis::points; ++g) expectations[g] += shares[k] * one[g];
    }
    for (std::size_t g = 0; g < ActionBasis::points; ++g) expectations[g] /= total;
  }

  // The expectation at one place of the grid.
  double expect(const ActionBasis& basis, const double* z, std::size_t used, const float (*directions)[8],
                ActionBasis::Place place) {
    double shares[most], total = 0.0;
    find_shares(shares);
    for (std::size_t k = 0; k < count_; ++k) {
      experts_[k].look(z, used, directions);
      total += shares[k] * experts_[k].at(basis, settings_.kind, place);
    }
    return total;
  }

  // Learns what the part was at a place of the grid, and returns what was expected.
  double learn(const ActionBasis& basis, const double* z, std::size_t used, const float (*directions)[8],
               ActionBasis::Place place, double seen) {
    if (settings_.kind == PartKind::amount && state_->seen == 0.0)
      for (std::size_t k = 0; k < count_; ++k) experts_[k].set_level(logarithm(larger(seen, 1e-300)));
    double shares[most], each[most], mixed = 0.0;
    find_shares(shares);
    for (std::size_t k = 0; k < count_; ++k) {
      experts_[k].look(z, used, directions);
      each[k] = experts_[k].at(basis, settings_.kind, place);
      mixed += shares[k] * each[k];
    }
    state_->seen += 1.0;
    learn_spread(mixed, seen);
    const double spread = this->spread(), whole = likelihood(mixed, seen, spread);
    for (std::size_t k = 0; k < count_; ++k) {
      const double gain = larger(likelihood(each[k], seen, spread) - whole, -3.0);
      state_->weights[k] = (1.0 - 1.0 / memory) * state_->weights[k] + gain;
    }
    const double farthest = mixed * larger(4.0, __builtin_sqrt(state_->seen) / 3.0);  // of heavy tails
    if (settings_.kind == PartKind::amount) seen = smaller(seen, farthest);
    for (std::size_t k = 0; k < count_; ++k) experts_[k].learn(basis, settings_.kind, place, seen, spread);
    return mixed;
  }

  // The weight of the experts that believe the hint.
  double hint_weight() const {
    double shares[most], total = 0.0;
    find_shares(shares);
    for (std::size_t k = 0; k < count_; ++k)
      if (kinds_[k].hinted) total += shares[k];
    return total;
  }

  std::size_t experts() const { return count_; }
  void find_shares(double* shares) const {
    double best = state_->weights[0], total = 0.0;
    for (std::size_t k = 1; k < count_; ++k) best = larger(best, state_->weights[k]);
    for (std::size_t k = 0; k < count_; ++k) {
      shares[k] = exponential(state_->weights[k] - best) + 0.002 / static_cast<double>(count_);
      total += shares[k];
    }
    for (std::size_t k = 0; k < count_; ++k) shares[k] /= total;
  }

  bool is_valid() const {
    const double* numbers = reinterpret_cast<const double*>(state_);
    bool all = is_count(state_->seen) && state_->below > 0.0;
    for (std::size_t i = 0; i < numbers_; ++i) all = all && finite(numbers[i]);
    return all;
  }

  static constexpr std::size_t most = 16;  // experts

 private:
  static constexpr double memory = 1500.0;      // rounds after which a weight has faded by e
  static constexpr double least_share = 0.01;   // of an expert that is asked
  static constexpr double first_spread = 10.0;  // rounds that say 1

  struct State {
    double seen, above, below, spare, weights[most];
  };

  void add(const ExpertKind& kind, const PartPrior& prior, std::size_t columns, double weight) {
    kinds_[count_] = kind;
    first_weights_[count_] = weight;
    experts_[count_++] = PartExpert(kind, prior, settings_.hint, columns);
  }

  void choose_experts(std::size_t columns, const ActionBasis& basis) {
    const bool lin = true, log = true, no = false;
    if (settings_.kind == PartKind::yes_no) {
      const PartPrior prior = {settings_.hint > 0 ? 0.0 : -1.5, 6.0, TUNE(0, 2.5)};
      const double own = settings_.hint == 0 ? TUNE(1, 2.5) : TUNE(2, 1.0);
      add({lin, log, no, no, 0.0, 0.0, own, no, true}, prior, columns, 0.0);
      if (TUNE(3, 1)) add({lin, log, true, no, 1.0, 0.0, own, no, true}, prior, columns, TUNE(10, -2));
      add({lin, no, no, no, 1.0, 0.7, own, no, true}, prior, columns, 0.0);
      add({no, log, no, no, 1.0, 0.7, own, no, true}, prior, columns, 0.0);
      if (TUNE(4, 1)) add({lin, no, no, no, 4.0, 3.0, TUNE(11, 4.0), no, true}, prior, columns, TUNE(12, -1));
      if (TUNE(4, 1)) add({no, log, no, no, 4.0, 3.0, TUNE(11, 4.0), no, true}, prior, columns, TUNE(12, -1));
      add({lin, no, no, no, 1.0, 0.7, TUNE(13, 1.75) * own, true, true}, prior, columns, 0.0);
      add({no, log, no, no, 1.0, 0.7, TUNE(13, 1.75) * own, true, true}, prior, columns, 0.0);
      if (TUNE(5, 1)) add({no, log, no, true, 2.0, 1.0, own, no, true}, prior, columns, TUNE(6, -1));
      if (settings_.hint == 0) return;
      add({lin, no, no, no, 1.0, 0.7, 2.5, no, false}, {prior.intercept, 6.0, 0.0}, columns, TUNE(7, -3));
      add({no, log, no, no, 1.0, 0.7, 2.5, no, false}, {prior.intercept, 6.0, 0.0}, columns, TUNE(7, -3));
    } else if (settings_.kind == PartKind::count) {
      const double slope = TUNE(15, 2.5) * basis.log_deviation();
      const PartPrior prior = {TUNE(16, 0.0), TUNE(17, 6.0), slope};
      const double own = settings_.hint == 0 ? slope : TUNE(14, 0.5) * slope;
      add({no, log, no, no, 0.0, 0.0, own, no, true}, prior, columns, 0.0);
      add({no, log, no, no, 1.0, 0.5, own, no, true}, prior, columns, 0.0);
      add({lin, no, no, no, 1.0, 0.5, own, no, true}, prior, columns, 0.0);
      add({lin, log, true, no, 1.0, 0.0, own, no, true}, prior, columns, 0.0);
      add({no, log, no, no, 1.0, 0.5, own, true, true}, prior, columns, 0.0);
      add({lin, no, no, no, 1.0, 0.5, own, true, true}, prior, columns, 0.0);
      add({no, log, no, true, 1.0, 0.5, own, no, true}, prior, columns, -1.0);
      if (settings_.hint == 0) return;
      add({no, log, no, no, 1.0, 0.5, slope, no, false}, {0.0, 6.0, 0.0}, columns, -3.0);
      add({lin, no, no, no, 1.0, 0.5, slope, no, false}, {0.0, 6.0, 0.0}, columns, -3.0);
    } else {
      const PartPrior prior = {0.0, 1.0, 0.3};
      add({no, no, no, no, 0.0, 0.0, 0.0, no, true}, prior, columns, 0.0);
      add({no, no, no, no, 0.5, 0.0, 0.0, no, true}, prior, columns, 0.0);
      add({no, no, no, no, 2.0, 0.0, 0.0, no, true}, prior, columns, 0.0);
      add({no, no, no, no, 0.5, 0.0, 0.0, true, true}, prior, columns, 0.0);
      add({no, log, no, no, 0.5, 0.0, 0.3, no, true}, prior, columns, -1.0);
      if (settings_.hint == 0) return;
      add({no, log, no, no, 0.5, 0.0, 0.5, no, false}, {0.0, 1.0, 0.0}, columns, -3.0);
    }
  }

  // The overdispersion of counts around what was expected, or the dispersion of amounts.
  double spread() const {
    const double ratio = state_->above / state_->below;
    return settings_.kind == PartKind::count ? clip(ratio, 0.0, 3.0) : clip(ratio, 0.01, 25.0);
  }

  void learn_spread(double expected, double seen) {
    const double error = seen - expected, square = expected * expected;
    if (settings_.kind == PartKind::yes_no) return;
    const bool count = settings_.kind == PartKind::count;
    state_->above += count ? error * error - expected : smaller(error * error / square, 25.0);
    state_->below += count ? square : 1.0;
  }

  // The logarithm, up to what does not depend on the expectation.
  double likelihood(double expected, double seen, double spread) const {
    if (settings_.kind == PartKind::yes_no) {
      const double p = clip(expected, 1e-5, 1.0 - 1e-5);
      return seen * logarithm(p) + (1.0 - seen) * logarithm(1.0 - p);
    }
    expected = clip(expected, 1e-100, 1e100);
    if (settings_.kind == PartKind::amount) return -(seen / expected + logarithm(expected)) / spread;
    const double rest = 1.0 + spread * expected;
    return seen * logarithm(expected / rest) - (spread > 1e-6 ? logarithm(rest) / spread : expected);
  }

  PartSettings settings_ = {};
  std::size_t count_ = 0, numbers_ = 0;
  PartExpert experts_[most];
  ExpertKind kinds_[most];
  double first_weights_[most];
  State* state_ = nullptr;
};

}  // namespace manul::MANUL_SIMD
