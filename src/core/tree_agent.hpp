// CATS with the paper's training rule, as an Agent.
#pragma once

#include "tree.hpp"

namespace manul::MANUL_SIMD {

template <class Learner>
class TreeAgent final : public Agent {
 public:
  explicit TreeAgent(const TreeSettings& settings)
      : context_(settings.width, settings.standardise),
        tree_({settings.actions, settings.depth, settings.offset, settings.bandwidth}, context_.stride()),
        uses_baseline_(settings.baseline) {}

  Window window(const float* context, Range within) override {
    context_.look(context);
    const auto leaf = tree_.route(context_, tree_.geometry().reachable(within));
    return {tree_.geometry().centre(leaf, within), tree_.geometry().bandwidth};
  }

  void learn(const float* context, const Outcome& outcome) override {
    learn(context, outcome, [](Node, float, float) {});
  }

  // The expected smoothing weight of every reachable leaf is 1, so a baseline changes no comparison of two leaves in
  // expectation, but takes most of the variance away.
  template <class Learned>
  void learn(const float* context, const Outcome& outcome, Learned&& learned) {
    context_.learn(context);
    const Geometry& geometry = tree_.geometry();
    const double loss = outcome.loss - (uses_baseline_ ? baseline_ : 0.0);
    const double cost = loss / (2.0 * geometry.bandwidth * outcome.density);
    Climb<Learner> climb(tree_, context_, geometry.reachable(outcome.within), static_cast<float>(cost));
    climb.train(geometry.covering(outcome.action), learned);
    rounds_ += 1.0;
    baseline_ += (outcome.loss - baseline_) / smaller(rounds_, memory);
  }

  void forget(double half_life) override { context_.forget(half_life); }

  std::size_t arrays() const override { return 7; }

  Array array(std::size_t index) override {
    const Array all[] = {
        {"nodes", "f4", tree_.nodes().data(), tree_.nodes().size()},
        {"largest", "f4", context_.largest_array().data(), context_.largest_array().size()},
        {"mean", "f8", context_.mean_array().data(), context_.mean_array().size()},
        {"variance", "f8", context_.variance_array().data(), context_.variance_array().size()},
        {"count", "f8", context_.count(), 1},
        {"baseline", "f8", &baseline_, 1},
        {"rounds", "f8", &rounds_, 1},
    };
    return all[index];
  }

 private:
  static constexpr double memory = 10000.0;

  Context context_;
  Tree<Learner> tree_;
  bool uses_baseline_;
  double baseline_ = 0.0, rounds_ = 0.0;
};

}  // namespace manul::MANUL_SIMD
