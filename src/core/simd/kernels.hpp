// The entry points of the code that is compiled once per instruction set.
#pragma once

#include "models/policy_model.hpp"
#include "models/settings.hpp"

namespace manul {

// The caller owns the returned models.
struct Kernels {
  RoutingModel* (*new_cats)(const CatsSettings&);
  TracingModel* (*new_paper_cats)(const PaperCatsSettings&);
  BandwidthSelectingModel* (*new_adaptive_cats)(const AdaptiveCatsSettings&);
  CriticModel* (*new_auto)(const AutoSettings&);
  KnobsModel* (*new_auto_knobs)(const AutoKnobsSettings&);
  PolicyModel* (*new_linear)(const LinearSettings&);
  PolicyModel* (*new_discrete_tree)(const DiscreteSettings&, NodeLearner);
  PolicyModel* (*new_discrete_linear)(const DiscreteSettings&);
};

namespace baseline { Kernels kernels(); }
namespace avx2 { Kernels kernels(); }
namespace avx512 { Kernels kernels(); }

}  // namespace manul
