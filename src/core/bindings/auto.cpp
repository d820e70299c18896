// Auto.
#include "bindings/bindings.hpp"

namespace manul {
namespace {

using AutoPlayer = ModelPlayer<CriticModel>;

// With `features`, contexts are named, and up to this number of features have weights of their own.
CriticModel* build(PlayerSettings& settings, std::uint32_t features) {
  if (features > 0) settings.naming = Naming::numbered;
  settings.features = features;
  return kernels().new_auto(
      {settings.actions, settings.width, settings.exploration.seed, is_unknown(settings.losses), features});
}

nb::typed<nb::dict, nb::str, nb::any> report(const AutoPlayer& player) {
  const CriticReport report = player.model.report();
  nb::dict all;
  all["errors"] = std::vector<double>(std::begin(report.errors), std::end(report.errors));
  all["weights"] = std::vector<double>(std::begin(report.weights), std::end(report.weights));
  all["forest"] = report.forest;
  all["trees"] = report.trees;
  all["bandwidth"] = report.bandwidth;
  all["noise"] = report.noise;
  all["rounds"] = report.rounds;
  all["memory"] = report.memory;
  all["alarms"] = report.alarms;
  all["last_alarm"] = report.last_alarm;
  all["clipped"] = report.clipped;
  return all;
}

template <class Context>
std::vector<double> curve(AutoPlayer& player, const Context& context, std::size_t points) {
  std::vector<double> losses(points);
  player.model.curve(view(player, context), points, losses.data());
  return losses;
}

}  // namespace

void bind_auto(nb::module_& module) {
  auto type = nb::class_<AutoPlayer, Player>(module, "AutoPlayer");
  bind_constructor(type, &build, "features"_a = 0);
  type.def("report", &report)
      .def("curve", &curve<Vector<float>>, "context"_a, "points"_a)
      .def("curve", &curve<Fields>, "context"_a, "points"_a);
}

}  // namespace manul
