// CATS with the paper's training rule, as an Agent.
#pragma once

#include "tree.hpp"

namespace manul::MANUL_SIMD {

template <class Learner>
class TreeAgent final : public Agent {
 public:
  explicit TreeAgent(const TreeSettings& settings)
      : context_(settings.width, false),
        tree_({settings.actions, settings.depth, settings.offset, settings.bandwidth}, context_.stride()) {}

  Window window(const float* context, Range within) override {
    context_.look(context);
    const auto leaf = tree_.route(context_, tree_.geometry().reachable(within));
    return {tree_.geometry().centre(leaf, within), tree_.geometry().bandwidth};
  }

  void learn(const float* context, const Outcome& outcome) override {
    learn(context, outcome, [](Node, float, float) {});
  }

  template <class Learned>
  void learn(const float* context, const Outcome& outcome, Learned&& learned) {
    context_.learn(context);
    const Geometry& geometry = tree_.geometry();
    const double cost = outcome.loss / (2.0 * geometry.bandwidth * outcome.density);
    Climb<Learner> climb(tree_, context_, geometry.reachable(outcome.within), static_cast<float>(cost));
    climb.train(geometry.covering(outcome.action), learned);
  }

  void forget(double half_life) override { context_.forget(half_life); }

  std::size_t arrays() const override { return 2; }

  Array array(std::size_t index) override {
    const Array all[] = {
        {"nodes", "f4", tree_.nodes().data(), tree_.nodes().size()},
        {"largest", "f4", context_.largest_array().data(), context_.largest_array().size()},
    };
    return all[index];
  }

 private:
  Context context_;
  Tree<Learner> tree_;
};

}  // namespace manul::MANUL_SIMD
