// Cats.paper: CATS with the paper's training rule (Algorithms 1 and 10).
#pragma once

#include "models/policy_model.hpp"
#include "models/settings.hpp"
#include "tree/paper_tree.hpp"

namespace manul::MANUL_SIMD {

template <class Learner>
class PaperCatsModel final : public TreeModel<Learner, TracingModel> {
  using TreeModel<Learner, TracingModel>::context_, TreeModel<Learner, TracingModel>::tree_;

 public:
  explicit PaperCatsModel(const PaperCatsSettings& settings)
      : TreeModel<Learner, TracingModel>(settings.width,
                                         {settings.actions, settings.depth, settings.offset, settings.bandwidth}) {}

  Window window(const ContextView& context, Range within) override {
    context_.look(context);
    const auto leaf = tree_.route(context_, tree_.geometry().reachable(within));
    return {tree_.geometry().centre(leaf, within), tree_.geometry().bandwidth};
  }

  void learn(const ContextView& context, const Outcome& outcome) override {
    learn(context, outcome, [](Node, float, float) {});
  }

  // Most routes lead to leaves that do not cover the action and can be stopped early.
  Window replay(const ContextView& context, const Outcome& outcome) override {
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

  void learn_observed(const ContextView& context, const Outcome& outcome, UpdateObserver& observer) override {
    learn(context, outcome, [&](Node node, float left, float right) { observer.observe({node, left, right}); });
  }

  // Calls `observe(node, cost left, cost right)` for each update.
  template <class Observe>
  void learn(const ContextView& context, const Outcome& outcome, Observe&& observe) {
    context_.measure(context);
    train(outcome, tree_.geometry().reachable(outcome.within), tree_.geometry().covering(outcome.action), observe);
  }

 private:
  template <class Observe>
  void train(const Outcome& outcome, Leaves reachable, Leaves covering, Observe&& observe) {
    const double cost = outcome.loss / (2.0 * tree_.geometry().bandwidth * outcome.density);
    Climb<Learner>(tree_, context_, reachable, static_cast<float>(cost)).train(covering, observe);
  }
};

}  // namespace manul::MANUL_SIMD
