// Monitors the predictions of the critic: estimates the noise around them, and raises an alarm when they suddenly
// become worse (CUSUM, Page 1954). The constants were chosen by experiment: docs/ablation-auto.md.
#pragma once

#include "numerics/arithmetic.hpp"

namespace manul::MANUL_SIMD {

class DriftDetector {
 public:
  double sigma() const { return __builtin_sqrt(variance); }

  // `error` is loss minus prediction. Returns whether the world has changed.
  bool detects_change(double error) {
    count += 1.0;
    const double rate = larger(slowest_rate, 1.0 / count), before = sigma();
    error -= mean;
    const double bounded = count > settling ? clip(error, -outlier * before, outlier * before) : error;
    mean += rate * bounded;
    variance += rate * (bounded * bounded - variance);
    if (count <= silent) return false;
    surprise = larger(0.0, surprise + clip(error / larger(before, least), -most_shock, most_shock) - allowance);
    rising = surprise > 0.0 ? rising + 1.0 : 0.0;
    return surprise > alarm_level;
  }

  // Returns how many of the latest rounds belong to the new world.
  double restart() {
    count = smaller(rising, longest_rise);
    mean = surprise = rising = 0.0;
    return count;
  }

  // A tenth of the spread of losses under uniform exploration. If predictions are nearly exact, errors of a few times
  // their noise come from the critic, which corrects them within a hundred rounds.
  static constexpr double least = 0.02;

  bool is_valid() const {
    return finite(count) && finite(mean) && finite(variance) && finite(surprise) && finite(rising);
  }

 private:
  static constexpr double slowest_rate = 0.001;   // the noise is averaged over about 1,000 rounds
  static constexpr double settling = 100.0;       // rounds before outliers can be distinguished from noise
  static constexpr double outlier = 4.0;          // standard deviations; larger errors are clipped
  static constexpr double silent = 500.0;         // rounds before the first alarm, while the critic still learns fast
  static constexpr double most_shock = 3.0;       // limits the effect of one round
  static constexpr double allowance = 0.5;        // standard deviations that errors may always be off
  static constexpr double alarm_level = 50.0;     // at least 20 bad rounds in a row
  static constexpr double longest_rise = 1000.0;  // rounds kept after an alarm, at most

  // Files contain exactly these numbers in this order.
  double count = 0.0, mean = 0.0, variance = 0.0, surprise = 0.0, rising = 0.0;
};

}  // namespace manul::MANUL_SIMD
