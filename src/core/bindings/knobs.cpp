// Auto for several knobs. The range of a knob is a pair of numbers: its lowest and highest position, or, for a choice,
// the bits of the categories that are allowed and any number.
#include "bindings/context_batch.hpp"
#include "play/knobs_player.hpp"

namespace manul {
namespace {

using Numbers = std::vector<double>;
using Draw = KnobsPlayer::Draw;
// A function of the number of a knob and the positions drawn so far, which returns the knob's range.
using LimitsFunction = nb::typed<nb::callable, std::pair<double, double>(std::size_t, Numbers)>;
using Table = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

struct Ranges {
  KnobRange all[most_knobs];
};

Ranges to_ranges(const KnobsPlayer& player, const double* lows, const double* highs) {
  Ranges ranges;
  for (std::size_t k = 0; k < player.size(); ++k) {
    const bool mask = lows[k] >= 1.0 && lows[k] < 4294967296.0;
    ranges.all[k] = {lows[k], highs[k], mask ? static_cast<std::uint32_t>(lows[k]) : 0u};
  }
  player.check(ranges.all);
  return ranges;
}

Ranges to_ranges(const KnobsPlayer& player, const Vector<double>& lows, const Vector<double>& highs) {
  check_sizes(player.size(), lows, highs);
  return to_ranges(player, lows.data(), highs.data());
}

struct NoLimits {
  void operator()(std::size_t, const Draw*, KnobRange&) const {}
};

struct Limits {
  const KnobsPlayer& player;
  const LimitsFunction& function;

  void operator()(std::size_t k, const Draw* draws, KnobRange& range) const {
    Numbers positions(player.size());
    for (std::size_t i = 0; i < player.size(); ++i) positions[i] = draws[i].position;
    const auto [low, high] = nb::cast<std::pair<double, double>>(function(k, positions));
    const bool mask = low >= 1.0 && low < 4294967296.0;
    range = {low, high, mask ? static_cast<std::uint32_t>(low) : 0u};
  }
};

nb::typed<nb::tuple, Numbers, Numbers, double> to_tuple(const KnobsPlayer& player, const Draw* draws) {
  Numbers positions, densities;
  double floor = 1.0;
  for (std::size_t k = 0; k < player.size(); ++k) {
    positions.push_back(draws[k].position);
    densities.push_back(draws[k].density);
    floor *= draws[k].floor;
  }
  return nb::make_tuple(positions, densities, floor);
}

template <class Context>
auto decide(KnobsPlayer& player, const Context& context, const Vector<double>& lows, const Vector<double>& highs,
            std::uint64_t number, const std::optional<LimitsFunction>& limits) {
  const Ranges ranges = to_ranges(player, lows, highs);
  const BasePlayer::Busy busy(player);
  Draw draws[most_knobs] = {};
  if (limits)
    player.decide(view(player, context), ranges.all, number, Limits{player, *limits}, draws);
  else
    player.decide(view(player, context), ranges.all, number, NoLimits{}, draws);
  return to_tuple(player, draws);
}

template <class Context>
auto densities(KnobsPlayer& player, const Context& context, const Vector<double>& lows, const Vector<double>& highs,
               const Vector<double>& positions, const std::optional<LimitsFunction>& limits) {
  const Ranges ranges = to_ranges(player, lows, highs);
  const BasePlayer::Busy busy(player);
  check_sizes(player.size(), positions);
  player.check_positions(positions.data());
  Draw draws[most_knobs] = {};
  if (limits)
    player.densities(view(player, context), ranges.all, positions.data(), Limits{player, *limits}, draws);
  else
    player.densities(view(player, context), ranges.all, positions.data(), NoLimits{}, draws);
  return to_tuple(player, draws);
}

// The centre and bandwidth of each knob's window, or its best category and 0.
template <class Context>
std::vector<std::pair<double, double>> windows(KnobsPlayer& player, const Context& context, const Vector<double>& lows,
                                               const Vector<double>& highs) {
  const Ranges ranges = to_ranges(player, lows, highs);
  const BasePlayer::Busy busy(player);
  KnobWindow windows[most_knobs];
  player.windows(view(player, context), ranges.all, windows);
  std::vector<std::pair<double, double>> all;
  for (std::size_t k = 0; k < player.size(); ++k)
    all.emplace_back(windows[k].bandwidth > 0.0 ? windows[k].centre : windows[k].category, windows[k].bandwidth);
  return all;
}

// Given the options of the choices, the levels of each other knob's ladder, and the probability of the options.
template <class Context>
std::pair<std::vector<Levels>, double> distributions(KnobsPlayer& player, const Context& context,
                                                     const Vector<double>& lows, const Vector<double>& highs,
                                                     const Vector<double>& positions) {
  const Ranges ranges = to_ranges(player, lows, highs);
  const BasePlayer::Busy busy(player);
  check_sizes(player.size(), positions);
  player.check_positions(positions.data());
  std::vector<Levels> all(player.size());
  double chance = 1.0;
  player.visit_distributions(
      view(player, context), ranges.all, positions.data(), [&](double probability) { chance *= probability; },
      [&](std::size_t k, const Ladder& ladder) { all[k] = to_levels(ladder); });
  return {all, chance};
}

// Returns whether the context has late fields.
template <class Context>
bool learn(KnobsPlayer& player, const Context& context, const Vector<double>& positions, double density, double loss) {
  check_sizes(player.size(), positions);
  player.check(positions.data(), density, loss);
  const BasePlayer::Busy busy(player);
  player.learn(view(player, context, true), positions.data(), density, loss);
  return !player.encoder.late_fields().empty();
}

template <class Context>
void bind_single(nb::class_<KnobsPlayer, BasePlayer>& type) {
  const auto context = "context"_a.noconvert();
  type.def("decide", &decide<Context>, context, "lows"_a, "highs"_a, "number"_a, "limits"_a = nb::none())
      .def("densities", &densities<Context>, context, "lows"_a, "highs"_a, "positions"_a, "limits"_a = nb::none())
      .def("windows", &windows<Context>, context, "lows"_a, "highs"_a)
      .def("distributions", &distributions<Context>, context, "lows"_a, "highs"_a, "positions"_a)
      .def("learn", &learn<Context>, context, "positions"_a, "density"_a, "loss"_a);
}

// For contexts that the core cannot read, such as lists; the caller converts them on NotImplemented.
void bind_other_contexts(nb::class_<KnobsPlayer, BasePlayer>& type) {
  using Ends = const Vector<double>&;
  const auto context = "context"_a.none();
  type.def(
      "decide",
      [](KnobsPlayer&, nb::handle, Ends, Ends, std::uint64_t, const std::optional<LimitsFunction>&) {
        return nb::borrow(Py_NotImplemented);
      },
      context, "lows"_a, "highs"_a, "number"_a, "limits"_a = nb::none());
  type.def(
      "learn", [](KnobsPlayer&, nb::handle, Ends, double, double) { return nb::borrow(Py_NotImplemented); }, context,
      "positions"_a, "density"_a, "loss"_a);
}

const Vector<double> none;

void check_shape(const KnobsPlayer& player, std::size_t count, std::size_t rows, std::size_t columns) {
  if (rows != count || columns != player.size()) throw Rejected();
}

// `lows` and `highs` have one row per context.
template <class Contexts>
void decide_many(KnobsPlayer& player, const Contexts& contexts, const Matrix<double>& lows, const Matrix<double>& highs,
                 const Vector<std::uint64_t>& numbers, Table positions, Table densities, Output floors) {
  const BasePlayer::Busy busy(player);
  const ContextBatch batch(player, contexts, numbers.size(), none, none);
  const std::size_t size = player.size(), count = batch.rows().count;
  check_sizes(count, numbers, floors);
  check_shape(player, count, lows.shape(0), lows.shape(1));
  check_shape(player, count, highs.shape(0), highs.shape(1));
  check_shape(player, count, positions.shape(0), positions.shape(1));
  check_shape(player, count, densities.shape(0), densities.shape(1));
  for (std::size_t i = 0; i < count; ++i) to_ranges(player, lows.data() + i * size, highs.data() + i * size);
  nb::gil_scoped_release unlocked;
  player.visit_contexts(batch.rows(), [&](std::size_t i, const ContextView& context) {
    const Ranges ranges = to_ranges(player, lows.data() + i * size, highs.data() + i * size);
    Draw draws[most_knobs] = {};
    player.decide(context, ranges.all, numbers.data()[i], NoLimits{}, draws);
    floors.data()[i] = 1.0;
    for (std::size_t k = 0; k < size; ++k) {
      positions.data()[i * size + k] = draws[k].position;
      densities.data()[i * size + k] = draws[k].density;
      floors.data()[i] *= draws[k].floor;
    }
  });
}

template <class Contexts>
void densities_many(KnobsPlayer& player, const Contexts& contexts, const Matrix<double>& lows,
                    const Matrix<double>& highs, const Matrix<double>& positions, Table densities) {
  const BasePlayer::Busy busy(player);
  const ContextBatch batch(player, contexts, positions.shape(0), none, none);
  const std::size_t size = player.size(), count = batch.rows().count;
  check_shape(player, count, lows.shape(0), lows.shape(1));
  check_shape(player, count, highs.shape(0), highs.shape(1));
  check_shape(player, count, positions.shape(0), positions.shape(1));
  check_shape(player, count, densities.shape(0), densities.shape(1));
  for (std::size_t i = 0; i < count; ++i) to_ranges(player, lows.data() + i * size, highs.data() + i * size);
  for (std::size_t i = 0; i < count; ++i) player.check_positions(positions.data() + i * size);
  nb::gil_scoped_release unlocked;
  player.visit_contexts(batch.rows(), [&](std::size_t i, const ContextView& context) {
    const Ranges ranges = to_ranges(player, lows.data() + i * size, highs.data() + i * size);
    Draw draws[most_knobs] = {};
    player.densities(context, ranges.all, positions.data() + i * size, NoLimits{}, draws);
    for (std::size_t k = 0; k < size; ++k) densities.data()[i * size + k] = draws[k].density;
  });
}

template <class Contexts>
void learn_many(KnobsPlayer& player, const Contexts& contexts, const Matrix<double>& positions,
                const Vector<double>& densities, const Vector<double>& losses) {
  const BasePlayer::Busy busy(player);
  ContextBatch batch(player, contexts, densities.size(), none, none, true);
  const std::size_t size = player.size(), count = batch.rows().count;
  check_sizes(count, densities, losses);
  check_shape(player, count, positions.shape(0), positions.shape(1));
  for (std::size_t i = 0; i < count; ++i)
    player.check(positions.data() + i * size, densities.data()[i], losses.data()[i]);
  batch.keep_names();
  nb::gil_scoped_release unlocked;
  player.visit_contexts(batch.rows(), [&](std::size_t i, const ContextView& context) {
    player.learn(context, positions.data() + i * size, densities.data()[i], losses.data()[i]);
  });
}

// The predicted losses of as many actions per context as fit into `positions`, row by row.
template <class Contexts>
void predict_many(KnobsPlayer& player, const Contexts& contexts, std::size_t per_context,
                  const Matrix<double>& positions, Output losses) {
  const BasePlayer::Busy busy(player);
  if (per_context == 0 || positions.shape(0) % per_context != 0) throw Rejected();
  const std::size_t size = player.size();
  const ContextBatch batch(player, contexts, positions.shape(0) / per_context, none, none);
  check_shape(player, batch.rows().count * per_context, positions.shape(0), positions.shape(1));
  check_sizes(positions.shape(0), losses);
  for (std::size_t i = 0; i < positions.shape(0); ++i) player.check_positions(positions.data() + i * size);
  nb::gil_scoped_release unlocked;
  player.visit_contexts(batch.rows(), [&](std::size_t i, const ContextView& context) {
    player.knobs_model().predict(context, positions.data() + i * per_context * size, per_context,
                                 losses.data() + i * per_context);
  });
}

template <class Contexts>
void bind_many(nb::class_<KnobsPlayer, BasePlayer>& type) {
  type.def("decide_many", &decide_many<Contexts>, "contexts"_a, "lows"_a, "highs"_a, "numbers"_a, "positions"_a,
           "densities"_a, "floors"_a)
      .def("densities_many", &densities_many<Contexts>, "contexts"_a, "lows"_a, "highs"_a, "positions"_a, "densities"_a)
      .def("learn_many", &learn_many<Contexts>, "contexts"_a, "positions"_a, "densities"_a, "losses"_a)
      .def("predict_many", &predict_many<Contexts>, "contexts"_a, "per_context"_a, "positions"_a, "losses"_a);
}

// Knobs are pairs of a kind and the number of steps or categories.
void construct(KnobsPlayer* self, const std::vector<std::pair<KnobKind, std::uint32_t>>& knobs,
               const manul::Limits& losses, std::uint32_t width, const Epsilon& epsilon, std::uint64_t seed,
               double nearby, std::uint32_t features) {
  std::vector<Knob> all;
  std::size_t columns = 0;
  for (const auto& [kind, count] : knobs) {
    all.push_back({kind, count});
    if (kind != KnobKind::number && count == 0) throw Rejected();
    if (kind == KnobKind::choice && count > most_categories) throw Rejected();
    columns += all.back().columns();
  }
  if (all.empty() || all.size() > most_knobs || columns > most_columns) throw Rejected();
  PlayerSettings settings{{0.0, 1.0}, to_range(losses), width, {to_schedule(epsilon), seed}};
  if (features > 0) settings.naming = Naming::numbered;
  settings.features = features;
  KnobsModel* model =
      kernels().new_auto_knobs({all.data(), all.size(), width, seed, is_unknown(settings.losses), features});
  new (self) KnobsPlayer(model, settings, std::move(all), nearby);
}

}  // namespace

void bind_knobs(nb::module_& module) {
  nb::enum_<KnobKind>(module, "KnobKind")
      .value("number", KnobKind::number)
      .value("steps", KnobKind::steps)
      .value("choice", KnobKind::choice);
  auto type = nb::class_<KnobsPlayer, BasePlayer>(module, "KnobsPlayer");
  type.def("__init__", &construct, nb::kw_only(), "knobs"_a, "losses"_a, "width"_a, "epsilon"_a, "seed"_a, "nearby"_a,
           "features"_a = 0);
  bind_single<Vector<double>>(type);
  bind_single<Vector<float>>(type);
  bind_single<Fields>(type);
  bind_other_contexts(type);
  bind_many<Matrix<float>>(type);
  bind_many<Mappings>(type);
  bind_many<manul::Columns>(type);
  bind_many<SparseRows>(type);
  type.def("report", [](KnobsPlayer& player) { return to_dict(player.knobs_model().report()); });
}

}  // namespace manul
