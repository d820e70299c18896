// Auto.
#include "bindings/context_batch.hpp"

namespace manul {
namespace {

using AutoPlayer = ModelPlayer<CriticModel>;

// With `features`, contexts are named, and up to this number of features have weights of their own.
CriticModel* build(PlayerSettings& settings, std::uint32_t features, double bandwidth, double nearby, bool by_evidence,
                   bool early, double start, bool prior, PartsDict parts) {
  if (features > 0) settings.naming = Naming::numbered;
  settings.features = features;
  settings.exploration.nearby = nearby;
  settings.exploration.by_evidence = by_evidence;
  return kernels().new_auto({settings.actions, settings.width, settings.exploration.seed, is_unknown(settings.losses),
                             features, bandwidth, early, start, prior, to_parts(settings, parts)});
}

nb::typed<nb::dict, nb::str, nb::any> report(const AutoPlayer& player) {
  return to_dict(player.model.report(), player.model.formula_report());
}

// Takes over what another agent has learned of the parts of outcomes; named contexts must have the same columns.
bool inherit(AutoPlayer& player, AutoPlayer& sister) {
  const BasePlayer::Busy busy(player), hers(sister);
  return player.model.inherit(sister.model);
}

// The prices of limits in expectation: of what is spent and of what is kept now, and the usual one of what is spent.
std::tuple<double, double, double> prices(AutoPlayer& player) {
  const Prices& own = player.model.prices();
  return {own.spent, own.kept, own.usual};
}

void set_prices(AutoPlayer& player, const std::tuple<double, double, double>& prices) {
  const BasePlayer::Busy busy(player);
  player.model.prices() = {std::get<0>(prices), std::get<1>(prices), std::get<2>(prices)};
}

// What is expected of the latest decision: its value, what it spends and keeps, what it would spend at the usual price,
// and the most that any action keeps.
std::tuple<double, double, double, double, double> expectation(const AutoPlayer& player) {
  const Expectation own = player.model.expectation();
  return {own.value, own.spent, own.kept, own.usual, own.most_kept};
}

// What an action is expected to spend in the context of the latest decision.
double expected_spending(const AutoPlayer& player, double action) { return player.model.spent(action); }

// The distribution around a window, if a share of the decisions explores nearby; `epsilon` is that of `played`.
Levels levels(const AutoPlayer& player, double centre, double bandwidth, double low, double high, double epsilon) {
  return to_levels(player.ladder({centre, bandwidth, epsilon}, {low, high}));
}

// The predicted losses of as many actions per context as fit into `actions`, row by row.
template <class Contexts>
void predict_many(AutoPlayer& player, const Contexts& contexts, const Matrix<double>& actions, Output losses) {
  const Vector<double> whole_range;
  const ContextBatch batch(player, contexts, actions.shape(0), whole_range, whole_range);
  const std::size_t count = actions.shape(1);
  if (batch.rows().count != actions.shape(0)) throw Rejected();
  check_sizes(actions.size(), losses);
  nb::gil_scoped_release unlocked;
  player.visit_contexts(batch.rows(), [&](std::size_t i, const ContextView& context) {
    player.model.predict(context, actions.data() + i * count, count, losses.data() + i * count);
  });
}

// The centres of the best windows of a bandwidth.
template <class Contexts>
void centres_many(AutoPlayer& player, const Contexts& contexts, const Vector<double>& lows, const Vector<double>& highs,
                  double bandwidth, Output centres) {
  const ContextBatch batch(player, contexts, centres.size(), lows, highs);
  const Rows& rows = batch.rows();
  check_sizes(rows.count, centres);
  nb::gil_scoped_release unlocked;
  player.visit_contexts(rows, [&](std::size_t i, const ContextView& context) {
    const Range within = rows.lows == nullptr ? player.settings().actions : Range{rows.lows[i], rows.highs[i]};
    centres.data()[i] = player.model.best_window(context, within, bandwidth).centre;
  });
}

template <class Contexts>
void bind_many(nb::class_<AutoPlayer, Player>& type) {
  type.def("predict_many", &predict_many<Contexts>, "contexts"_a, "actions"_a, "losses"_a)
      .def("centres_many", &centres_many<Contexts>, "contexts"_a, "lows"_a, "highs"_a, "bandwidth"_a, "centres"_a);
}

}  // namespace

nb::typed<nb::dict, nb::str, nb::any> to_dict(const CriticReport& report, const FormulaReport& formula) {
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
  all["early"] = report.early;
  all["constant"] = report.constant;
  all["prior"] = report.prior;
  all["formula"] = formula.weight;
  all["reported"] = formula.reported;
  all["explained"] = formula.explained;
  all["hints"] = std::vector<double>(formula.hints, formula.hints + formula.parts);
  all["inherited"] = std::vector<double>(formula.inherited, formula.inherited + formula.parts);
  return all;
}

void bind_auto(nb::module_& module) {
  auto type = nb::class_<AutoPlayer, Player>(module, "AutoPlayer");
  bind_constructor(type, &build, "features"_a = 0, "bandwidth"_a = 0.0, "nearby"_a = 0.0, "by_evidence"_a = false,
                   "early"_a = true, "start"_a = none, "prior"_a = false, "parts"_a.none() = nb::none());
  type.def("report", &report);
  type.def("inherit", &inherit, "sister"_a);
  type.def_prop_rw("prices", &prices, &set_prices);
  type.def_prop_ro("expectation", &expectation);
  type.def("expected_spending", &expected_spending, "action"_a);
  type.def("levels", &levels, "centre"_a, "bandwidth"_a, "low"_a, "high"_a, "epsilon"_a = 1.0);
  bind_many<Matrix<float>>(type);
  bind_many<Mappings>(type);
  bind_many<Columns>(type);
  bind_many<SparseRows>(type);
}

}  // namespace manul
