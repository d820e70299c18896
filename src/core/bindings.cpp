// The only file that knows Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "dispatch.hpp"
#include "player.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace manul {
namespace {

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

const InstructionSet& machine() {
  static const InstructionSet chosen = instruction_set();
  return chosen;
}

// Keeps the settings beside the player: tracing has to know the type behind the interface.
struct TreePlayer : Player {
  TreePlayer(const TreeSettings& tree, const PlayerSettings& settings)
      : Player(std::unique_ptr<Agent>(machine().kernels.tree_agent(tree)), settings), tree_settings(tree) {}
  TreeSettings tree_settings;
};

struct PathPlayer : Player {
  PathPlayer(RoutingAgent* router, const TreeSettings& tree, const PlayerSettings& settings)
      : Player(std::unique_ptr<Agent>(router), settings), router(router), tree_settings(tree) {}
  RoutingAgent* router;
  TreeSettings tree_settings;
};

std::vector<float> weights(const PathPlayer& player, std::uint32_t row, const std::vector<std::uint32_t>& features) {
  const TreeSettings& tree = player.tree_settings;
  if (row >= std::uint32_t{1} << tree.depth) throw Rejected();
  std::vector<float> all;
  for (const std::uint32_t feature : features) {
    if (tree.bits == 0 && feature > tree.width) throw Rejected();
    all.push_back(player.router->weight(row, feature));
  }
  return all;
}

std::vector<std::tuple<std::uint32_t, double, bool, bool>> route(PathPlayer& player, const float* context, Range within) {
  std::vector<Step> steps(player.tree_settings.depth);
  player.router->route(context, within, steps.data());
  std::vector<std::tuple<std::uint32_t, double, bool, bool>> all;
  for (const Step& step : steps) all.emplace_back(step.node, step.margin, step.right, step.forced);
  return all;
}

struct AdaptivePlayer : Player {
  AdaptivePlayer(const AdaptiveSettings& adaptive, const PlayerSettings& settings)
      : Player(std::unique_ptr<Agent>(machine().kernels.adaptive_agent(adaptive)), settings), count(adaptive.count) {}
  const std::size_t count;
  std::size_t playing() { return machine().kernels.playing(agent(), settings().actions); }
  double risk(std::size_t member) { return machine().kernels.risk(agent(), member); }
};

MANUL_SIMD::Atoms atoms(const DiscreteSettings& settings) { return {settings.actions, std::int64_t{1} << settings.depth}; }

struct DiscretePlayer : Player {
  DiscretePlayer(Agent* agent, const DiscreteSettings& settings, Range losses, double epsilon, std::uint64_t seed)
      : Player(std::unique_ptr<Agent>(agent), {settings.actions, losses, settings.width, {epsilon, seed, atoms(settings)}}) {}
};

struct CriticPlayer : Player {
  CriticPlayer(CriticAgent* critic, const PlayerSettings& settings)
      : Player(std::unique_ptr<Agent>(critic), settings), critic(critic) {}
  CriticAgent* critic;
};

nb::typed<nb::dict, nb::str, nb::any> report(CriticPlayer& player) {
  const CriticReport now = player.critic->report();
  nb::dict all;
  all["errors"] = std::vector<double>(std::begin(now.errors), std::end(now.errors));
  all["weights"] = std::vector<double>(std::begin(now.weights), std::end(now.weights));
  all["bandwidth"] = now.bandwidth;
  all["noise"] = now.noise;
  all["rounds"] = now.rounds;
  all["memory"] = now.memory;
  all["alarms"] = now.alarms;
  all["last_alarm"] = now.last_alarm;
  return all;
}

struct LinearPlayer : Player {
  LinearPlayer(const LinearSettings& linear, const PlayerSettings& settings)
      : Player(std::unique_ptr<Agent>(machine().kernels.linear_agent(linear)), settings) {}
};

struct Trace : TreeTracer {
  std::vector<std::tuple<std::uint32_t, float, float>> updates;
  void updated(const Update& update) override {
    updates.emplace_back(update.node, update.cost_left, update.cost_right);
  }
};

Rows rows(const Player& player, const Matrix& contexts, const Vector<double>& lows, const Vector<double>& highs) {
  if (contexts.shape(1) != player.settings().width) throw Rejected();
  const bool narrowed = lows.size() > 0;
  if (narrowed && (lows.size() != contexts.shape(0) || highs.size() != contexts.shape(0))) throw Rejected();
  return {contexts.data(), contexts.shape(0), narrowed ? lows.data() : nullptr, narrowed ? highs.data() : nullptr};
}

template <class T>
nb::object copy(const Array& array) {
  auto* data = new T[array.size];
  std::copy_n(static_cast<const T*>(array.data), array.size, data);
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {array.size}, owner));
}

std::string name(const Array& array) {
  return array.part == 0 ? array.name : std::to_string(array.part) + "." + array.name;
}

nb::typed<nb::dict, nb::str, nb::any> state(Player& player) {
  nb::dict all;
  player.agent().start();
  for (std::size_t i = 0; i < player.agent().arrays(); ++i) {
    const Array array = player.agent().array(i);
    const std::string type = array.type;
    all[name(array).c_str()] = type == "f4" ? copy<float>(array) : type == "f8" ? copy<double>(array) : copy<std::uint64_t>(array);
  }
  return all;
}

std::size_t item_size(const Array& array) { return array.type[1] == '4' ? 4 : 8; }

std::size_t nbytes(Player& player) {
  std::size_t total = 0;
  for (std::size_t i = 0; i < player.agent().arrays(); ++i) {
    const Array array = player.agent().array(i);
    total += array.size * item_size(array);
  }
  return total;
}

using Bytes = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::dlpack::dtype type_of(const Array& array) {
  const std::string type = array.type;
  return type == "f4" ? nb::dtype<float>() : type == "f8" ? nb::dtype<double>() : nb::dtype<std::uint64_t>();
}

// Leaves pages alone that are equal already: pages of zeros that were never written to take no memory.
void overwrite(void* to, const void* from, std::size_t size) {
  constexpr std::size_t page = 4096;
  for (std::size_t at = 0; at < size; at += page) {
    char* target = static_cast<char*>(to) + at;
    const char* source = static_cast<const char*>(from) + at;
    const std::size_t length = std::min(page, size - at);
    if (std::memcmp(target, source, length) != 0) std::memcpy(target, source, length);
  }
}

// All sizes and types are compared before anything is written. Where the values are refused, the player is of no more use.
void restore(Player& player, const nb::typed<nb::dict, nb::str, nb::any>& saved) {
  Agent& agent = player.agent();
  if (saved.size() != agent.arrays()) throw Rejected();
  std::vector<Bytes> given(agent.arrays());
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Array array = agent.array(i);
    const std::string key = name(array);
    if (!saved.contains(key.c_str()) || !nb::try_cast(saved[key.c_str()], given[i])) throw Rejected();
    if (given[i].size() != array.size || given[i].dtype() != type_of(array)) throw Rejected();
  }
  agent.start();
  for (std::size_t i = 0; i < given.size(); ++i) overwrite(agent.array(i).data, given[i].data(), given[i].nbytes());
  if (!agent.sound()) throw Rejected();
}

void walk(Encoder& encoder, std::string& path, PyObject* value, std::size_t depth);

// A text of Python may hold half a character, which no text outside of Python can.
std::string_view text(Encoder& encoder, const std::string& path, PyObject* value) {
  Py_ssize_t length = 0;
  const char* data = PyUnicode_AsUTF8AndSize(value, &length);
  if (data == nullptr) {
    if (!PyErr_ExceptionMatches(PyExc_UnicodeError)) nb::raise_python_error();
    PyErr_Clear();
    encoder.fail(Fault::bad_text, path);
  }
  return {data, static_cast<std::size_t>(length)};
}

void walk_members(Encoder& encoder, std::string& path, PyObject* members, std::size_t depth) {
  if (depth > Encoder::most_depth) encoder.fail(Fault::too_deep, path);
  const std::size_t length = path.size();
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(members, &at, &key, &value);) {
    // Numbers may be objects that run code, and that code may change the context.
    const nb::object held_key = nb::borrow(key), held_value = nb::borrow(value);
    if (!PyUnicode_Check(key)) encoder.fail(Fault::bad_key, path);
    const std::string_view name = text(encoder, path, key);
    if (length > 0) path += '.';
    path += name;
    walk(encoder, path, value, depth);
    path.resize(length);
  }
}

void walk_items(Encoder& encoder, std::string& path, PyObject* items, std::size_t depth) {
  if (depth > Encoder::most_depth) encoder.fail(Fault::too_deep, path);
  const std::size_t length = path.size();
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items); ++i) {
    const nb::object item = nb::borrow(PySequence_Fast_GET_ITEM(items, i));
    if (PyUnicode_Check(item.ptr())) {
      encoder.text(path, text(encoder, path, item.ptr()));
    } else {
      path += '[' + std::to_string(i) + ']';
      walk(encoder, path, item.ptr(), depth);
      path.resize(length);
    }
  }
}

// Numbers of NumPy and the like.
double as_number(Encoder& encoder, const std::string& path, PyObject* value) {
  const nb::object number = nb::steal(PyNumber_Float(value));
  if (number.is_valid()) return PyFloat_AS_DOUBLE(number.ptr());
  const bool infinite = PyErr_ExceptionMatches(PyExc_OverflowError);
  if (!infinite && !PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_ValueError)) nb::raise_python_error();
  PyErr_Clear();
  encoder.fail(infinite ? Fault::infinite : Fault::unknown_type, path);
}

void walk(Encoder& encoder, std::string& path, PyObject* value, std::size_t depth) {
  if (value == Py_None) return encoder.missing(path);
  if (PyBool_Check(value)) return encoder.flag(path, value == Py_True);
  if (PyFloat_Check(value)) return encoder.number(path, PyFloat_AS_DOUBLE(value));
  if (PyUnicode_Check(value)) return encoder.text(path, text(encoder, path, value));
  if (PyDict_Check(value)) return walk_members(encoder, path, value, depth + 1);
  if (PyList_Check(value) || PyTuple_Check(value)) return walk_items(encoder, path, value, depth + 1);
  encoder.number(path, as_number(encoder, path, value));
}

using Fields = nb::typed<nb::dict, nb::str, nb::any>;

const float* encode(Player& player, const Fields& context, bool learning) {
  if (player.naming() == Naming::rows) throw Rejected();
  player.encoder.start(learning);
  std::string path;
  try {
    walk_members(player.encoder, path, context.ptr(), 0);
  } catch (const BadField&) {
    player.encoder.undo();
    throw Rejected();
  } catch (...) {
    player.encoder.undo();
    throw;
  }
  player.encoder.finish();
  return player.encoded(learning);
}

void bind_named(nb::class_<Player>& type) {
  type.def("window", [](Player& p, const Fields& context, double low, double high) {
    const Window window = p.window(encode(p, context, false), {low, high});
    return std::pair(window.centre, window.bandwidth);
  }, "context"_a, "low"_a, "high"_a);
  type.def("decide", [](Player& p, const Fields& context, double low, double high) {
    const Decision made = p.decide(encode(p, context, false), {low, high});
    return std::pair(made.action, made.density);
  }, "context"_a, "low"_a, "high"_a);
  type.def("decide_again", [](Player& p, const Fields& context, double low, double high, std::uint64_t number) {
    const Decision made = p.decide_again(encode(p, context, false), {low, high}, number);
    return std::pair(made.action, made.density);
  }, "context"_a, "low"_a, "high"_a, "number"_a);
  type.def("learn", [](Player& p, const Fields& context, double action, double density, double loss, double low, double high) {
    p.check(action, density, loss, {low, high});
    p.learn(encode(p, context, true), action, density, loss, {low, high});
  }, "context"_a, "action"_a, "density"_a, "loss"_a, "low"_a, "high"_a);
  type.def("sketch_names", &Player::sketch_names);
  type.def_prop_ro("fault", [](Player& p) { return std::pair(p.encoder.fault, p.encoder.fault_field); });
  type.def_prop_rw("fields", [](Player& p) {
    std::map<std::string, Kind> all;
    for (const auto& [name, field] : p.encoder.fields()) all[name] = field.kind;
    return all;
  }, [](Player& p, const std::map<std::string, Kind>& all) {
    for (const auto& [name, kind] : all) p.encoder.remember(name, kind);
  });
  type.def_prop_rw("names", [](Player& p) {
    return std::map<std::uint32_t, std::string>(p.encoder.names().begin(), p.encoder.names().end());
  }, [](Player& p, const std::map<std::uint32_t, std::string>& all) {
    for (const auto& [feature, name] : all) p.encoder.remember(feature, name);
  });
  type.def_prop_rw("columns", [](Player& p) {
    return std::map<std::uint32_t, std::uint32_t>(p.columns().begin(), p.columns().end());
  }, [](Player& p, const std::map<std::uint32_t, std::uint32_t>& all) { p.set_columns({all.begin(), all.end()}); });
}

template <class T>
void bind_single(nb::class_<Player>& type) {
  type.def("window", [](Player& p, Vector<T> context, double low, double high) {
    const Window window = p.window(p.row(context.data(), context.size()), {low, high});
    return std::pair(window.centre, window.bandwidth);
  }, "context"_a.noconvert(), "low"_a, "high"_a);
  type.def("decide", [](Player& p, Vector<T> context, double low, double high) {
    const Decision made = p.decide(p.row(context.data(), context.size()), {low, high});
    return std::pair(made.action, made.density);
  }, "context"_a.noconvert(), "low"_a, "high"_a);
  type.def("decide_again", [](Player& p, Vector<T> context, double low, double high, std::uint64_t number) {
    const Decision made = p.decide_again(p.row(context.data(), context.size()), {low, high}, number);
    return std::pair(made.action, made.density);
  }, "context"_a.noconvert(), "low"_a, "high"_a, "number"_a);
  type.def("learn", [](Player& p, Vector<T> context, double action, double density, double loss, double low, double high) {
    p.learn(p.row(context.data(), context.size()), action, density, loss, {low, high});
  }, "context"_a.noconvert(), "action"_a, "density"_a, "loss"_a, "low"_a, "high"_a);
}

// Contexts that the core does not read itself, such as lists: NotImplemented asks the caller to convert them.
void bind_others(nb::class_<Player>& type) {
  type.def("decide", [](Player&, nb::handle, double, double) { return nb::borrow(Py_NotImplemented); },
           "context"_a.none(), "low"_a, "high"_a);
  type.def("decide_again", [](Player&, nb::handle, double, double, std::uint64_t) { return nb::borrow(Py_NotImplemented); },
           "context"_a.none(), "low"_a, "high"_a, "number"_a);
  type.def("learn", [](Player&, nb::handle, double, double, double, double, double) { return nb::borrow(Py_NotImplemented); },
           "context"_a.none(), "action"_a, "density"_a, "loss"_a, "low"_a, "high"_a);
}

void decide_many(Player& player, const Matrix& contexts, const Vector<double>& lows, const Vector<double>& highs,
                 Output actions, Output densities) {
  const Rows all = rows(player, contexts, lows, highs);
  if (actions.size() != all.count || densities.size() != all.count) throw Rejected();
  nb::gil_scoped_release unlocked;
  player.decide_many(all, actions.data(), densities.data());
}

void decide_many_again(Player& player, const Matrix& contexts, const Vector<double>& lows, const Vector<double>& highs,
                       const Vector<std::uint64_t>& numbers, Output actions, Output densities) {
  const Rows all = rows(player, contexts, lows, highs);
  if (numbers.size() != all.count || actions.size() != all.count || densities.size() != all.count) throw Rejected();
  nb::gil_scoped_release unlocked;
  player.decide_many_again(all, numbers.data(), actions.data(), densities.data());
}

void learn_many(Player& player, const Matrix& contexts, const Vector<double>& actions, const Vector<double>& densities,
                const Vector<double>& losses, const Vector<double>& lows, const Vector<double>& highs) {
  const Rows all = rows(player, contexts, lows, highs);
  if (actions.size() != all.count || densities.size() != all.count || losses.size() != all.count) throw Rejected();
  nb::gil_scoped_release unlocked;
  player.learn_many(all, actions.data(), densities.data(), losses.data());
}

void replay(const std::vector<Player*>& players, const Matrix& contexts, const Vector<double>& actions,
            const Vector<double>& densities, const Vector<double>& losses, const Vector<double>& lows,
            const Vector<double>& highs, Output sums, std::size_t threads) {
  if (players.empty() || sums.size() != players.size()) throw Rejected();
  const Rows all = rows(*players[0], contexts, lows, highs);
  for (const Player* player : players)
    if (player->settings().width != contexts.shape(1)) throw Rejected();
  if (actions.size() != all.count || densities.size() != all.count || losses.size() != all.count) throw Rejected();
  nb::gil_scoped_release unlocked;
  replay_all(players, all, actions.data(), densities.data(), losses.data(), sums.data(), threads);
}

void densities_many(Player& player, const Matrix& contexts, const Vector<double>& lows, const Vector<double>& highs,
                    const Vector<double>& actions, Output densities) {
  const Rows all = rows(player, contexts, lows, highs);
  if (actions.size() != all.count || densities.size() != all.count) throw Rejected();
  nb::gil_scoped_release unlocked;
  player.densities_many(all, actions.data(), densities.data());
}

void moments_many(Player& player, const Matrix& contexts, const Vector<double>& lows, const Vector<double>& highs,
                  Output means, Output squares) {
  const Rows all = rows(player, contexts, lows, highs);
  if (means.size() != all.count || squares.size() != all.count) throw Rejected();
  nb::gil_scoped_release unlocked;
  player.moments_many(all, means.data(), squares.data());
}

using Knots = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A table and the arrays that it points into.
struct TableView : Table {
  TableView(Matrix contexts, Loss loss, Range actions, Knots positions, Knots values, Vector<double> lows,
            Vector<double> highs)
      : Table{contexts.data(), contexts.shape(1), loss, actions, positions.shape(1), positions.data(), values.data(),
              lows.size() > 0 ? lows.data() : nullptr, lows.size() > 0 ? highs.data() : nullptr},
        rounds(contexts.shape(0)), held_(contexts, positions, values, lows, highs) {
    const bool curves = loss == Loss::knots;
    if (positions.shape(0) != rounds || positions.shape(1) < 1 || (!curves && positions.shape(1) != 1)) throw Rejected();
    if (curves && (values.shape(0) != rounds || values.shape(1) != knots)) throw Rejected();
    if (lows.size() != highs.size() || (lows.size() > 0 && lows.size() != rounds)) throw Rejected();
  }
  std::size_t rounds;

 private:
  std::tuple<Matrix, Knots, Knots, Vector<double>, Vector<double>> held_;
};

void simulate_tables(const std::vector<Player*>& players, const std::vector<const TableView*>& tables,
                     std::size_t first, std::size_t last, const std::vector<Output>& actions,
                     const std::vector<Output>& densities, const std::vector<Output>& losses, std::size_t threads) {
  const std::size_t count = players.size();
  if (tables.size() != count || actions.size() != count || densities.size() != count || losses.size() != count) throw Rejected();
  if (first > last) throw Rejected();
  std::vector<Record> records;
  for (std::size_t i = 0; i < players.size(); ++i) {
    if (last > tables[i]->rounds || players[i]->settings().width != tables[i]->width) throw Rejected();
    for (const Output& array : {actions[i], densities[i], losses[i]})
      if (array.size() < last) throw Rejected();
    records.push_back({actions[i].data(), densities[i].data(), losses[i].data()});
  }
  nb::gil_scoped_release unlocked;
  simulate_all(players, {tables.begin(), tables.end()}, first, last, records, threads);
}

}  // namespace
}  // namespace manul

NB_MODULE(_core, module) {
  nb::set_leak_warnings(false);  // an agent that lives until the interpreter ends is no leak
  using namespace manul;
  module.doc() = "The native core of manul.";
  nb::exception<Rejected>(module, "Rejected", PyExc_ValueError);

  nb::enum_<Learner>(module, "Learner")
      .value("coin_costs", Learner::coin_costs)
      .value("coin_margin", Learner::coin_margin)
      .value("adagrad_squared", Learner::adagrad_squared)
      .value("adagrad_logistic", Learner::adagrad_logistic);
  nb::enum_<Loss>(module, "Loss").value("absolute", Loss::absolute).value("squared", Loss::squared).value("knots", Loss::knots);

  nb::enum_<Kind>(module, "Kind")
      .value("number", Kind::number)
      .value("text", Kind::text)
      .value("flag", Kind::flag);
  nb::enum_<Fault>(module, "Fault")
      .value("none", Fault::none)
      .value("infinite", Fault::infinite)
      .value("changed_kind", Fault::changed_kind)
      .value("too_many", Fault::too_many)
      .value("unknown_type", Fault::unknown_type)
      .value("too_deep", Fault::too_deep)
      .value("bad_key", Fault::bad_key)
      .value("bad_text", Fault::bad_text);
  auto player = nb::class_<Player>(module, "Player");
  bind_single<double>(player);
  bind_single<float>(player);
  bind_named(player);
  bind_others(player);
  player.def_rw("decisions", &Player::decisions)
      .def("forget", [](Player& self, double half_life) { self.agent().forget(half_life); }, "half_life"_a)
      .def_prop_ro("nbytes", &nbytes)
      .def("state", &state)
      .def("restore", &restore, "saved"_a)
      .def("decide_many", &decide_many, "contexts"_a, "lows"_a, "highs"_a, "actions"_a, "densities"_a)
      .def("decide_many_again", &decide_many_again, "contexts"_a, "lows"_a, "highs"_a, "numbers"_a, "actions"_a,
           "densities"_a)
      .def("densities_many", &densities_many, "contexts"_a, "lows"_a, "highs"_a, "actions"_a, "densities"_a)
      .def("moments_many", &moments_many, "contexts"_a, "lows"_a, "highs"_a, "means"_a, "squares"_a)
      .def("learn_many", &learn_many, "contexts"_a, "actions"_a, "densities"_a, "losses"_a, "lows"_a, "highs"_a);

  nb::class_<TreePlayer, Player>(module, "TreePlayer")
      .def("__init__", [](TreePlayer* self, std::pair<double, double> actions, std::pair<double, double> losses,
                          std::uint32_t width, std::uint32_t depth, double offset, double bandwidth, Learner learner,
                          double epsilon, std::uint64_t seed) {
        const Range range{actions.first, actions.second};
        new (self) TreePlayer({range, depth, width, offset, bandwidth, learner},
                              {range, {losses.first, losses.second}, width, {epsilon, seed}});
      }, nb::kw_only(), "actions"_a, "losses"_a, "width"_a, "depth"_a, "offset"_a, "bandwidth"_a, "learner"_a,
         "epsilon"_a, "seed"_a)
      .def("trace", [](TreePlayer& self, Vector<float> context, double action, double density, double loss, double low,
                       double high) {
        Trace trace;
        machine().kernels.trace(self.agent(), self.tree_settings, self.row(context.data(), context.size()),
                                {action, density, loss, {low, high}}, trace);
        return trace.updates;
      }, "context"_a, "action"_a, "density"_a, "loss"_a, "low"_a, "high"_a);

  nb::class_<CriticPlayer, Player>(module, "CriticPlayer")
      .def("__init__", [](CriticPlayer* self, std::pair<double, double> actions, std::pair<double, double> losses,
                          std::uint32_t width, double epsilon, std::uint64_t seed) {
        const Range range{actions.first, actions.second};
        new (self) CriticPlayer(machine().kernels.critic_agent({range, width, seed}),
                                {range, {losses.first, losses.second}, width, {epsilon, seed}});
      }, nb::kw_only(), "actions"_a, "losses"_a, "width"_a, "epsilon"_a, "seed"_a)
      .def("report", &report)
      .def("curve", [](CriticPlayer& self, Vector<float> context, std::size_t points) {
        std::vector<float> losses(points);
        self.critic->curve(self.row(context.data(), context.size()), points, losses.data());
        return losses;
      }, "context"_a, "points"_a)
      .def("curve", [](CriticPlayer& self, const Fields& context, std::size_t points) {
        std::vector<float> losses(points);
        self.critic->curve(encode(self, context, false), points, losses.data());
        return losses;
      }, "context"_a, "points"_a);

  nb::class_<LinearPlayer, Player>(module, "LinearPlayer")
      .def("__init__", [](LinearPlayer* self, std::pair<double, double> actions, std::pair<double, double> losses,
                          std::uint32_t width, double bandwidth, double rate, double epsilon, std::uint64_t seed) {
        const Range range{actions.first, actions.second};
        new (self) LinearPlayer({range, width, bandwidth, rate},
                                {range, {losses.first, losses.second}, width, {epsilon, seed}});
      }, nb::kw_only(), "actions"_a, "losses"_a, "width"_a, "bandwidth"_a, "rate"_a, "epsilon"_a, "seed"_a);

  nb::class_<DiscretePlayer, Player>(module, "DiscretePlayer")
      .def_static("tree", [](std::pair<double, double> actions, std::pair<double, double> losses, std::uint32_t width,
                             std::uint32_t depth, Learner learner, double epsilon, std::uint64_t seed) {
        const DiscreteSettings settings{{actions.first, actions.second}, depth, width};
        return std::make_unique<DiscretePlayer>(machine().kernels.discrete_tree(settings, learner), settings,
                                                Range{losses.first, losses.second}, epsilon, seed);
      }, nb::kw_only(), "actions"_a, "losses"_a, "width"_a, "depth"_a, "learner"_a, "epsilon"_a, "seed"_a)
      .def_static("linear", [](std::pair<double, double> actions, std::pair<double, double> losses, std::uint32_t width,
                               std::uint32_t depth, double epsilon, std::uint64_t seed) {
        const DiscreteSettings settings{{actions.first, actions.second}, depth, width};
        return std::make_unique<DiscretePlayer>(machine().kernels.discrete_linear(settings), settings,
                                                Range{losses.first, losses.second}, epsilon, seed);
      }, nb::kw_only(), "actions"_a, "losses"_a, "width"_a, "depth"_a, "epsilon"_a, "seed"_a);

  module.def("atoms_inside", [](std::pair<double, double> actions, std::int64_t leaves, double low, double high) {
    const auto [first, last] = MANUL_SIMD::Atoms{{actions.first, actions.second}, leaves}.inside({low, high});
    return std::pair(first, last);
  }, "actions"_a, "leaves"_a, "low"_a, "high"_a);
  nb::class_<PathPlayer, Player>(module, "PathPlayer")
      .def("__init__", [](PathPlayer* self, std::pair<double, double> actions, std::pair<double, double> losses,
                          std::uint32_t width, std::uint32_t depth, double bandwidth, double epsilon,
                          std::uint64_t seed, std::uint32_t bits) {
        const Range range{actions.first, actions.second};
        const TreeSettings tree{range, depth, width, 0.5, bandwidth, Learner{}, bits};
        new (self) PathPlayer(machine().kernels.path_agent(tree), tree,
                              {range, {losses.first, losses.second}, width, {epsilon, seed},
                               bits > 0 ? Naming::hashed : Naming::rows});
      }, nb::kw_only(), "actions"_a, "losses"_a, "width"_a, "depth"_a, "bandwidth"_a, "epsilon"_a, "seed"_a,
         "bits"_a = 0)
      .def("weights", &weights, "row"_a, "features"_a)
      .def("route", [](PathPlayer& self, Vector<float> context, double low, double high) {
        return route(self, self.row(context.data(), context.size()), {low, high});
      }, "context"_a, "low"_a, "high"_a)
      .def("route", [](PathPlayer& self, const Fields& context, double low, double high) {
        return route(self, encode(self, context, false), {low, high});
      }, "context"_a, "low"_a, "high"_a);

  nb::enum_<Penalty>(module, "Penalty")
      .value("measured", Penalty::measured)
      .value("practical", Penalty::practical)
      .value("paper", Penalty::paper);
  nb::class_<AdaptivePlayer, Player>(module, "AdaptivePlayer")
      .def("__init__", [](AdaptivePlayer* self, std::pair<double, double> actions, std::pair<double, double> losses,
                          std::uint32_t width, std::uint32_t depth, const std::vector<double>& bandwidths,
                          Penalty penalty, double complexity, double epsilon, std::uint64_t seed) {
        const Range range{actions.first, actions.second};
        const TreeSettings tree{range, depth, width, 0.5, 0.0, Learner{}};
        new (self) AdaptivePlayer({tree, bandwidths.data(), bandwidths.size(), epsilon, penalty, complexity},
                                  {range, {losses.first, losses.second}, width, {epsilon, seed}});
      }, nb::kw_only(), "actions"_a, "losses"_a, "width"_a, "depth"_a, "bandwidths"_a, "penalty"_a, "complexity"_a,
         "epsilon"_a, "seed"_a)
      .def_prop_ro("playing", [](AdaptivePlayer& self) { return self.playing(); })
      .def("risk", [](AdaptivePlayer& self, std::size_t member) {
        if (member >= self.count) throw Rejected();
        return self.risk(member);
      }, "member"_a);

  nb::class_<TableView>(module, "Table")
      .def("__init__", [](TableView* self, Matrix contexts, Loss loss, std::pair<double, double> actions, Knots positions,
                          Knots values, Vector<double> lows, Vector<double> highs) {
        new (self) TableView(contexts, loss, {actions.first, actions.second}, positions, values, lows, highs);
      }, nb::kw_only(), "contexts"_a, "loss"_a, "actions"_a, "positions"_a, "values"_a, "lows"_a, "highs"_a)
      .def("loss", [](const TableView& self, std::size_t number, double action) {
        if (number >= self.rounds) throw Rejected();
        return self.pay(number, action);
      }, "number"_a, "action"_a);
  module.def("simulate", &simulate_tables, "players"_a, "tables"_a, "first"_a, "last"_a, "actions"_a, "densities"_a,
             "losses"_a, "threads"_a);
  module.def("replay", &replay, "players"_a, "contexts"_a, "actions"_a, "densities"_a, "losses"_a, "lows"_a, "highs"_a,
             "sums"_a, "threads"_a);
  module.def("instruction_set", [] { return machine().name; });
  module.def("draw", [](std::uint64_t seed, std::uint64_t decision) {
    const Draws draws = draw(seed, decision);
    return std::pair(draws.first, draws.second);
  }, "seed"_a, "decision"_a);
}
