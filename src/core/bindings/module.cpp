// The module manul._core.
#include "bindings/bindings.hpp"

namespace manul {
namespace {

std::pair<double, double> draw_pair(std::uint64_t seed, std::uint64_t decision) {
  const Draws draws = draw(seed, decision);
  return {draws.first, draws.second};
}

}  // namespace
}  // namespace manul

NB_MODULE(_core, module) {
  using namespace manul;
  nb::set_leak_warnings(false);  // an agent may live until the interpreter exits
  module.doc() = "The native core of manul.";
  nb::exception<Rejected>(module, "Rejected", PyExc_ValueError);
  bind_player(module);
  bind_cats(module);
  bind_auto(module);
  bind_knobs(module);
  bind_linear(module);
  bind_discrete(module);
  bind_simulation(module);
  module.def("instruction_set", [] { return machine().name; });
  module.def("draw", &draw_pair, "seed"_a, "decision"_a);
}
