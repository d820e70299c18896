// dTree of the paper's experiments, as an Agent: CATS with zero bandwidth. Only the leaf that was played has a cost, so
// one climb trains the tree, up to the first node that sends the context to its other side.
#pragma once

#include "tree/tree.hpp"

namespace manul::MANUL_SIMD {

// Algorithm 10 passes up what a node chooses after it has learned. Here every update speaks against the played leaf
// with a weight of up to K / epsilon, so that would end the climb at the first node: pass up what it chose before
// instead.
template <class Learner>
struct ChoiceBefore : Learner {
  static bool learn(float* node, const Context& context, float cost_left, float cost_right) {
    const bool before = Learner::margin(node, context) > 0.0f;
    Learner::learn(node, context, cost_left, cost_right);
    return before;
  }
};

template <class Base>
class DiscreteTree final : public Trained<ChoiceBefore<Base>, Plain<Agent>> {
  using Learner = ChoiceBefore<Base>;
  using Trained<Learner, Plain<Agent>>::context_, Trained<Learner, Plain<Agent>>::tree_;

 public:
  explicit DiscreteTree(const DiscreteSettings& settings)
      : Trained<Learner, Plain<Agent>>(settings.width, {settings.actions, settings.depth, 0.0, 0.0}),
        atoms_{settings.actions, tree_.geometry().leaves()} {}

  Window window(const float* context, Range within) override {
    context_.look(context);
    return {atoms_.at(tree_.route(context_, atoms_.inside(within))), 0.0};
  }

  void learn(const float* context, const Outcome& outcome) override {
    context_.measure(context);
    const auto played = atoms_.nearest(outcome.action);
    const double cost = outcome.loss / (outcome.density * atoms_.spacing());
    Climb<Learner> climb(tree_, context_, atoms_.inside(outcome.within), static_cast<float>(cost));
    climb.train({played, played}, [](Node, float, float) {});
  }

 private:
  Atoms atoms_;
};

}  // namespace manul::MANUL_SIMD
