// The class of linear policies.
#include "bindings/bindings.hpp"

namespace manul {
namespace {

using LinearPlayer = ModelPlayer<PolicyModel, struct Linear>;

PolicyModel* build(PlayerSettings& settings, double bandwidth, double rate) {
  return kernels().new_linear({settings.actions, settings.width, bandwidth, rate});
}

}  // namespace

void bind_linear(nb::module_& module) {
  auto type = nb::class_<LinearPlayer, Player>(module, "LinearPlayer");
  bind_constructor(type, &build, "bandwidth"_a, "rate"_a);
}

}  // namespace manul
