// Compiled once per instruction set, whose name is MANUL_SIMD.
#include "simd/kernels.hpp"

#include "learners/adagrad.hpp"
#include "learners/coin_betting.hpp"
#include "models/adaptive_cats.hpp"
#include "models/auto.hpp"
#include "models/auto_knobs.hpp"
#include "models/cats.hpp"
#include "models/discrete_linear.hpp"
#include "models/discrete_tree.hpp"
#include "models/linear.hpp"
#include "models/paper_cats.hpp"

namespace manul::MANUL_SIMD {

namespace {

// A model whose nodes learn with `learner`.
template <template <class> class Model, class Interface, class Settings>
Interface* new_with_learner(NodeLearner learner, const Settings& settings) {
  switch (learner) {
    case NodeLearner::coin_costs: return new Model<CoinCosts>(settings);
    case NodeLearner::coin_margin: return new Model<CoinMargin>(settings);
    case NodeLearner::adagrad_squared: return new Model<AdaGrad<Squared>>(settings);
    case NodeLearner::adagrad_logistic: return new Model<AdaGrad<Logistic>>(settings);
  }
  return nullptr;
}

RoutingModel* new_cats(const CatsSettings& settings) {
  if (settings.bits > 0) return new CatsModel<HashedSpace>(settings);
  return new CatsModel<DenseSpace>(settings);
}

TracingModel* new_paper_cats(const PaperCatsSettings& settings) {
  return new_with_learner<PaperCatsModel, TracingModel>(settings.learner, settings);
}

PolicyModel* new_discrete_tree(const DiscreteSettings& settings, NodeLearner learner) {
  return new_with_learner<DiscreteTreeModel, PolicyModel>(learner, settings);
}

template <class Model, class Interface, class Settings>
Interface* new_model(const Settings& settings) {
  return new Model(settings);
}

}  // namespace

Kernels kernels() {
  return {
      .new_cats = new_cats,
      .new_paper_cats = new_paper_cats,
      .new_adaptive_cats = new_model<AdaptiveCatsModel, BandwidthSelectingModel, AdaptiveCatsSettings>,
      .new_auto = new_model<AutoModel, CriticModel, AutoSettings>,
      .new_auto_knobs = new_model<AutoKnobsModel, KnobsModel, AutoKnobsSettings>,
      .new_linear = new_model<LinearModel, PolicyModel, LinearSettings>,
      .new_discrete_tree = new_discrete_tree,
      .new_discrete_linear = new_model<DiscreteLinearModel, PolicyModel, DiscreteSettings>,
  };
}

}  // namespace manul::MANUL_SIMD
