// A test of two predictions that heavy tails do not fool: the sum of the differences of their squared errors, divided
// by the root of the sum of their squares.
#pragma once

#include "numerics/arithmetic.hpp"

namespace manul::MANUL_SIMD {

struct SelfNormalisedTest {
  double sum = 0.0, squares = 0.0;

  static double logistic(double z) { return 1.0 / (1.0 + exponential(-steepness * z)); }

  // How much better the second one is, in standard deviations.
  double z() const { return squares > 0.0 ? sum / __builtin_sqrt(squares) : 0.0; }

  void add(double error, double other, double keep = 1.0) {
    const double difference = error * error - other * other;
    sum = keep * sum + difference, squares = keep * squares + difference * difference;
  }

  // A factor for the second one that is 1 until it is worse than the first by more than `tolerance`.
  double doubt(double tolerance = 0.0) const { return smaller(1.0, 2.0 * logistic(z() + tolerance)); }

 private:
  static constexpr double steepness = 1.7;  // about the normal distribution
};

}  // namespace manul::MANUL_SIMD
