// Where a loop starts: an action that is known to be sensible, such as today's price.
//
// The first rounds are uniform near it. Windows then stay in a part of the range around it that grows with the rounds,
// until it is the whole range. Epsilon explores the whole range from the start, so every action has a density.
#pragma once

#include "numerics/arithmetic.hpp"
#include "numerics/ranges.hpp"

namespace manul::MANUL_SIMD {

constexpr double first_reach = 0.1, reach_per_round = 1.0 / 400.0;  // shares of the range, to each side

// What windows may use of a range of positions in [0, 1] around a start, or its nearest position in the range; a start
// that is not a number is none. The part has room for windows of a `bandwidth`. Unless the losses `differ`, nothing is
// learned yet, and it does not grow.
inline Range near_start(Range within, double start, double rounds, bool differ, double bandwidth = 0.0) {
  const double reach = larger(bandwidth, first_reach + (differ ? rounds * reach_per_round : 0.0));
  if (!(start >= 0.0) || reach >= 1.0) return within;
  const double centre = clip(start, within.low, within.high);
  return {larger(within.low, centre - reach), smaller(within.high, centre + reach)};
}

}  // namespace manul::MANUL_SIMD
