// CATS with the paper's training rule, as an Agent.
#pragma once

#include "tree/tree.hpp"

namespace manul::MANUL_SIMD {

template <class Learner>
class TreeAgent final : public Trained<Learner, Agent> {
  using Trained<Learner, Agent>::context_, Trained<Learner, Agent>::tree_;

 public:
  explicit TreeAgent(const TreeSettings& settings)
      : Trained<Learner, Agent>(settings.width,
                                {settings.actions, settings.depth, settings.offset, settings.bandwidth}) {}

  Window window(const float* context, Range within) override {
    context_.look(context);
    const auto leaf = tree_.route(context_, tree_.geometry().reachable(within));
    return {tree_.geometry().centre(leaf, within), tree_.geometry().bandwidth};
  }

  void learn(const float* context, const Outcome& outcome) override {
    learn(context, outcome, [](Node, float, float) {});
  }

  // Most routes leave early for leaves that do not cover the action, and need not be followed to their ends.
  Window replay(const float* context, const Outcome& outcome) override {
    context_.measure(context);
    const Geometry& geometry = tree_.geometry();
    const Leaves reachable = geometry.reachable(outcome.within), covering = geometry.covering(outcome.action);
    Leaves wanted = reachable;
    if (covering.first - 1 > wanted.first) wanted.first = covering.first - 1;
    if (covering.last + 1 < wanted.last) wanted.last = covering.last + 1;
    const auto leaf = tree_.route(context_, reachable, wanted.first <= wanted.last ? wanted : reachable);
    train(outcome, reachable, covering, [](Node, float, float) {});
    return {geometry.centre(leaf, outcome.within), geometry.bandwidth};
  }

  template <class Learned>
  void learn(const float* context, const Outcome& outcome, Learned&& learned) {
    context_.measure(context);
    train(outcome, tree_.geometry().reachable(outcome.within), tree_.geometry().covering(outcome.action), learned);
  }

 private:
  template <class Learned>
  void train(const Outcome& outcome, Leaves reachable, Leaves covering, Learned&& learned) {
    const double cost = outcome.loss / (2.0 * tree_.geometry().bandwidth * outcome.density);
    Climb<Learner>(tree_, context_, reachable, static_cast<float>(cost)).train(covering, learned);
  }
};

}  // namespace manul::MANUL_SIMD
