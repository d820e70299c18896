// Cats, Cats.paper and AdaptiveCats.
#include "bindings/bindings.hpp"

namespace manul {
namespace {

using CatsPlayer = ModelPlayer<RoutingModel>;

RoutingModel* build_cats(PlayerSettings& settings, std::uint32_t depth, double bandwidth, std::uint32_t bits) {
  if (bits > 0) settings.naming = Naming::hashed;
  return kernels().new_cats({settings.actions, settings.width, depth, bandwidth, bits});
}

std::vector<float> weights(const CatsPlayer& player, std::uint32_t row, const std::vector<std::uint32_t>& features) {
  if (row >= std::uint32_t{1} << player.model.depth()) throw Rejected();
  std::vector<float> weights;
  for (const std::uint32_t feature : features) {
    if (player.settings().naming != Naming::hashed && feature > player.settings().width) throw Rejected();
    weights.push_back(player.model.weight(row, feature));
  }
  return weights;
}

using Steps = std::vector<std::tuple<std::uint32_t, double, bool, bool>>;

template <class Context>
Steps route(CatsPlayer& player, const Context& context, double low, double high) {
  std::vector<Step> route(player.model.depth());
  player.model.route(view(player, context), {low, high}, route.data());
  Steps steps;
  for (const Step& step : route) steps.emplace_back(step.node, step.margin, step.right, step.forced);
  return steps;
}

using PaperCatsPlayer = ModelPlayer<TracingModel>;

TracingModel* build_paper_cats(PlayerSettings& settings, std::uint32_t depth, double bandwidth, double offset,
                               NodeLearner learner) {
  return kernels().new_paper_cats({settings.actions, settings.width, depth, bandwidth, offset, learner});
}

struct Updates : UpdateObserver {
  std::vector<std::tuple<std::uint32_t, float, float>> all;
  void observe(const Update& update) override { all.emplace_back(update.node, update.cost_left, update.cost_right); }
};

// Learns from an outcome with a scaled loss; returns the trained nodes with the costs of both children.
auto trace(PaperCatsPlayer& player, const Vector<float>& context, double action, double density, double loss,
           double low, double high) {
  Updates updates;
  player.model.learn_observed(view(player, context), {action, density, loss, {low, high}}, updates);
  return updates.all;
}

using AdaptiveCatsPlayer = ModelPlayer<BandwidthSelectingModel>;

BandwidthSelectingModel* build_adaptive_cats(PlayerSettings& settings, std::uint32_t depth,
                                             const std::vector<double>& bandwidths, Penalty penalty,
                                             double complexity) {
  return kernels().new_adaptive_cats({{settings.actions, settings.width, depth, 0.0},
                                      bandwidths.data(),
                                      bandwidths.size(),
                                      settings.exploration.schedule.last,
                                      penalty,
                                      complexity});
}

std::size_t best_member(AdaptiveCatsPlayer& player) { return player.model.best_member(player.settings().actions); }

double risk(AdaptiveCatsPlayer& player, std::size_t member) {
  if (member >= player.model.members()) throw Rejected();
  return player.model.risk(member);
}

}  // namespace

void bind_cats(nb::module_& module) {
  auto cats = nb::class_<CatsPlayer, Player>(module, "CatsPlayer");
  bind_constructor(cats, &build_cats, "depth"_a, "bandwidth"_a, "bits"_a = 0);
  cats.def("weights", &weights, "row"_a, "features"_a)
      .def("route", &route<Vector<float>>, "context"_a, "low"_a, "high"_a)
      .def("route", &route<Fields>, "context"_a, "low"_a, "high"_a);

  nb::enum_<NodeLearner>(module, "NodeLearner")
      .value("coin_costs", NodeLearner::coin_costs)
      .value("coin_margin", NodeLearner::coin_margin)
      .value("adagrad_squared", NodeLearner::adagrad_squared)
      .value("adagrad_logistic", NodeLearner::adagrad_logistic);
  auto paper = nb::class_<PaperCatsPlayer, Player>(module, "PaperCatsPlayer");
  bind_constructor(paper, &build_paper_cats, "depth"_a, "bandwidth"_a, "offset"_a, "learner"_a);
  paper.def("trace", &trace, "context"_a, "action"_a, "density"_a, "loss"_a, "low"_a, "high"_a);

  nb::enum_<Penalty>(module, "Penalty")
      .value("measured", Penalty::measured)
      .value("practical", Penalty::practical)
      .value("paper", Penalty::paper);
  auto adaptive = nb::class_<AdaptiveCatsPlayer, Player>(module, "AdaptiveCatsPlayer");
  bind_constructor(adaptive, &build_adaptive_cats, "depth"_a, "bandwidths"_a, "penalty"_a, "complexity"_a);
  adaptive.def_prop_ro("best_member", &best_member).def("risk", &risk, "member"_a);
}

}  // namespace manul
