// How much of a second prediction to mix into a first one, by the errors of both: sums that older rounds fade from.
#pragma once

namespace manul::MANUL_SIMD {

// The sum of the first one's error times its difference from the second's, and of squared differences: their ratio is
// the share of the second one with the smallest squared error.
struct ErrorRegression {
  double product = 0.0, square = 0.0;
  void add(double keep, double error, double other) {
    product = keep * product + error * (error - other);
    square = keep * square + (error - other) * (error - other);
  }
};

struct MeanSquare {
  double sum = 0.0, count = 0.0;
  double mean() const { return count > 0.0 ? sum / count : 0.0; }
  void add(double keep, double error) { sum = keep * sum + error * error, count = keep * count + 1.0; }
};

}  // namespace manul::MANUL_SIMD
