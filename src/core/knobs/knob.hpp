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
};

}  // namespace manul
