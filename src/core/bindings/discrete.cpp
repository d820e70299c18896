// DiscreteTree and DiscreteLinear, the paper's comparators.
#include "bindings/bindings.hpp"

namespace manul {
namespace {

using DiscreteTreePlayer = ModelPlayer<PolicyModel, struct DiscreteTree>;
using DiscreteLinearPlayer = ModelPlayer<PolicyModel, struct DiscreteLinear>;

DiscreteSettings discretise(PlayerSettings& settings, std::uint32_t depth) {
  settings.exploration.atoms = {settings.actions, std::int64_t{1} << depth};
  return {settings.actions, settings.width, depth};
}

PolicyModel* build_tree(PlayerSettings& settings, std::uint32_t depth, NodeLearner learner) {
  return kernels().new_discrete_tree(discretise(settings, depth), learner);
}

PolicyModel* build_linear(PlayerSettings& settings, std::uint32_t depth) {
  return kernels().new_discrete_linear(discretise(settings, depth));
}

std::pair<std::int64_t, std::int64_t> atoms_inside(const Limits& actions, std::int64_t leaves, double low,
                                                   double high) {
  const auto [first, last] = MANUL_SIMD::Atoms{to_range(actions), leaves}.inside({low, high});
  return {first, last};
}

}  // namespace

void bind_discrete(nb::module_& module) {
  auto tree = nb::class_<DiscreteTreePlayer, Player>(module, "DiscreteTreePlayer");
  bind_constructor(tree, &build_tree, "depth"_a, "learner"_a);
  auto linear = nb::class_<DiscreteLinearPlayer, Player>(module, "DiscreteLinearPlayer");
  bind_constructor(linear, &build_linear, "depth"_a);
  module.def("atoms_inside", &atoms_inside, "actions"_a, "leaves"_a, "low"_a, "high"_a);
}

}  // namespace manul
