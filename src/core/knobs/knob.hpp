// The knobs of an action. Positions are in [0, 1]: n steps are the middles of n equal cells.
#pragma once

#include <cstddef>
#include <cstdint>

namespace manul {

// Columns are those of the critic: one per knob, or one per category of a choice.
constexpr std::size_t most_knobs = 16, most_categories = 32, most_columns = 64;

enum class KnobKind : std::uint8_t { number, steps, choice };

struct Knob {
  KnobKind kind;
  std::uint32_t count;  // of steps or categories

  // The columns of the critic: a choice has one per category.
  std::size_t columns() const { return kind == KnobKind::choice ? count : 1; }
};

// What one decision may use of a knob: the positions from `low` to `high`, or the categories whose bits are set.
struct KnobRange {
  double low;
  double high;
  std::uint32_t allowed;
};

// Where a knob is set if nothing is explored: a window of positions, or a category. Without evidence, as in the first
// rounds, all categories are equally likely.
struct KnobWindow {
  double centre;
  double bandwidth;
  std::uint32_t category;
  bool uniform;
  double most_exploring = 1.0;  // as of `Window`

  double exploring(double epsilon) const { return most_exploring < epsilon ? most_exploring : epsilon; }
};

// What limits leave of each knob, given those that are set before it.
class KnobLimits {
 public:
  virtual ~KnobLimits() = default;

  virtual std::size_t size() const = 0;    // of the knobs
  virtual std::size_t fields() const = 0;  // of the context

  virtual bool is_choice(std::size_t knob) const = 0;

  // The knobs in the order in which they are set: choices first.
  virtual const std::size_t* order() const = 0;

  // Narrows the range of a knob, given the positions of those before it and the fields of the context; returns false
  // if nothing is left.
  virtual bool narrow(std::size_t knob, const double* positions, const double* fields, KnobRange& range) const = 0;
};

// The limits of one decision; null: none. Its functions are compiled for several instruction sets, so they are inlined.
struct Limited {
  const KnobLimits* limits = nullptr;
  const double* fields = nullptr;

  [[gnu::always_inline]] std::size_t knob(std::size_t place) const {
    return limits == nullptr ? place : limits->order()[place];
  }
  [[gnu::always_inline]] bool narrow(std::size_t knob, const double* positions, KnobRange& range) const {
    return limits == nullptr || limits->narrow(knob, positions, fields, range);
  }
};

}  // namespace manul
