// dTree of the paper's experiments: CATS with zero bandwidth. Only the chosen leaf has a cost, so one climb trains the
// tree, up to the first node that sends the context to its other side.
#pragma once

#include "models/policy_model.hpp"
#include "models/settings.hpp"
#include "tree/paper_tree.hpp"

namespace manul::MANUL_SIMD {

// Algorithm 10 passes up the side that a node selects after learning. Here every update is against the chosen leaf,
// with a weight of up to K / epsilon, so the climb would end at the first node. The side before learning is passed up
// instead.
template <class Learner>
struct ChoiceBefore : Learner {
  static bool learn(float* node, const DenseContext& context, float cost_left, float cost_right) {
    const bool before = Learner::margin(node, context) > 0.0f;
    Learner::learn(node, context, cost_left, cost_right);
    return before;
  }
};

template <class Base>
class DiscreteTreeModel final : public TreeModel<ChoiceBefore<Base>, ReplayByWindow<PolicyModel>> {
  using Learner = ChoiceBefore<Base>;
  using TreeModel<Learner, ReplayByWindow<PolicyModel>>::context_,
      TreeModel<Learner, ReplayByWindow<PolicyModel>>::tree_;

 public:
  explicit DiscreteTreeModel(const DiscreteSettings& settings)
      : TreeModel<Learner, ReplayByWindow<PolicyModel>>(settings.width, {settings.actions, settings.depth, 0.0, 0.0}),
        atoms_{settings.actions, tree_.geometry().leaves()} {}

  Window window(const ContextView& context, Range within) override {
    context_.look(context);
    return {atoms_.at(tree_.route(context_, atoms_.inside(within))), 0.0};
  }

  void learn(const ContextView& context, const Outcome& outcome) override {
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
