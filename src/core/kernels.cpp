// Compiled once per instruction set, with MANUL_SIMD naming it.
#include "kernels.hpp"

#include "learners/adagrad.hpp"
#include "learners/coin.hpp"
#include "linear_agent.hpp"
#include "tree_agent.hpp"

namespace manul::MANUL_SIMD {

namespace {

// Calls `use` with a null pointer of the agent type that the settings ask for.
template <class Use>
void with_tree_type(const TreeSettings& settings, Use&& use) {
  switch (settings.learner) {
    case Learner::coin_costs: return use(static_cast<TreeAgent<CoinCosts>*>(nullptr));
    case Learner::coin_margin: return use(static_cast<TreeAgent<CoinMargin>*>(nullptr));
    case Learner::adagrad_squared: return use(static_cast<TreeAgent<AdaGrad<Squared>>*>(nullptr));
    case Learner::adagrad_logistic: return use(static_cast<TreeAgent<AdaGrad<Logistic>>*>(nullptr));
  }
}

Agent* tree_agent(const TreeSettings& settings) {
  Agent* made = nullptr;
  with_tree_type(settings, [&]<class Made>(Made*) { made = new Made(settings); });
  return made;
}

Agent* linear_agent(const LinearSettings& settings) { return new LinearAgent(settings); }

void trace(Agent& agent, const TreeSettings& settings, const float* context, const Outcome& outcome,
           TreeTracer& tracer) {
  with_tree_type(settings, [&]<class Made>(Made*) {
    static_cast<Made&>(agent).learn(context, outcome, [&](Node node, float left, float right) {
      tracer.updated({node, left, right});
    });
  });
}

}  // namespace

Kernels kernels() { return {tree_agent, linear_agent, trace}; }

}  // namespace manul::MANUL_SIMD
