// The losses that the critic learns from if their range is not stated: between bounds that follow the quantiles of the
// remembered losses. Losses outside are clipped and counted, so that one absurd number does not disturb learning.
#pragma once

#include "numerics/arithmetic.hpp"
#include "numerics/sorting.hpp"

namespace manul::MANUL_SIMD {

class LossBounds {
 public:
  static constexpr std::size_t most_samples = 2048;
  static constexpr double largest = 1e100;  // squares of larger losses would overflow

  double bound(double loss) const { return clip(loss, low, high); }

  // Whether the bounds should be updated after this round: on a schedule, or early if many losses were clipped, because
  // the world has another scale than before.
  bool is_due(double loss, double rounds) {
    if (loss < low || loss > high) clipped += 1.0, recent += 1.0;
    return rounds >= next || recent > surprising + (rounds - last) * surprising_share;
  }

  // Sorts the samples. The bounds are the quantiles .01 and .99, each moved outwards by their distance. Quantiles
  // further outside replace them while they are equal, as they are if most losses are zero.
  void update(double* samples, std::size_t count, double rounds, double longest) {
    sort(samples, count);
    const std::size_t trims[] = {count / 100 + 1, count / 1000 + 1, 1, 0};
    low = -__builtin_inf(), high = __builtin_inf();
    for (const std::size_t trim : trims) {
      if (2 * trim >= count) continue;
      const double least = samples[trim], most = samples[count - 1 - trim], width = most - least;
      if (!(width > 0.0)) continue;
      low = least - width, high = most + width;
      break;
    }
    last = rounds, recent = 0.0;
    next = rounds + smaller(growth * rounds, longest);
  }

  bool is_valid() const {
    return low <= high && is_count(next) && is_count(last) && is_count(recent) && is_count(clipped);
  }

  double count() const { return clipped; }
  double least() const { return low; }
  double most() const { return high; }

 private:
  static constexpr double first = 20.0, growth = 0.25;  // rounds before the first update, and between updates
  static constexpr double surprising = 32.0, surprising_share = 1.0 / 32.0;  // clipped losses, where 2 % are usual

  // Files contain exactly these numbers in this order.
  double low = -__builtin_inf(), high = __builtin_inf(), next = first, last = 0.0, recent = 0.0, clipped = 0.0;
};

}  // namespace manul::MANUL_SIMD
