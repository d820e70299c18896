// How well the critic predicts: the noise around its predictions, and an alarm when they turn bad at once.
#pragma once

#include "numerics/arithmetic.hpp"

namespace manul::MANUL_SIMD {

class Monitor {
 public:
  double sigma() const { return __builtin_sqrt(variance); }

  // `error` is loss minus prediction. Says whether the world has changed.
  bool detects_change(double error) {
    count += 1.0;
    const double rate = larger(0.001, 1.0 / count), before = sigma();
    error -= mean;
    const double usual = count > 100.0 ? clip(error, -4.0 * before, 4.0 * before) : error;
    mean += rate * usual;
    variance += rate * (usual * usual - variance);
    if (count <= 500.0) return false;
    surprise = larger(0.0, surprise + clip(error / larger(before, least), -3.0, 3.0) - 0.5);
    rising = surprise > 0.0 ? rising + 1.0 : 0.0;
    return surprise > 50.0;
  }

  // Returns how many of the latest rounds belong to the new world.
  double restart() {
    count = smaller(rising, 1000.0);
    mean = surprise = rising = 0.0;
    return count;
  }

  // A tenth of the spread of losses under uniform play. Where predictions are nearly exact, a slip of a few times
  // their noise is the critic's own and mends itself within a hundred rounds.
  static constexpr double least = 0.02;

  bool is_valid() const {
    return finite(count) && finite(mean) && finite(variance) && finite(surprise) && finite(rising);
  }

  double count = 0.0, mean = 0.0, variance = 0.0, surprise = 0.0, rising = 0.0;
};

}  // namespace manul::MANUL_SIMD
