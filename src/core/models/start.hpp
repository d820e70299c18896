// Where a loop starts: an action that is known to be sensible, such as today's price.
//
// The first rounds are uniform near it. Windows then stay in a part of the range around it that grows with the evidence
// until it is the whole range (`LossLearner::reach`). Epsilon explores the whole range from the start, so every action
// has a density.
#pragma once

#include "numerics/arithmetic.hpp"
#include "numerics/ranges.hpp"

namespace manul::MANUL_SIMD {

// What windows may use of a range of positions in [0, 1] around a start, or around the position in the range that is
// nearest to it; a start that is not a number is none.
inline Range near_start(Range within, double start, double reach) {
  if (!(start >= 0.0) || reach >= 1.0) return within;
  const double centre = clip(start, within.low, within.high);
  return {larger(within.low, centre - reach), smaller(within.high, centre + reach)};
}

}  // namespace manul::MANUL_SIMD
