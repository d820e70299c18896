// What the parts of the core agree on: plain values and one interface.
//
// Code that is compiled once per instruction set lives in the namespace MANUL_SIMD and is reached only through Agent,
// so that no function built for a newer machine can stand in for the same function on an older one. For the same
// reason it uses no templates of the standard library.
#pragma once

#include <cstddef>
#include <cstdint>

namespace manul {

struct Range {
  double low;
  double high;
};

// The window that the policy plays when it does not explore. A bandwidth of 0 is one atom.
struct Window {
  double centre;
  double bandwidth;
};

// What came of one decision. The loss is scaled to [0, 1].
struct Outcome {
  double action;
  double density;
  double loss;
  Range within;
};

// A part of an agent's state, for saving and for comparing.
struct Array {
  const char* name;
  const char* type;  // "f4", "f8" or "u8", as in NumPy
  void* data;
  std::size_t size;
  std::size_t part = 0;  // counted from 1 in agents that consist of several
};

class Agent {
 public:
  virtual ~Agent() = default;
  virtual Window window(const float* context, Range within) = 0;
  virtual void learn(const float* context, const Outcome& outcome) = 0;

  // Learns, and says which window the policy would have played before. It must be right where it covers the action;
  // elsewhere any window will do that does not.
  virtual Window replay(const float* context, const Outcome& outcome) = 0;

  // Where contexts have names: which features the values of the next one belong to, numbers first.
  virtual void select(const std::uint32_t*, std::size_t, std::size_t) {}

  // Rounds after which old evidence counts half; nothing is forgotten unless this is called.
  virtual void forget(double half_life) = 0;

  // Fills in what a fresh agent starts from, where that is put off until it is needed; only the first call does
  // anything.
  virtual void start() {}

  virtual std::size_t arrays() const = 0;
  virtual Array array(std::size_t index) = 0;

  // Whether arrays that came from outside can be played with. What is only added and compared may hold anything.
  virtual bool sound() const { return true; }
};

namespace MANUL_SIMD {

// For agents whose `learn` does not come across the window.
template <class Base>
class Plain : public Base {
 public:
  Window replay(const float* context, const Outcome& outcome) override {
    const Window played = this->window(context, outcome.within);
    this->learn(context, outcome);
    return played;
  }
};

}  // namespace MANUL_SIMD

// One node on the way of a context down a tree; a forced node has only one side that can be reached.
struct Step {
  std::uint32_t node;
  double margin;
  bool right;
  bool forced;
};

// A tree of linear nodes that can say how it comes to its decisions.
class RoutingAgent : public Agent {
 public:
  // The weight of a feature in node `row`; row 0 is what all nodes share.
  virtual float weight(std::uint32_t row, std::uint32_t feature) const = 0;

  // The way of a context to its leaf, one step per level.
  virtual void route(const float* context, Range within, Step* steps) = 0;
};

enum class Learner : std::uint8_t { coin_costs, coin_margin, adagrad_squared, adagrad_logistic };

struct TreeSettings {
  Range actions;
  std::uint32_t depth;
  std::uint32_t width;
  double offset;
  double bandwidth;
  Learner learner;
  std::uint32_t bits = 0;  // of the table of weights, where contexts have names
};

// The most features that one context with names can have.
constexpr std::size_t most_features = 4096;

// How much a bandwidth's estimate is raised for being uncertain: by its measured standard error, or by a bound that
// grows as the bandwidth shrinks (Algorithm 3 with the constant of the paper's experiments, or Algorithm 5).
enum class Penalty : std::uint8_t { measured, practical, paper };

struct AdaptiveSettings {
  TreeSettings tree;
  const double* bandwidths;
  std::size_t count;
  double epsilon;
  Penalty penalty;
  double complexity;
};

struct DiscreteSettings {
  Range actions;
  std::uint32_t depth;
  std::uint32_t width;
};

struct LinearSettings {
  Range actions;
  std::uint32_t width;
  double bandwidth;
  double rate;
};

}  // namespace manul
