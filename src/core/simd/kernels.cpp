// Compiled once per instruction set, with MANUL_SIMD naming it.
#include "simd/kernels.hpp"

#include "learners/adagrad.hpp"
#include "learners/coin_betting.hpp"
#include "models/adaptive_cats.hpp"
#include "models/auto.hpp"
#include "models/cats.hpp"
#include "models/discrete_linear.hpp"
#include "models/discrete_tree.hpp"
#include "models/linear.hpp"
#include "models/paper_cats.hpp"

namespace manul::MANUL_SIMD {

namespace {

// Calls `use` with a null pointer of the agent type that goes with the learner.
template <template <class> class Made, class Use>
void with_learner(Learner learner, Use&& use) {
  switch (learner) {
    case Learner::coin_costs: return use(static_cast<Made<CoinCosts>*>(nullptr));
    case Learner::coin_margin: return use(static_cast<Made<CoinMargin>*>(nullptr));
    case Learner::adagrad_squared: return use(static_cast<Made<AdaGrad<Squared>>*>(nullptr));
    case Learner::adagrad_logistic: return use(static_cast<Made<AdaGrad<Logistic>>*>(nullptr));
  }
}

Agent* tree_agent(const TreeSettings& settings) {
  Agent* made = nullptr;
  with_learner<TreeAgent>(settings.learner, [&]<class Made>(Made*) { made = new Made(settings); });
  return made;
}

RoutingAgent* path_agent(const TreeSettings& settings) {
  if (settings.bits > 0) return new PathAgent<HashedSpace>(settings);
  return new PathAgent<DenseSpace>(settings);
}

Agent* adaptive_agent(const AdaptiveSettings& settings) { return new AdaptiveAgent(settings); }

std::size_t playing(Agent& adaptive, Range within) { return static_cast<AdaptiveAgent&>(adaptive).playing(within); }

double risk(Agent& adaptive, std::size_t member) { return static_cast<AdaptiveAgent&>(adaptive).risk(member); }

Agent* linear_agent(const LinearSettings& settings) { return new LinearAgent(settings); }

CriticAgent* critic_agent(const CriticSettings& settings) { return new Critic(settings); }

void trace(Agent& agent, const TreeSettings& settings, const float* context, const Outcome& outcome,
           TreeTracer& tracer) {
  with_learner<TreeAgent>(settings.learner, [&]<class Made>(Made*) {
    static_cast<Made&>(agent).learn(context, outcome,
                                    [&](Node node, float left, float right) { tracer.updated({node, left, right}); });
  });
}

Agent* discrete_tree(const DiscreteSettings& settings, Learner learner) {
  Agent* made = nullptr;
  with_learner<DiscreteTree>(learner, [&]<class Made>(Made*) { made = new Made(settings); });
  return made;
}

Agent* discrete_linear(const DiscreteSettings& settings) { return new DiscreteLinear(settings); }

}  // namespace

Kernels kernels() {
  return {tree_agent,   path_agent,   adaptive_agent, playing,       risk,
          linear_agent, critic_agent, trace,          discrete_tree, discrete_linear};
}

}  // namespace manul::MANUL_SIMD
