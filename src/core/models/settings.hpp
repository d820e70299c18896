// The settings of each kind of model.
#pragma once

#include <cstddef>
#include <cstdint>

#include "knobs/knob.hpp"
#include "numerics/ranges.hpp"

namespace manul {

// The learner of a node; the same list as in manul/agents/learners.py.
enum class NodeLearner : std::uint8_t { coin_costs, coin_margin, adagrad_squared, adagrad_logistic };

// Trees have 2^depth leaves.
struct CatsSettings {
  Range actions;
  std::size_t width;
  std::uint32_t depth;
  double bandwidth;
  std::uint32_t bits = 0;  // of the weight tables if contexts are hashed, otherwise 0
};

struct PaperCatsSettings {
  Range actions;
  std::size_t width;
  std::uint32_t depth;
  double bandwidth;
  double offset;  // of an action in its leaf; 0 in the paper
  NodeLearner learner;
};

// The penalty of a bandwidth's estimate: its measured standard error, or a bound that grows as the bandwidth shrinks
// (Algorithm 3 with the constant of the paper's experiments, or Algorithm 5).
enum class Penalty : std::uint8_t { measured, practical, paper };

struct AdaptiveCatsSettings {
  CatsSettings tree;  // its bandwidth is not used
  const double* bandwidths;
  std::size_t count;
  double epsilon;  // the least
  Penalty penalty;
  double complexity;
};

struct DiscreteSettings {
  Range actions;
  std::size_t width;
  std::uint32_t depth;
};

struct LinearSettings {
  Range actions;
  std::size_t width;
  double bandwidth;
  double rate;
};

inline constexpr double none = __builtin_nan("");
// The parts of an outcome, and what they are: 0 or 1, a number of things, or an amount that is not negative.
enum class PartKind : std::uint8_t { yes_no, count, amount };

struct PartSettings {
  PartKind kind;
  int hint;  // -1 if the part falls with the action, +1 if it rises, otherwise 0
};

// The formula of an outcome with parts.
class OutcomeFormula {
 public:
  virtual ~OutcomeFormula() = default;

  // The expected outcomes of `count` actions, NaN where the formula has no value. `expectations` has a column of
  // `count` numbers for each part, and `fields` those of the context.
  virtual void expect(const double* actions, std::size_t count, const double* expectations, const double* fields,
                      double* values) const = 0;
};

struct PartsSettings {
  static constexpr std::size_t most = 8, points = 96;  // parts, and points of the grid of actions

  const OutcomeFormula* formula = nullptr;
  const OutcomeFormula *spent = nullptr, *kept = nullptr;  // of a budget and of a bound in expectation, or null
  std::size_t count = 0;  // of parts; 0: the outcome has none, or none that can be predicted
  PartSettings parts[most] = {};
  double actions[points] = {};       // at equidistant positions from 0 to 1, in the units of the formula
  bool higher = false;               // whether higher outcomes are better
  bool cost_aware = false;           // whether epsilon may be smaller where exploration costs most of the outcome
  Range losses = {};                 // that scaled losses stand for
  double start = __builtin_nan("");  // the position that was played so far, or NaN
  bool inherits = false;             // whether there is room for experts of another agent
};

struct AutoSettings {
  Range actions;
  std::size_t width;
  std::uint64_t seed;
  bool unknown_losses;       // losses are not scaled to [0, 1]
  std::size_t features = 0;  // rows of weights for named features, or 0 if contexts are rows
  double bandwidth = 0.0;    // in action units, or 0 if the model chooses it
  bool early = true;         // whether it has experts for the first rounds
  double start = none;       // the action to start near
  bool prior = false;        // whether it has one
  PartsSettings parts = {};
};

struct AutoKnobsSettings {
  const Knob* knobs;
  std::size_t count;
  std::size_t width;
  std::uint64_t seed;
  bool unknown_losses;
  std::size_t features = 0;
  bool early = true;
  const double* starts = nullptr;  // the positions or categories to start near, each may be none
  PartsSettings parts = {};        // with one knob
};

}  // namespace manul
