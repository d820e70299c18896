// The functions of the action that models of parts are linear in, on a grid of actions and linear between its points:
// a constant, the action and its logarithm, both in standard units of the grid, and hats.
#pragma once

#include <cstddef>

#include "models/settings.hpp"
#include "numerics/arithmetic.hpp"

namespace manul::MANUL_SIMD {

class ActionBasis {
 public:
  static constexpr std::size_t points = PartsSettings::points;  // of the grid
  static constexpr std::size_t hats = 13, size = 3 + hats;
  enum Function : std::size_t { constant, linear, logarithmic, first_hat };

  // A place between two points of the grid.
  struct Place {
    std::size_t point;
    double share;

    explicit Place(double position) {
      const double scaled = clip(position, 0.0, 1.0) * (points - 1.0);
      point = static_cast<std::size_t>(smaller(scaled, points - 2.0));
      share = scaled - static_cast<double>(point);
    }

    double value(const double* values) const { return values[point] + share * (values[point + 1] - values[point]); }
  };

  static double position(std::size_t point) { return static_cast<double>(point) / (points - 1.0); }

  // `actions` are those of the grid in the user's units, ascending.
  explicit ActionBasis(const double* actions) {
    const double low = actions[0], high = actions[points - 1], span = high > low ? high - low : 1.0;
    const double shift = low > 0.0 ? 0.0 : nearest * span - low;  // logarithms need positive numbers
    for (std::size_t g = 0; g < points; ++g) {
      values_[constant][g] = 1.0;
      values_[linear][g] = (actions[g] - low) / span;
      values_[logarithmic][g] = logarithm(low > 0.0 ? actions[g] / low : (actions[g] + shift) / span);
      for (std::size_t k = 0; k < hats; ++k)
        values_[first_hat + k][g] = larger(0.0, 1.0 - absolute(position(g) * (hats - 1.0) - static_cast<double>(k)));
    }
    standardise(values_[linear]);
    log_deviation_ = standardise(values_[logarithmic]);
  }

  // The standard deviation of the logarithm over the grid.
  double log_deviation() const { return log_deviation_; }

  const double* operator[](std::size_t function) const { return values_[function]; }

 private:
  static constexpr double nearest = 0.02;  // to a range that begins at 0 or below: a share of the range

  static double standardise(double* values) {
    double mean = 0.0, square = 0.0;
    for (std::size_t g = 0; g < points; ++g) mean += values[g] / points;
    for (std::size_t g = 0; g < points; ++g) square += (values[g] - mean) * (values[g] - mean) / points;
    for (std::size_t g = 0; g < points; ++g) values[g] = (values[g] - mean) / __builtin_sqrt(larger(square, 1e-12));
    return __builtin_sqrt(square);
  }

  double values_[size][points], log_deviation_;
};

}  // namespace manul::MANUL_SIMD
