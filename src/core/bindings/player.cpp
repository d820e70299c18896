// The methods of all players, for one context and for many.
#include "bindings/context_batch.hpp"

namespace manul {

Rows rows(const BasePlayer& player, const Matrix<float>& contexts, const Vector<double>& lows,
          const Vector<double>& highs) {
  if (contexts.shape(1) != player.settings().width) throw Rejected();
  const bool narrowed = lows.size() > 0;
  if (narrowed) check_sizes(contexts.shape(0), lows, highs);
  return {contexts.data(), contexts.shape(0), narrowed ? lows.data() : nullptr, narrowed ? highs.data() : nullptr};
}

namespace {

using Pair = std::pair<double, double>;

template <class Context>
Pair window(Player& player, const Context& context, double low, double high) {
  const Window window = player.window(view(player, context), {low, high});
  return {window.centre, window.bandwidth};
}

// The window, and the share of decisions that explore.
template <class Context>
std::tuple<double, double, double> played(Player& player, const Context& context, double low, double high) {
  const Window window = player.window(view(player, context), {low, high});
  return {window.centre, window.bandwidth, window.exploring(player.epsilon())};
}

// The action, its density and the floor.
using Draw = std::tuple<double, double, double>;

template <class Context>
Draw decide(Player& player, const Context& context, double low, double high) {
  const Decision decision = player.decide(view(player, context), {low, high});
  return {decision.action, decision.density, decision.floor};
}

template <class Context>
Draw decide_again(Player& player, const Context& context, double low, double high, std::uint64_t number,
                  const WindowsOutput& windows) {
  double* drawn = to_windows(windows, 1);
  const Decision decision = player.decide_again(view(player, context), {low, high}, number);
  if (drawn != nullptr) decision.window.write(drawn);
  return {decision.action, decision.density, decision.floor};
}

// The outcome is checked first, so that a rejected context leaves no names behind. Returns whether the context has
// late fields.
template <class Context>
bool learn(Player& player, const Context& context, double action, double density, double loss, double low, double high,
           const Parts& parts, bool judged) {
  const Outcome outcome = player.outcome(action, density, loss, {low, high}, to_parts(player, parts), judged);
  player.learn(view(player, context, true), outcome);
  return !player.encoder.late_fields().empty();
}

// `noconvert`, because another overload accepts the types that this one would have to convert.
template <class Context>
void bind_single(nb::class_<Player, BasePlayer>& type) {
  const auto context = "context"_a.noconvert();
  type.def("window", &window<Context>, context, "low"_a, "high"_a);
  type.def("played", &played<Context>, context, "low"_a, "high"_a);
  type.def("decide", &decide<Context>, context, "low"_a, "high"_a);
  type.def("decide_again", &decide_again<Context>, context, "low"_a, "high"_a, "number"_a,
           "windows"_a.none() = nb::none());
  type.def("learn", &learn<Context>, context, "action"_a, "density"_a, "loss"_a, "low"_a, "high"_a,
           "parts"_a.none() = nb::none(), "judged"_a = false);
}

// For contexts that the core cannot read, such as lists; the caller converts them on NotImplemented.
void bind_other_contexts(nb::class_<Player, BasePlayer>& type) {
  const auto context = "context"_a.none();
  const auto unread = [] { return nb::borrow(Py_NotImplemented); };
  type.def("decide", [unread](Player&, nb::handle, double, double) { return unread(); }, context, "low"_a, "high"_a);
  type.def(
      "decide_again", [unread](Player&, nb::handle, double, double, std::uint64_t, nb::handle) { return unread(); },
      context, "low"_a, "high"_a, "number"_a, "windows"_a.none() = nb::none());
  type.def(
      "learn",
      [unread](Player&, nb::handle, double, double, double, double, double, nb::handle, bool) { return unread(); },
      context, "action"_a, "density"_a, "loss"_a, "low"_a, "high"_a, "parts"_a.none() = nb::none(), "judged"_a = false);
}

// The loops run without the interpreter's lock; `batch` ends with the lock held.
template <class Contexts>
void decide_many(Player& player, const Contexts& contexts, const Vector<double>& lows, const Vector<double>& highs,
                 Output actions, Output densities, Output floors, const WindowsOutput& windows) {
  const ContextBatch batch(player, contexts, actions.size(), lows, highs);
  check_sizes(batch.rows().count, actions, densities, floors);
  double* drawn = to_windows(windows, batch.rows().count);
  nb::gil_scoped_release unlocked;
  player.decide_many(batch.rows(), nullptr, {actions.data(), densities.data(), floors.data(), drawn});
}

template <class Contexts>
void decide_many_again(Player& player, const Contexts& contexts, const Vector<double>& lows,
                       const Vector<double>& highs, const Vector<std::uint64_t>& numbers, Output actions,
                       Output densities, Output floors, const WindowsOutput& windows) {
  const ContextBatch batch(player, contexts, actions.size(), lows, highs);
  check_sizes(batch.rows().count, numbers, actions, densities, floors);
  double* drawn = to_windows(windows, batch.rows().count);
  nb::gil_scoped_release unlocked;
  player.decide_many(batch.rows(), numbers.data(), {actions.data(), densities.data(), floors.data(), drawn});
}

template <class Contexts>
void learn_many(Player& player, const Contexts& contexts, const Vector<double>& actions,
                const Vector<double>& densities, const Vector<double>& losses, const Vector<double>& lows,
                const Vector<double>& highs, const ManyParts& parts, const ManyJudged& judged) {
  ContextBatch batch(player, contexts, actions.size(), lows, highs, true);
  check_sizes(batch.rows().count, actions, densities, losses);
  if (judged) check_sizes(batch.rows().count, *judged);
  const Outcomes outcomes = {actions.data(), densities.data(), losses.data(),
                             to_parts(player, parts, batch.rows().count), judged ? judged->data() : nullptr};
  player.check(batch.rows(), outcomes);
  batch.keep_names();
  nb::gil_scoped_release unlocked;
  player.learn_many(batch.rows(), outcomes);
}

template <class Contexts>
void densities_many(Player& player, const Contexts& contexts, const Vector<double>& lows, const Vector<double>& highs,
                    const Vector<double>& actions, Output densities) {
  const ContextBatch batch(player, contexts, actions.size(), lows, highs);
  check_sizes(batch.rows().count, actions, densities);
  nb::gil_scoped_release unlocked;
  player.densities_many(batch.rows(), actions.data(), densities.data());
}

template <class Contexts>
void largest_densities_many(Player& player, const Contexts& contexts, const Vector<double>& lows,
                            const Vector<double>& highs, Output densities) {
  const ContextBatch batch(player, contexts, densities.size(), lows, highs);
  check_sizes(batch.rows().count, densities);
  nb::gil_scoped_release unlocked;
  player.largest_densities_many(batch.rows(), densities.data());
}

template <class Contexts>
void moments_many(Player& player, const Contexts& contexts, const Vector<double>& lows, const Vector<double>& highs,
                  Output means, Output squares) {
  const ContextBatch batch(player, contexts, means.size(), lows, highs);
  check_sizes(batch.rows().count, means, squares);
  nb::gil_scoped_release unlocked;
  player.moments_many(batch.rows(), means.data(), squares.data());
}

template <class Contexts>
void bind_many(nb::class_<Player, BasePlayer>& type) {
  const auto windows = "windows"_a.none() = nb::none();
  type.def("decide_many", &decide_many<Contexts>, "contexts"_a, "lows"_a, "highs"_a, "actions"_a, "densities"_a,
           "floors"_a, windows)
      .def("decide_many_again", &decide_many_again<Contexts>, "contexts"_a, "lows"_a, "highs"_a, "numbers"_a,
           "actions"_a, "densities"_a, "floors"_a, windows)
      .def("densities_many", &densities_many<Contexts>, "contexts"_a, "lows"_a, "highs"_a, "actions"_a, "densities"_a)
      .def("largest_densities_many", &largest_densities_many<Contexts>, "contexts"_a, "lows"_a, "highs"_a,
           "densities"_a)
      .def("moments_many", &moments_many<Contexts>, "contexts"_a, "lows"_a, "highs"_a, "means"_a, "squares"_a)
      .def("learn_many", &learn_many<Contexts>, "contexts"_a, "actions"_a, "densities"_a, "losses"_a, "lows"_a,
           "highs"_a, "parts"_a.none() = nb::none(), "judged"_a.none() = nb::none());
}

}  // namespace

double* to_windows(const WindowsOutput& windows, std::size_t count) {
  if (windows) check_sizes(DrawnWindow::size * count, *windows);
  return windows ? windows->data() : nullptr;
}

PartsSettings to_parts(PlayerSettings& settings, const PartsDict& parts) {
  PartsSettings all;
  if (!parts) return all;
  const auto program = to_program(nb::cast<std::vector<FormulaStep>>((*parts)["program"]));
  const auto kinds = nb::cast<std::vector<std::string>>((*parts)["kinds"]);
  const auto hints = nb::cast<std::vector<int>>((*parts)["hints"]);
  const auto fields = nb::cast<std::vector<std::string>>((*parts)["fields"]);
  const auto actions = nb::cast<std::vector<double>>((*parts)["actions"]);
  if (kinds.size() > PartsSettings::most || hints.size() != kinds.size()) throw Rejected();
  if (actions.size() != PartsSettings::points || !program.is_valid(1 + kinds.size(), fields.size())) throw Rejected();
  DeclaredParts& own = settings.outcome;
  for (std::size_t p = 0; p < kinds.size(); ++p) {
    const bool counted = kinds[p] == "count", known = counted || kinds[p] == "amount" || kinds[p] == "yes/no";
    if (!known || hints[p] < -1 || hints[p] > 1) throw Rejected();
    own.kinds.push_back(counted ? PartKind::count : kinds[p] == "amount" ? PartKind::amount : PartKind::yes_no);
    all.parts[p] = {own.kinds.back(), hints[p]};
  }
  for (const std::string& field : fields) own.fields.push_back(Encoder::feature(field));
  const auto formula = std::make_shared<DeclaredFormula>(program, own.kinds);
  own.formula = formula;
  std::copy(actions.begin(), actions.end(), all.actions);
  all.formula = formula.get();
  all.count = formula->is_expected() ? kinds.size() : 0;
  all.higher = nb::cast<bool>((*parts)["higher"]);
  all.cost_aware = nb::cast<bool>((*parts)["cost_aware"]);
  all.losses = settings.losses;
  all.start = parts->contains("start") ? nb::cast<double>((*parts)["start"]) : __builtin_nan("");
  all.inherits = parts->contains("inherits") && nb::cast<bool>((*parts)["inherits"]);
  return all;
}

const double* to_parts(const BasePlayer& player, const Parts& parts) {
  if (player.settings().outcome.kinds.empty()) return nullptr;
  if (parts && parts->size() != player.settings().outcome.kinds.size()) throw Rejected();
  return parts ? parts->data() : nullptr;
}

const double* to_parts(const BasePlayer& player, const ManyParts& parts, std::size_t count) {
  if (player.settings().outcome.kinds.empty()) return nullptr;
  if (parts && (parts->shape(0) != count || parts->shape(1) != player.settings().outcome.kinds.size()))
    throw Rejected();
  return parts ? parts->data() : nullptr;
}

void bind_player(nb::module_& module) {
  nb::enum_<Kind>(module, "Kind")
      .value("number", Kind::number)
      .value("text", Kind::text)
      .value("flag", Kind::flag)
      .value("time", Kind::time);
  nb::enum_<Fault>(module, "Fault")
      .value("none", Fault::none)
      .value("infinite", Fault::infinite)
      .value("changed_kind", Fault::changed_kind)
      .value("too_many", Fault::too_many)
      .value("unknown_type", Fault::unknown_type)
      .value("too_deep", Fault::too_deep)
      .value("bad_key", Fault::bad_key)
      .value("bad_text", Fault::bad_text)
      .value("bad_date", Fault::bad_date)
      .value("bad_clock", Fault::bad_clock);
  auto base = nb::class_<BasePlayer>(module, "BasePlayer");
  bind_names(base);
  bind_state(base);
  auto type = nb::class_<Player, BasePlayer>(module, "Player");
  bind_single<Vector<double>>(type);
  bind_single<Vector<float>>(type);
  bind_single<Fields>(type);
  bind_other_contexts(type);
  bind_many<Matrix<float>>(type);
  bind_many<Mappings>(type);
  bind_many<Columns>(type);
  bind_many<SparseRows>(type);
}

}  // namespace manul
