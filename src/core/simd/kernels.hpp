// The doors into the code that is compiled once per instruction set.
#pragma once

#include "critic/report.hpp"
#include "models/policy_model.hpp"

namespace manul {

// One update of a node by the paper's training rule.
struct Update {
  std::uint32_t node;
  float cost_left;
  float cost_right;
};

class TreeTracer {
 public:
  virtual ~TreeTracer() = default;
  virtual void updated(const Update& update) = 0;
};

struct Kernels {
  Agent* (*tree_agent)(const TreeSettings&);
  RoutingAgent* (*path_agent)(const TreeSettings&);
  Agent* (*adaptive_agent)(const AdaptiveSettings&);
  std::size_t (*playing)(Agent& adaptive, Range within);
  double (*risk)(Agent& adaptive, std::size_t member);
  Agent* (*linear_agent)(const LinearSettings&);
  CriticAgent* (*critic_agent)(const CriticSettings&);
  void (*trace)(Agent&, const TreeSettings&, const float* context, const Outcome&, TreeTracer&);
  Agent* (*discrete_tree)(const DiscreteSettings&, Learner);
  Agent* (*discrete_linear)(const DiscreteSettings&);
};

namespace baseline { Kernels kernels(); }
namespace avx2 { Kernels kernels(); }
namespace avx512 { Kernels kernels(); }

}  // namespace manul
