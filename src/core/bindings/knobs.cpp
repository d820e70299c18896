// Auto for several knobs. The range of a knob is a pair of numbers: its lowest and highest position, or, for a choice,
// the bits of the categories that are allowed and any number.
#include <algorithm>

#include "bindings/context_batch.hpp"
#include "knobs/operation_names.hpp"
#include "play/knobs_player.hpp"

namespace manul {
namespace {

using Numbers = std::vector<double>;
using Draw = KnobsPlayer::Draw;
// A function of the number of a knob, the positions before it and its range, which returns a narrower range; its low
// end is above the high one if nothing is left.
using LimitsFunction = nb::typed<nb::callable, std::pair<double, double>(std::size_t, Numbers, double, double)>;
using Table = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

KnobRange to_knob_range(double low, double high) {
  const bool mask = low >= 1.0 && low < 4294967296.0;
  return {low, high, mask ? static_cast<std::uint32_t>(low) : 0u};
}

struct Ranges {
  KnobRange all[most_knobs];
};

Ranges to_ranges(const KnobsPlayer& player, const double* lows, const double* highs) {
  Ranges ranges;
  for (std::size_t k = 0; k < player.size(); ++k) ranges.all[k] = to_knob_range(lows[k], highs[k]);
  player.check(ranges.all);
  return ranges;
}

Ranges to_ranges(const KnobsPlayer& player, const Vector<double>& lows, const Vector<double>& highs) {
  check_sizes(player.size(), lows, highs);
  return to_ranges(player, lows.data(), highs.data());
}

// Limits that a user wrote as a function.
class FunctionLimits final : public KnobLimits {
 public:
  FunctionLimits(LimitsFunction function, std::vector<bool> choices) : function_(std::move(function)) {
    for (const bool first : {true, false})
      for (std::size_t k = 0; k < choices.size(); ++k)
        if (choices[k] == first) order_.push_back(k);
    choices_ = std::move(choices);
  }

  std::size_t size() const override { return order_.size(); }
  std::size_t fields() const override { return 0; }
  bool is_choice(std::size_t k) const override { return choices_[k]; }
  const std::size_t* order() const override { return order_.data(); }

  bool narrow(std::size_t k, const double* positions, const double*, KnobRange& range) const override {
    const nb::gil_scoped_acquire locked;
    const double first = choices_[k] ? range.allowed : range.low;
    const Numbers before(positions, positions + order_.size());
    const auto [low, high] = nb::cast<std::pair<double, double>>(function_(k, before, first, range.high));
    range = to_knob_range(low, high);
    return choices_[k] ? range.allowed != 0 : low <= high;
  }

 private:
  LimitsFunction function_;
  std::vector<bool> choices_;
  std::vector<std::size_t> order_;
};

const Vector<double> none;

void check_shape(std::size_t count, std::size_t columns, const auto&... tables) {
  if (((tables.shape(0) != count || tables.shape(1) != columns) || ...)) throw Rejected();
}

// The limits of one decision: `fields` has the numbers of the context that they need.
Limited to_limited(const KnobsPlayer& player, const KnobLimits* limits, const std::optional<Vector<double>>& fields) {
  if (limits == nullptr) return {};
  if (limits->size() != player.size() || limits->fields() != (fields ? fields->size() : 0)) throw Rejected();
  return {limits, fields ? fields->data() : nullptr};
}

// The limits of many decisions, one row of fields each.
struct ManyLimited {
  ManyLimited(std::size_t size, std::size_t count, const KnobLimits* limits,
              const std::optional<Matrix<double>>& fields)
      : limits(limits), columns(limits == nullptr ? 0 : limits->fields()), fields(fields ? fields->data() : nullptr) {
    if (limits != nullptr && limits->size() != size) throw Rejected();
    if (columns > 0 && !fields) throw Rejected();
    if (columns > 0) check_shape(count, columns, *fields);
  }

  Limited operator[](std::size_t row) const { return {limits, columns > 0 ? fields + row * columns : nullptr}; }

  const KnobLimits* limits;
  std::size_t columns;
  const double* fields;
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
            std::uint64_t number, const KnobLimits* limits, const std::optional<Vector<double>>& fields,
            const WindowsOutput& windows) {
  const Ranges ranges = to_ranges(player, lows, highs);
  const BasePlayer::Busy busy(player);
  Draw draws[most_knobs] = {};
  double* drawn = to_windows(windows, player.size());
  player.decide(view(player, context), ranges.all, number, to_limited(player, limits, fields), draws, drawn);
  return to_tuple(player, draws);
}

// The positions without exploration.
template <class Context>
Numbers best(KnobsPlayer& player, const Context& context, const Vector<double>& lows, const Vector<double>& highs,
             const KnobLimits* limits, const std::optional<Vector<double>>& fields) {
  const Ranges ranges = to_ranges(player, lows, highs);
  const BasePlayer::Busy busy(player);
  Numbers positions(player.size());
  player.best(view(player, context), ranges.all, to_limited(player, limits, fields), positions.data());
  return positions;
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
bool learn(KnobsPlayer& player, const Context& context, const Vector<double>& positions, double density, double loss,
           const Parts& parts, bool judged) {
  check_sizes(player.size(), positions);
  const double* seen = to_parts(player, parts);
  player.check(positions.data(), density, loss, seen);
  const BasePlayer::Busy busy(player);
  player.learn(view(player, context, true), positions.data(), density, loss, seen, judged);
  return !player.encoder.late_fields().empty();
}

template <class Context>
void bind_single(nb::class_<KnobsPlayer, BasePlayer>& type) {
  const auto context = "context"_a.noconvert();
  const auto limits = "limits"_a.none() = nb::none(), fields = "fields"_a.none() = nb::none();
  type.def("decide", &decide<Context>, context, "lows"_a, "highs"_a, "number"_a, limits, fields,
           "windows"_a.none() = nb::none())
      .def("best", &best<Context>, context, "lows"_a, "highs"_a, limits, fields)
      .def("windows", &windows<Context>, context, "lows"_a, "highs"_a)
      .def("distributions", &distributions<Context>, context, "lows"_a, "highs"_a, "positions"_a)
      .def("learn", &learn<Context>, context, "positions"_a, "density"_a, "loss"_a, "parts"_a.none() = nb::none(),
           "judged"_a = false);
}

// For contexts that the core cannot read, such as lists; the caller converts them on NotImplemented.
void bind_other_contexts(nb::class_<KnobsPlayer, BasePlayer>& type) {
  using Ends = const Vector<double>&;
  const auto context = "context"_a.none();
  type.def(
      "decide",
      [](KnobsPlayer&, nb::handle, Ends, Ends, std::uint64_t, nb::handle, nb::handle, nb::handle) {
        return nb::borrow(Py_NotImplemented);
      },
      context, "lows"_a, "highs"_a, "number"_a, "limits"_a.none() = nb::none(), "fields"_a.none() = nb::none(),
      "windows"_a.none() = nb::none());
  type.def(
      "learn",
      [](KnobsPlayer&, nb::handle, Ends, double, double, nb::handle, bool) { return nb::borrow(Py_NotImplemented); },
      context, "positions"_a, "density"_a, "loss"_a, "parts"_a.none() = nb::none(), "judged"_a = false);
}

// `lows` and `highs` have one row per context.
template <class Contexts>
void decide_many(KnobsPlayer& player, const Contexts& contexts, const Matrix<double>& lows, const Matrix<double>& highs,
                 const Vector<std::uint64_t>& numbers, Table positions, Table densities, Output floors,
                 const KnobLimits* limits, const std::optional<Matrix<double>>& fields, const WindowsOutput& windows) {
  const BasePlayer::Busy busy(player);
  const ContextBatch batch(player, contexts, numbers.size(), none, none);
  const std::size_t size = player.size(), count = batch.rows().count;
  double* drawn = to_windows(windows, count * size);
  check_sizes(count, numbers, floors);
  check_shape(count, size, lows, highs, positions, densities);
  const ManyLimited limited(size, count, limits, fields);
  for (std::size_t i = 0; i < count; ++i) to_ranges(player, lows.data() + i * size, highs.data() + i * size);
  nb::gil_scoped_release unlocked;
  player.visit_contexts(batch.rows(), [&](std::size_t i, const ContextView& context) {
    const Ranges ranges = to_ranges(player, lows.data() + i * size, highs.data() + i * size);
    Draw draws[most_knobs] = {};
    player.decide(context, ranges.all, numbers.data()[i], limited[i], draws,
                  drawn == nullptr ? nullptr : drawn + DrawnWindow::size * size * i);
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
                    const Matrix<double>& highs, const Matrix<double>& positions, Table densities,
                    const KnobLimits* limits, const std::optional<Matrix<double>>& fields) {
  const BasePlayer::Busy busy(player);
  const ContextBatch batch(player, contexts, positions.shape(0), none, none);
  const std::size_t size = player.size(), count = batch.rows().count;
  check_shape(count, size, lows, highs, positions, densities);
  const ManyLimited limited(size, count, limits, fields);
  for (std::size_t i = 0; i < count; ++i) to_ranges(player, lows.data() + i * size, highs.data() + i * size);
  for (std::size_t i = 0; i < count; ++i) player.check_positions(positions.data() + i * size);
  nb::gil_scoped_release unlocked;
  player.visit_contexts(batch.rows(), [&](std::size_t i, const ContextView& context) {
    const Ranges ranges = to_ranges(player, lows.data() + i * size, highs.data() + i * size);
    Draw draws[most_knobs] = {};
    player.densities(context, ranges.all, positions.data() + i * size, limited[i], draws);
    for (std::size_t k = 0; k < size; ++k) densities.data()[i * size + k] = draws[k].density;
  });
}

template <class Contexts>
void learn_many(KnobsPlayer& player, const Contexts& contexts, const Matrix<double>& positions,
                const Vector<double>& densities, const Vector<double>& losses, const ManyParts& parts,
                const ManyJudged& judged) {
  const BasePlayer::Busy busy(player);
  ContextBatch batch(player, contexts, densities.size(), none, none, true);
  const std::size_t size = player.size(), count = batch.rows().count;
  check_sizes(count, densities, losses);
  check_shape(count, size, positions);
  const double* seen = to_parts(player, parts, count);
  if (judged) check_sizes(count, *judged);
  const std::size_t columns = player.settings().outcome.kinds.size();
  const auto row = [&](std::size_t i) { return seen == nullptr ? nullptr : seen + i * columns; };
  for (std::size_t i = 0; i < count; ++i)
    player.check(positions.data() + i * size, densities.data()[i], losses.data()[i], row(i));
  batch.keep_names();
  nb::gil_scoped_release unlocked;
  player.visit_contexts(batch.rows(), [&](std::size_t i, const ContextView& context) {
    player.learn(context, positions.data() + i * size, densities.data()[i], losses.data()[i], row(i),
                 judged && judged->data()[i] != 0.0);
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
  check_shape(batch.rows().count * per_context, size, positions);
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
  const auto limits = "limits"_a.none() = nb::none(), fields = "fields"_a.none() = nb::none();
  type.def("decide_many", &decide_many<Contexts>, "contexts"_a, "lows"_a, "highs"_a, "numbers"_a, "positions"_a,
           "densities"_a, "floors"_a, limits, fields, "windows"_a.none() = nb::none())
      .def("densities_many", &densities_many<Contexts>, "contexts"_a, "lows"_a, "highs"_a, "positions"_a, "densities"_a,
           limits, fields)
      .def("learn_many", &learn_many<Contexts>, "contexts"_a, "positions"_a, "densities"_a, "losses"_a,
           "parts"_a.none() = nb::none(), "judged"_a.none() = nb::none())
      .def("predict_many", &predict_many<Contexts>, "contexts"_a, "per_context"_a, "positions"_a, "losses"_a);
}

}  // namespace

// The operations by their names in formulas.
Program to_program(const std::vector<FormulaStep>& steps) {
  std::vector<Instruction> instructions;
  for (const auto& [name, number] : steps) {
    const auto operation = operation_named(name);
    if (!operation) throw Rejected();
    instructions.push_back({*operation, number});
  }
  return Program(std::move(instructions));
}

namespace {

// The value of a formula whose names are fields.
double evaluate(const std::vector<FormulaStep>& steps, const Vector<double>& fields) {
  const Program program = to_program(steps);
  if (!program.is_valid(0, fields.size())) throw Rejected();
  return program.run([&](const Instruction& step) { return fields.data()[static_cast<std::size_t>(step.number)]; });
}

// The kind and count of a knob, its low and high end, step and rounding, the numbers of its options, and its bent
// scale.
using ScaleTuple =
    std::tuple<KnobKind, std::uint32_t, double, double, double, double, Numbers, std::vector<FormulaStep>>;
// The number of a knob, the side that is bounded, the bits of options, the bound, and when it applies.
using LimitTuple = std::tuple<std::size_t, Side, std::uint32_t, std::vector<FormulaStep>, std::vector<FormulaStep>>;

void construct_limits(DeclaredLimits* self, const std::vector<ScaleTuple>& scales,
                      const std::vector<LimitTuple>& limits, std::vector<std::size_t> order, std::size_t fields) {
  const std::size_t size = scales.size();
  std::vector<Scale> all;
  for (const auto& [kind, count, low, high, step, rounding, options, bent] : scales) {
    all.push_back({{kind, count}, low, high, step, rounding, options, to_program(bent)});
    if (kind == KnobKind::choice ? options.size() != count : kind == KnobKind::steps && count == 0) throw Rejected();
    if (!bent.empty() && !all.back().bent.is_valid(0, 1)) throw Rejected();
  }
  std::vector<bool> seen(size);
  for (const std::size_t k : order) {
    if (k >= size || seen[k]) throw Rejected();
    seen[k] = true;
  }
  if (order.size() != size) throw Rejected();
  std::vector<Limit> bounds;
  for (const auto& [knob, side, allowed, bound, where] : limits) {
    bounds.push_back({knob, side, allowed, to_program(bound), to_program(where)});
    const Limit& limit = bounds.back();
    if (knob >= size || (!limit.where.empty() && !limit.where.is_valid(size, fields))) throw Rejected();
    if (side != Side::only && !limit.bound.is_valid(size, fields)) throw Rejected();
  }
  new (self) DeclaredLimits(std::move(all), std::move(bounds), std::move(order), fields);
}

// What the limits leave of each knob, given the positions of the others; a low end above the high one, or no bits, if
// nothing is left.
void ranges_left(const KnobLimits& limits, Table lows, Table highs, const Matrix<double>& positions,
                 const std::optional<Matrix<double>>& fields) {
  const std::size_t size = limits.size(), count = positions.shape(0);
  check_shape(count, size, lows, highs, positions);
  const ManyLimited limited(size, count, &limits, fields);
  for (std::size_t i = 0; i < count * size; ++i) {
    KnobRange range = to_knob_range(lows.data()[i], highs.data()[i]);
    const bool choice = limits.is_choice(i % size);
    const bool left = limited[i / size].narrow(i % size, positions.data() + i / size * size, range);
    lows.data()[i] = !left ? (choice ? 0.0 : 1.0) : choice ? range.allowed : range.low;
    highs.data()[i] = left ? range.high : 0.0;
  }
}

// Turns shares of what the limits leave of each knob into positions.
void place(const KnobLimits& limits, const Matrix<double>& lows, const Matrix<double>& highs, Table shares,
           const std::optional<Matrix<double>>& fields) {
  const std::size_t size = limits.size(), count = shares.shape(0);
  check_shape(count, size, lows, highs, shares);
  const ManyLimited limited(size, count, &limits, fields);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<KnobRange> ranges;
    for (std::size_t at = i * size; at < (i + 1) * size; ++at) {
      ranges.push_back(to_knob_range(lows.data()[at], highs.data()[at]));
      if (!(shares.data()[at] >= 0.0 && shares.data()[at] < 1.0)) throw Rejected();
    }
    const Numbers positions = place_inside(limited[i], ranges.data(), shares.data() + i * size);
    std::copy(positions.begin(), positions.end(), shares.data() + i * size);
  }
}

// Knobs are pairs of a kind and the number of steps or categories.
void construct(KnobsPlayer* self, const std::vector<std::pair<KnobKind, std::uint32_t>>& knobs,
               const manul::Limits& losses, std::uint32_t width, const Epsilon& epsilon, std::uint64_t seed,
               double nearby, std::uint32_t features, const std::vector<double>& starts, bool by_evidence, bool early,
               const PartsDict& parts) {
  std::vector<Knob> all;
  std::size_t columns = 0;
  for (const auto& [kind, count] : knobs) {
    all.push_back({kind, count});
    if (kind != KnobKind::number && count == 0) throw Rejected();
    if (kind == KnobKind::choice && count > most_categories) throw Rejected();
    columns += all.back().columns();
  }
  if (all.empty() || all.size() > most_knobs || columns > most_columns) throw Rejected();
  if (!starts.empty() && starts.size() != all.size()) throw Rejected();
  PlayerSettings settings{{0.0, 1.0}, to_range(losses), width, {to_schedule(epsilon), seed}};
  if (features > 0) settings.naming = Naming::numbered;
  settings.features = features;
  settings.exploration.by_evidence = by_evidence;
  KnobsModel* model =
      kernels().new_auto_knobs({all.data(), all.size(), width, seed, is_unknown(settings.losses), features, early,
                                starts.empty() ? nullptr : starts.data(), to_parts(settings, parts)});
  new (self) KnobsPlayer(model, settings, std::move(all), nearby);
}

}  // namespace

void bind_limits(nb::module_& module) {
  static nb::object nothing_left = nb::steal(PyErr_NewException("manul._core.NothingLeft", PyExc_ValueError, nullptr));
  module.attr("NothingLeft") = nothing_left;
  nb::register_exception_translator([](const std::exception_ptr& error, void*) {
    try {
      std::rethrow_exception(error);
    } catch (const NothingLeft& nothing) {
      PyErr_SetObject(nothing_left.ptr(), nb::make_tuple(nothing.knob, nothing.positions).ptr());
    }
  });
  nb::enum_<Side>(module, "Side")
      .value("least", Side::least)
      .value("most", Side::most)
      .value("above", Side::above)
      .value("below", Side::below)
      .value("only", Side::only);
  nb::class_<KnobLimits>(module, "KnobLimits")
      .def("ranges_left", &ranges_left, "lows"_a, "highs"_a, "positions"_a, "fields"_a.none() = nb::none())
      .def("place", &place, "lows"_a, "highs"_a, "shares"_a, "fields"_a.none() = nb::none());
  nb::class_<DeclaredLimits, KnobLimits>(module, "DeclaredLimits")
      .def("__init__", &construct_limits, "scales"_a, "limits"_a, "order"_a, "fields"_a);
  nb::class_<FunctionLimits, KnobLimits>(module, "FunctionLimits")
      .def(nb::init<LimitsFunction, std::vector<bool>>(), "function"_a, "choices"_a);
  module.def("evaluate", &evaluate, "program"_a, "fields"_a);
}

void bind_knobs(nb::module_& module) {
  bind_limits(module);
  nb::enum_<KnobKind>(module, "KnobKind")
      .value("number", KnobKind::number)
      .value("steps", KnobKind::steps)
      .value("choice", KnobKind::choice);
  auto type = nb::class_<KnobsPlayer, BasePlayer>(module, "KnobsPlayer");
  type.def("__init__", &construct, nb::kw_only(), "knobs"_a, "losses"_a, "width"_a, "epsilon"_a, "seed"_a, "nearby"_a,
           "features"_a = 0, "starts"_a = std::vector<double>{}, "by_evidence"_a = false, "early"_a = true,
           "parts"_a.none() = nb::none());
  bind_single<Vector<double>>(type);
  bind_single<Vector<float>>(type);
  bind_single<Fields>(type);
  bind_other_contexts(type);
  bind_many<Matrix<float>>(type);
  bind_many<Mappings>(type);
  bind_many<manul::Columns>(type);
  bind_many<SparseRows>(type);
  type.def(
      "inherit",
      [](KnobsPlayer& player, KnobsPlayer& sister) {
        const BasePlayer::Busy busy(player), hers(sister);
        return player.knobs_model().inherit(sister.knobs_model());
      },
      "sister"_a);
  type.def("report", [](KnobsPlayer& player) {
    return to_dict(player.knobs_model().report(), player.knobs_model().formula_report());
  });
}

}  // namespace manul
