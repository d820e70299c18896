// One part of an outcome, as a mixture of experts that the likelihood of what was seen weighs.
#pragma once

#include "numerics/random.hpp"
#include "parts/part_expert.hpp"

namespace manul::MANUL_SIMD {

class OutcomePart {
 public:
  OutcomePart() = default;

  // Contexts have up to `columns`. `starts` adds experts that expect the best action at a start, and `inherits` leaves
  // room for those of a sister.
  OutcomePart(const PartSettings& settings, std::size_t columns, const ActionBasis& basis, bool starts, bool inherits)
      : settings_(settings), columns_(columns), starts_(starts && settings.kind != PartKind::amount),
        inherits_(inherits) {
    choose_experts(basis);
    own_ = count_;
    for (std::size_t s = 0; starts_ && s < start_chances(); ++s) add_started();
    first_inherited_ = count_;
    for (std::size_t k = 0; k < count_; ++k) {
      numbers_ += experts_[k].numbers();
      if (experts_[k].numbers() > largest_) largest_ = experts_[k].numbers();
    }
    numbers_ += sizeof(State) / sizeof(double) + (inherits_ ? inherited * largest_ : 0);
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
    spare_ = state;
  }

  void start() {
    for (std::size_t k = 0; k < count_; ++k) {
      experts_[k].start();
      state_->weights[k] = first_weight(k);
    }
    state_->above = first_spread, state_->below = first_spread;
  }

  // Sets the priors of the experts that expect the best action at a position: by Lerner's rule, the logarithm of the
  // part falls there as fast as that of the margin rises, which is `slope` per position.
  void start_at(const ActionBasis& basis, double position, double slope) {
    static constexpr double chances[] = {0.03, 0.3, 0.8};  // of a purchase; nobody has to tell it
    for (std::size_t k = own_; starts_ && k < first_inherited_; ++k) {
      const double p = chances[(k - own_) / 2];
      const bool count = settings_.kind == PartKind::count;
      experts_[k].start_at(basis, ActionBasis::Place(position), count ? 0.0 : logarithm(p / (1.0 - p)),
                           count ? 6.0 : 1.5, count ? -slope : -slope / (1.0 - p));
    }
  }

  // Takes over the two best experts of a sister, each twice, beside its own.
  void inherit(const OutcomePart& sister) {
    double shares[most];
    sister.find_shares(shares);
    for (std::size_t i = 0; i < inherited / 2; ++i) {
      std::size_t best = 0;
      for (std::size_t k = 1; k < sister.own_; ++k)
        if (shares[k] > shares[best]) best = k;
      shares[best] = -1.0;
      for (int turn = 0; turn < 2; ++turn) {
        const bool freed = turn == 1;
        const std::size_t at = first_inherited_ + 2 * i + (freed ? 1 : 0);
        state_->inherited[2 * i + (freed ? 1 : 0)] = static_cast<double>(best + 1);
        resume();
        experts_[at].inherit(sister.experts_[best], freed);
        state_->weights[at] = first_inherited_weight;
      }
    }
    state_->above = first_spread * sister.spread(), state_->below = first_spread;
    if (settings_.kind == PartKind::amount && sister.state_->seen > 0.0) {
      state_->seen = 1.0;
      for (std::size_t k = 0; k < own_; ++k) experts_[k].set_level(sister.level());
    }
  }

  // Recreates the experts of a sister from restored numbers.
  void resume() {
    count_ = first_inherited_;
    for (std::size_t i = 0; inherits_ && i < inherited && state_->inherited[i] > 0.0; ++i) {
      const auto kind = static_cast<std::size_t>(state_->inherited[i]) - 1;
      kinds_[count_] = kinds_[kind];
      experts_[count_] = PartExpert(kinds_[kind], prior_, settings_.hint, columns_);
      experts_[count_++].hold(spare_ + i * largest_);
    }
  }

  // The weight of the experts of a sister.
  double inherited_weight() const {
    double shares[most], total = 0.0;
    find_shares(shares);
    for (std::size_t k = first_inherited_; k < count_; ++k) total += shares[k];
    return total;
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
    if (count_ > first_inherited_) leave_sister();
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
      if (!kinds_[k].has(ExpertKind::unhinted)) total += shares[k];
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
    for (const double kind : state_->inherited) all = all && kind >= 0.0 && kind <= static_cast<double>(own_);
    for (std::size_t i = 0; i < numbers_; ++i) all = all && finite(numbers[i]);
    return all;
  }

  static constexpr std::size_t most = 24, inherited = 4;  // experts

 private:
  static constexpr double memory = 1500.0;      // rounds after which a weight has faded by e
  static constexpr double least_share = 0.01;   // of an expert that is asked
  static constexpr double first_spread = 10.0;  // rounds that say 1
  static constexpr double first_inherited_weight = 0.5;
  static constexpr double leaving = 0.3;  // of the weight, after the first round

  struct State {
    double seen, above, below, inherited[OutcomePart::inherited], weights[most];
  };

  double first_weight(std::size_t expert) const {
    return first_weights_[expert] - (starts_ && expert < own_ ? 5.0 : 0.0);
  }

  // The own experts may become better than those of a sister at any time: a share of all weight, which falls with the
  // rounds, goes to them as at first. Otherwise the lead that she has in the first rounds would last for thousands (van
  // Erven, Gruenwald and de Rooij, 2012: catching up faster by switching sooner).
  void leave_sister() {
    double best = state_->weights[0], total = 0.0, first_total = 0.0;
    for (std::size_t k = 1; k < count_; ++k) best = larger(best, state_->weights[k]);
    for (std::size_t k = 0; k < count_; ++k) total += exponential(state_->weights[k] - best);
    for (std::size_t k = 0; k < first_inherited_; ++k) first_total += exponential(first_weight(k));
    const double share = leaving / (1.0 + state_->seen);
    for (std::size_t k = 0; k < count_; ++k) {
      const double returned = k < first_inherited_ ? share * total / first_total * exponential(first_weight(k)) : 0.0;
      const double kept = (1.0 - share) * exponential(state_->weights[k] - best);
      state_->weights[k] = best + logarithm(larger(kept + returned, least_weight));
    }
  }
  static constexpr double least_weight = 1e-30;  // relative to the best, of an expert of a sister

  std::size_t start_chances() const { return settings_.kind == PartKind::yes_no ? 3 : 1; }

  void add_started() {
    add({ExpertKind::linear, 1.0, 1.0, 1.0}, 1.0);
    add({ExpertKind::logarithmic, 1.0, 1.0, 1.0}, 1.0);
  }

  // The logarithm of an amount, by the best of the experts.
  double level() const {
    double shares[most];
    find_shares(shares);
    std::size_t best = 0;
    for (std::size_t k = 1; k < own_; ++k)
      if (shares[k] > shares[best]) best = k;
    return experts_[best].level();
  }

  void add(const ExpertKind& kind, double weight) {
    kinds_[count_] = kind;
    first_weights_[count_] = weight;
    experts_[count_++] = PartExpert(kind, prior_, settings_.hint, columns_);
  }

  // The experts of each kind of part, with their standard deviations: of the context's effects on the level and on the
  // slope, and of the slope itself, all per standard deviation; and their first weights. Chosen by experiment on
  // simulated markets. Narrow priors of the slope decide where purchases are rare, wide ones where curves are steep.
  void choose_experts(const ActionBasis& basis) {
    using enum ExpertKind::Trait;
    const bool hinted = settings_.hint != 0;
    if (settings_.kind == PartKind::yes_no) {
      prior_ = {settings_.hint > 0 ? 0.0 : -1.5, 6.0, 2.5};
      const double own = hinted ? 0.7 : 2.5;
      add({linear | logarithmic, 0.0, 0.0, own}, 0.0);
      add({linear | logarithmic | hats, 1.0, 0.0, own}, -2.0);
      add({linear, 1.0, 1.0, own}, 0.0);
      add({logarithmic, 1.0, 1.0, own}, 0.0);
      add({linear, 4.0, 3.0, 4.0}, -1.0);
      add({logarithmic, 4.0, 3.0, 4.0}, -1.0);
      add({linear | walks, 1.0, 1.0, hinted ? 1.75 : 2.5}, 0.0);
      add({logarithmic | walks, 1.0, 1.0, hinted ? 1.75 : 2.5}, 0.0);
      add({logarithmic | products, 2.0, 1.0, own}, -1.0);
      if (hinted) add({linear | unhinted, 1.0, 1.0, 2.5}, -5.0);
      if (hinted) add({logarithmic | unhinted, 1.0, 1.0, 2.5}, -5.0);
    } else if (settings_.kind == PartKind::count) {
      // The mean elasticity of prices is -2.6 (Bijmolt, van Heerde and Pieters, 2005).
      const double slope = 2.5 * basis.log_deviation(), own = hinted ? 0.5 * slope : slope;
      prior_ = {0.0, 6.0, slope};
      add({logarithmic, 0.0, 0.0, own}, 0.0);
      add({logarithmic, 1.0, 0.5, own}, 0.0);
      add({linear, 1.0, 0.5, own}, 0.0);
      add({linear | logarithmic | hats, 1.0, 0.0, own}, 0.0);
      add({logarithmic | walks, 1.0, 0.5, own}, 0.0);
      add({linear | walks, 1.0, 0.5, own}, 0.0);
      add({logarithmic | products, 1.0, 0.5, own}, -1.0);
      if (hinted) add({logarithmic | unhinted, 1.0, 0.5, slope}, -3.0);
      if (hinted) add({linear | unhinted, 1.0, 0.5, slope}, -3.0);
    } else {
      prior_ = {0.0, 1.0, 0.3};
      add({0, 0.0, 0.0, 0.0}, 0.0);
      add({0, 0.5, 0.0, 0.0}, 0.0);
      add({0, 2.0, 0.0, 0.0}, 0.0);
      add({walks, 0.5, 0.0, 0.0}, 0.0);
      add({logarithmic, 0.5, 0.0, 0.3}, -1.0);
      if (hinted) add({logarithmic | unhinted, 0.5, 0.0, 0.5}, -3.0);
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
  PartPrior prior_ = {};
  std::size_t columns_ = 0;
  bool starts_ = false, inherits_ = false;
  std::size_t count_ = 0, own_ = 0, first_inherited_ = 0, numbers_ = 0, largest_ = 0;
  PartExpert experts_[most];
  ExpertKind kinds_[most];
  double first_weights_[most];
  State* state_ = nullptr;
  double* spare_ = nullptr;  // for the experts of a sister
};

}  // namespace manul::MANUL_SIMD
