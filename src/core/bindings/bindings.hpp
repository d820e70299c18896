// Shared by the files of this folder. Code outside it does not use Python, and code in it has no algorithms.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "play/declared_formula.hpp"
#include "play/player.hpp"
#include "simd/instruction_set.hpp"

namespace manul {

namespace nb = nanobind;
using namespace nb::literals;

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
// The four numbers of each `DrawnWindow`, one after the other.
using WindowsOutput = std::optional<Output>;
using Fields = nb::typed<nb::dict, nb::str, nb::any>;
using Limits = std::pair<double, double>;
// A constant, the fields of a fading schedule, or the points (rounds, epsilon) of another one.
using Epsilon = std::variant<double, std::tuple<double, double, double>, std::vector<std::pair<double, double>>>;

inline Schedule to_schedule(const Epsilon& epsilon) {
  if (const double* constant = std::get_if<double>(&epsilon)) return {*constant, *constant, 1.0};
  if (const auto* fading = std::get_if<1>(&epsilon)) {
    const auto [first, last, rounds] = *fading;
    return {first, last, rounds};
  }
  Schedule schedule{0.0, 1.0, 1.0};
  for (const auto& [rounds, share] : std::get<2>(epsilon)) {
    schedule.points.push_back({rounds, share});
    schedule.first = std::max(schedule.first, share), schedule.last = std::min(schedule.last, share);
  }
  return schedule;
}

inline Range to_range(const Limits& limits) { return {limits.first, limits.second}; }

// The ends and the share of each level of a ladder.
using Levels = std::vector<std::tuple<double, double, double>>;

inline Levels to_levels(const Ladder& ladder) {
  Levels all;
  for (std::size_t i = 0; i < Ladder::levels; ++i) all.emplace_back(ladder.low(i), ladder.high(i), ladder.share(i));
  return all;
}

// Throws if an array has another size.
template <class... Arrays>
void check_sizes(std::size_t size, const Arrays&... arrays) {
  if (((arrays.size() != size) || ...)) throw Rejected();
}

// Converts contexts to views. New names are remembered only with `learning`.
ContextView view(BasePlayer& player, const Fields& context, bool learning = false);

template <class T>
ContextView view(BasePlayer& player, const Vector<T>& context, bool = false) {
  return player.row_view(context.data(), context.size());
}

// Reads a context, or one field of it, into the encoder.
void read_context(Encoder& encoder, PyObject* members);
void read_field(Encoder& encoder, const std::string& name, PyObject* value);
std::string field_name(Encoder& encoder, PyObject* key);

// Where `count` windows are written; null if they are not asked for.
double* to_windows(const WindowsOutput& windows, std::size_t count);

Rows rows(const BasePlayer& player, const Matrix<float>& contexts, const Vector<double>& lows,
          const Vector<double>& highs);

inline const InstructionSet& machine() {
  static const InstructionSet chosen = instruction_set();
  return chosen;
}

inline const Kernels& kernels() { return machine().kernels; }

// A player that knows the interface of its model; `Name` distinguishes types with the same interface.
template <class Model, class Name = Model>
struct ModelPlayer : Player {
  ModelPlayer(Model* model, const PlayerSettings& settings) : Player(model, settings), model(*model) {}
  Model& model;
};

// All players have common settings and some of their own; `build` creates the model from both.
template <class Type, class Model, class... Own, class... Names>
void bind_constructor(nb::class_<Type, Player>& type, Model* (*build)(PlayerSettings&, Own...), const Names&... names) {
  static_assert(sizeof...(Own) == sizeof...(Names));
  const auto construct = [build](Type* self, const Limits& actions, const Limits& losses, std::uint32_t width,
                                 const Epsilon& epsilon, std::uint64_t seed, Own... own) {
    PlayerSettings settings{to_range(actions), to_range(losses), width, {to_schedule(epsilon), seed}};
    Model* model = build(settings, own...);
    new (self) Type(model, settings);
  };
  type.def("__init__", construct, nb::kw_only(), "actions"_a, "losses"_a, "width"_a, "epsilon"_a, "seed"_a, names...);
}

nb::typed<nb::dict, nb::str, nb::any> to_dict(const CriticReport& report, const FormulaReport& formula);

// The steps of a formula in postfix order: operations by their names in formulas, and numbers.
using FormulaStep = std::pair<std::string, double>;
Program to_program(const std::vector<FormulaStep>& steps);

// The parts of an outcome: `program`, `kinds`, `hints`, `higher`, the names of the `fields` that the program loads, the
// `actions` at equidistant positions, and whether exploration is `cost_aware`; also, if there are, the position of the
// `start`, and whether it `inherits` from another agent.
using PartsDict = std::optional<nb::typed<nb::dict, nb::str, nb::any>>;
PartsSettings to_parts(PlayerSettings& settings, const PartsDict& parts);

// The parts of one outcome, and those of many, one row each.
using Parts = std::optional<std::vector<double>>;
using ManyParts = std::optional<Matrix<double>>;
using ManyJudged = std::optional<Vector<double>>;  // 1 or 0
const double* to_parts(const BasePlayer& player, const Parts& parts);
const double* to_parts(const BasePlayer& player, const ManyParts& parts, std::size_t count);

void bind_player(nb::module_& module);
void bind_cats(nb::module_& module);
void bind_auto(nb::module_& module);
void bind_knobs(nb::module_& module);
void bind_linear(nb::module_& module);
void bind_discrete(nb::module_& module);
void bind_simulation(nb::module_& module);

// Parts of `bind_player`.
void bind_names(nb::class_<BasePlayer>& type);
void bind_state(nb::class_<BasePlayer>& type);

}  // namespace manul
