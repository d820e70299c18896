// AdaptiveCats: CATS with an adaptive bandwidth (Algorithm 5): one tree per bandwidth, all trained on every round. The
// tree with the smallest estimated loss plus penalty decides.
//
// The paper evaluates each tree on all past rounds again in every round. Here a tree is evaluated on each round before
// it learns from it (progressive validation), by a doubly robust estimate with its own loss model.
//
// A round has little information about a tree whose window is rarely chosen: the importance weight w is then either 0
// or very large. Its second moment is known before the action is drawn; over the window of the tree
//
//   E[w^2] = mean of 1 / (2 h P(a|x))
//
// so each round is weighted by 1 / sqrt(E[w^2]), which keeps the estimate unbiased: rounds in which a tree's window is
// chosen outweigh others. Later rounds count more, because the trees improve.
#pragma once

#include "models/cats.hpp"

namespace manul::MANUL_SIMD {

class AdaptiveCatsModel final : public ReplayByWindow<BandwidthSelectingModel> {
 public:
  explicit AdaptiveCatsModel(const AdaptiveCatsSettings& settings)
      : settings_(settings), bandwidths_(settings.count), estimates_(settings.count), squares_(settings.count),
        evidence_(settings.count), rounds_(settings.count), members_(settings.count) {
    for (std::size_t i = 0; i < settings.count; ++i) {
      CatsSettings tree = settings.tree;
      tree.bandwidth = bandwidths_[i] = settings.bandwidths[i];
      members_[i] = new CatsModel<DenseSpace>(tree);
    }
  }

  ~AdaptiveCatsModel() override {
    for (std::size_t i = 0; i < settings_.count; ++i) delete members_[i];
  }

  Window window(const ContextView& context, Range within) override {
    return members_[best_member(within)]->window(context, within);
  }

  void learn(const ContextView& context, const Outcome& outcome) override {
    const std::size_t player = best_member(outcome.within);
    for (std::size_t i = 0; i < settings_.count; ++i)
      if (fits(i, outcome.within)) members_[i]->learn(context, outcome);
    for (std::size_t i = 0; i < settings_.count; ++i)
      if (fits(i, outcome.within)) judge(i, player, outcome.within);
  }

  std::size_t members() const override { return settings_.count; }

  std::size_t best_member(Range within) override {
    std::size_t best = settings_.count - 1;
    for (std::size_t i = settings_.count; i-- > 0;)
      if (fits(i, within) && risk(i) < risk(best)) best = i;
    return best;
  }

  double risk(std::size_t member) override { return estimates_[member] + penalty(member); }

  void forget(double half_life) override {
    for (std::size_t i = 0; i < settings_.count; ++i) members_[i]->forget(half_life);
  }

  std::size_t arrays() const override { return 4 + settings_.count * members_.data()[0]->arrays(); }

  Array array(std::size_t index) override {
    if (index == 0) return {"estimates", "f8", estimates_.data(), estimates_.size()};
    if (index == 1) return {"squares", "f8", squares_.data(), squares_.size()};
    if (index == 2) return {"evidence", "f8", evidence_.data(), evidence_.size()};
    if (index == 3) return {"rounds", "f8", rounds_.data(), rounds_.size()};
    const std::size_t per_member = members_[0]->arrays();
    const std::size_t member = (index - 4) / per_member;
    Array array = members_[member]->array((index - 4) % per_member);
    array.part = member + 1;
    return array;
  }

 private:
  // Rounds are weighted by the cube of their number. Without exploration, unchosen windows still have a small weight.
  static constexpr double recency = 4.0, least_epsilon = 1e-3;
  static constexpr double rounding = 1e-12;  // a window as wide as the range fits despite rounding

  void judge(std::size_t member, std::size_t player, Range within) {
    const double surprise = members_[member]->estimate() - estimates_[member];
    const double worth = 1.0 / __builtin_sqrt(mean_weight(member, player, within));
    rounds_[member] += 1.0;
    const double retention = larger(1.0 - (recency - 1.0) / rounds_[member], 0.0);
    evidence_[member] = retention * evidence_[member] + worth;
    estimates_[member] += worth / evidence_[member] * surprise;
    squares_[member] = retention * retention * squares_[member] + worth * surprise * (worth * surprise);
  }

  // The mean of 1 / (2 h P) over a member's window, where P is the density of the agent's decisions; if epsilon fades,
  // at its last value, so that the mean is never too small.
  double mean_weight(std::size_t member, std::size_t player, Range within) {
    const double h = bandwidths_[member], c = members_[member]->last_window().centre;
    const double played_h = bandwidths_[player], played_c = members_[player]->last_window().centre;
    const double epsilon = larger(settings_.epsilon, least_epsilon);
    const double outside = epsilon / (within.high - within.low), inside = outside + (1.0 - epsilon) / (2.0 * played_h);
    const double common = smaller(c + h, played_c + played_h) - larger(c - h, played_c - played_h);
    const double share = clip(common / (2.0 * h), 0.0, 1.0);
    return (share / inside + (1.0 - share) / outside) / (2.0 * h);
  }

  bool fits(std::size_t member, Range within) const {
    return 2.0 * bandwidths_.data()[member] <= (within.high - within.low) * (1.0 + rounding);
  }

  double penalty(std::size_t member) {
    const double span = settings_.tree.actions.high - settings_.tree.actions.low;
    const double share = bandwidths_.data()[member] / span;
    const double scale = settings_.complexity / (larger(rounds_[member], 1.0) * settings_.epsilon * share);
    switch (settings_.penalty) {
      case Penalty::measured: return rounds_[member] > 0.0 ? __builtin_sqrt(squares_[member]) / evidence_[member] : 0.0;
      case Penalty::practical: return __builtin_sqrt(larger(estimates_[member], 0.0) * scale) + scale;
      case Penalty::paper: return 4.0 * __builtin_sqrt(scale) + 2.0 * scale;
    }
    return 0.0;
  }

  AdaptiveCatsSettings settings_;
  Buffer<double> bandwidths_, estimates_, squares_, evidence_, rounds_;
  Buffer<CatsModel<DenseSpace>*> members_;
};

}  // namespace manul::MANUL_SIMD
