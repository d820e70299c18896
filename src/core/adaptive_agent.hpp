// CATS with adaptive bandwidth (Algorithm 5): one tree per bandwidth, all trained on every round; the tree with the
// smallest estimated loss plus penalty plays.
//
// The paper evaluates each tree on the whole past again in every round. Here the estimates are progressive: what a tree
// would have played is valued before it learns from the round. They are doubly robust, with the tree's own loss model,
// and the last quarter of the rounds counts most, because the trees get better all the time.
#pragma once

#include "path_agent.hpp"

namespace manul::MANUL_SIMD {

class AdaptiveAgent final : public Agent {
 public:
  explicit AdaptiveAgent(const AdaptiveSettings& settings)
      : settings_(settings), bandwidths_(settings.count), estimates_(settings.count), variances_(settings.count),
        rounds_(settings.count), members_(settings.count) {
    for (std::size_t i = 0; i < settings.count; ++i) {
      TreeSettings tree = settings.tree;
      tree.bandwidth = bandwidths_[i] = settings.bandwidths[i];
      members_[i] = new PathAgent<DenseSpace>(tree);
    }
  }

  ~AdaptiveAgent() override {
    for (std::size_t i = 0; i < settings_.count; ++i) delete members_[i];
  }

  Window window(const float* context, Range within) override { return members_[playing(within)]->window(context, within); }

  void learn(const float* context, const Outcome& outcome) override {
    for (std::size_t i = 0; i < settings_.count; ++i) {
      if (!fits(i, outcome.within)) continue;
      members_[i]->learn(context, outcome);
      rounds_[i] += 1.0;
      const double rate = smaller(1.0, recency / rounds_[i]);
      const double surprise = members_[i]->estimate() - estimates_[i];
      estimates_[i] += rate * surprise;
      variances_[i] += rate * ((1.0 - rate) * surprise * surprise - variances_[i]);
    }
  }

  // The bandwidth that plays: the smallest sum of estimate and penalty among those that fit into the range.
  std::size_t playing(Range within) {
    std::size_t best = settings_.count - 1;
    for (std::size_t i = settings_.count; i-- > 0;)
      if (fits(i, within) && risk(i) < risk(best)) best = i;
    return best;
  }

  // The estimated loss of a bandwidth, raised for being uncertain.
  double risk(std::size_t member) { return estimates_[member] + penalty(member); }

  void forget(double half_life) override {
    for (std::size_t i = 0; i < settings_.count; ++i) members_[i]->forget(half_life);
  }

  std::size_t arrays() const override { return 3 + settings_.count * members_.data()[0]->arrays(); }

  Array array(std::size_t index) override {
    if (index == 0) return {"estimates", "f8", estimates_.data(), estimates_.size()};
    if (index == 1) return {"variances", "f8", variances_.data(), variances_.size()};
    if (index == 2) return {"rounds", "f8", rounds_.data(), rounds_.size()};
    const std::size_t per_member = members_[0]->arrays();
    const std::size_t member = (index - 3) / per_member;
    Array array = members_[member]->array((index - 3) % per_member);
    array.part = member + 1;
    return array;
  }

 private:
  static constexpr double recency = 4.0;

  bool fits(std::size_t member, Range within) const {
    return 2.0 * bandwidths_.data()[member] <= (within.high - within.low) * (1.0 + 1e-12);
  }

  double penalty(std::size_t member) {
    const double span = settings_.tree.actions.high - settings_.tree.actions.low;
    const double share = bandwidths_.data()[member] / span;
    const double scale = settings_.complexity / (larger(rounds_[member], 1.0) * settings_.epsilon * share);
    switch (settings_.penalty) {
      case Penalty::measured: return __builtin_sqrt(variances_[member] * recency / larger(rounds_[member], 1.0));
      case Penalty::practical: return __builtin_sqrt(larger(estimates_[member], 0.0) * scale) + scale;
      case Penalty::paper: return 4.0 * __builtin_sqrt(scale) + 2.0 * scale;
    }
    return 0.0;
  }

  AdaptiveSettings settings_;
  Buffer<double> bandwidths_, estimates_, variances_, rounds_;
  Buffer<PathAgent<DenseSpace>*> members_;
};

}  // namespace manul::MANUL_SIMD
