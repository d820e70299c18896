// The positions of the leaves of a tree in the range of actions. The class of this name in
// manul/policies/classifier_tree.py has the same rules for whole columns; its tests compare both.
//
//   K  leaves       h  bandwidth      o  offset: leaf i has its action at low + (i + o) (high - low) / K
//
// The offset is 0 in the paper and 1/2 otherwise. All values are in action units.
#pragma once

#include <cstdint>

#include "numerics/ranges.hpp"

namespace manul::MANUL_SIMD {

// Leaves first..last, both included; empty when first > last.
struct Leaves {
  std::int64_t first;
  std::int64_t last;
};

struct Geometry {
  Range actions;
  std::uint32_t depth;
  double offset;
  double bandwidth;

  std::int64_t leaves() const { return std::int64_t{1} << depth; }
  double spacing = (actions.high - actions.low) / static_cast<double>(std::int64_t{1} << depth);
  double per_unit = static_cast<double>(std::int64_t{1} << depth) / (actions.high - actions.low);
  double position(double action) const { return (action - actions.low) * per_unit; }

  // A leaf is reachable if its window is inside the range. The rule is symmetric, so with o = 0 and h a power of two it
  // excludes exactly the leaves that the paper's two special nodes exclude (Algorithm 9).
  Leaves reachable(Range within) const {
    const auto first = static_cast<std::int64_t>(__builtin_ceil(position(within.low + bandwidth) - offset));
    const auto last = static_cast<std::int64_t>(__builtin_floor(position(within.high - bandwidth) - (1.0 - offset)));
    if (first <= last) return {clamp(first), clamp(last)};
    const auto middle = clamp(static_cast<std::int64_t>(__builtin_floor(position(0.5 * (within.low + within.high)))));
    return {middle, middle};
  }

  // The leaves whose windows cover the action.
  Leaves covering(double action) const {
    const auto first = static_cast<std::int64_t>(__builtin_ceil(position(action - bandwidth) - offset));
    const auto last = static_cast<std::int64_t>(__builtin_floor(position(action + bandwidth) - offset));
    return {first, last};
  }

  // The centre of a leaf's window. The only leaf of a narrow range is moved inside it.
  double centre(std::int64_t leaf, Range within) const {
    const double action = actions.low + (static_cast<double>(leaf) + offset) * spacing;
    const double lowest = within.low + bandwidth, highest = within.high - bandwidth;
    return action < lowest ? lowest : action > highest ? highest : action;
  }

 private:
  std::int64_t clamp(std::int64_t leaf) const { return leaf < 0 ? 0 : leaf >= leaves() ? leaves() - 1 : leaf; }
};

// The leaves as a discrete set of actions: leaf i of K is at low + i / K (high - low), as in the paper. The density of
// an atom is its mass divided by the spacing.
struct Atoms {
  Range actions = {0.0, 1.0};
  std::int64_t leaves = 0;

  double span() const { return actions.high - actions.low; }
  double spacing() const { return span() / static_cast<double>(leaves); }
  double at(std::int64_t leaf) const {
    return actions.low + static_cast<double>(leaf) / static_cast<double>(leaves) * span();
  }

  std::int64_t nearest(double action) const {
    const double leaf = __builtin_floor((action - actions.low) / spacing() + 0.5),
                 last = static_cast<double>(leaves - 1);
    return static_cast<std::int64_t>(leaf < 0.0 ? 0.0 : leaf > last ? last : leaf);
  }

  // The atoms inside a range, ends included; there may be none.
  Leaves inside(Range within) const {
    std::int64_t first = nearest(within.low), last = nearest(within.high);
    if (at(first) < within.low) ++first;
    if (at(last) > within.high) --last;
    return {first, last};
  }
};

}  // namespace manul::MANUL_SIMD
