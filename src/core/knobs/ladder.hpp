// The distribution of one knob around its window: a ladder of ever wider uniform distributions.
//
// Level i of 0 to 4 is uniform with half-width h (r / h)^(i/4), where h is that of the window and r that of the whole
// range; its centre is moved so that it fits into the range. Levels 1 to 3 explore nearby, in the shares 4 : 2 : 1, and
// level 4 explores the whole range. Each knob is drawn independently, so a joint density is a product.
#pragma once

#include "knobs/knob.hpp"
#include "numerics/arithmetic.hpp"

namespace manul {

// How often a knob is drawn from the middle levels and from the last one.
struct Exploring {
  double nearby;
  double anywhere;
};

// What a draw is from, apart from the range: the ends of the window, or the number of a category and the next one, how
// often it is drawn anywhere instead, and how often of the rest nearby.
struct DrawnWindow {
  double low;
  double high;
  double nearby;
  double anywhere;

  static constexpr std::size_t size = 4;
  void write(double* numbers) const { numbers[0] = low, numbers[1] = high, numbers[2] = nearby, numbers[3] = anywhere; }
};

class Ladder {
 public:
  Ladder(double low, double high, const KnobWindow& window, Exploring exploring)
      : low_(low), high_(high), rounding_(1e-15 * MANUL_SIMD::larger(__builtin_fabs(low), __builtin_fabs(high))) {
    const double whole = 0.5 * (high - low);
    const double first = window.bandwidth < whole ? window.bandwidth : whole;
    const double ratio = __builtin_sqrt(__builtin_sqrt(whole / first));
    double half = first;
    for (std::size_t i = 0; i < levels; ++i, half *= ratio) {
      half_[i] = i + 1 == levels || half > whole ? whole : half;
      centre_[i] = MANUL_SIMD::clip(window.centre, low + half_[i], high - half_[i]);
    }
    const double rest = 1.0 - exploring.anywhere, near = rest * exploring.nearby / 7.0;
    const double masses[levels] = {rest * (1.0 - exploring.nearby), 4.0 * near, 2.0 * near, near, exploring.anywhere};
    for (std::size_t i = 0; i < levels; ++i) mass_[i] = masses[i];
  }

  // The position of a draw: `level` and `place` are uniform in [0, 1).
  double at(double level, double place) const {
    std::size_t i = 0;
    for (double passed = mass_[0]; i + 1 < levels && level >= passed; passed += mass_[i]) ++i;
    return MANUL_SIMD::clip(centre_[i] + (2.0 * place - 1.0) * half_[i], low_, high_);
  }

  double density(double position) const {
    double total = 0.0;
    for (std::size_t i = 0; i < levels; ++i)
      if (position >= low(i) - rounding_ && position <= high(i) + rounding_) total += mass_[i] / (2.0 * half_[i]);
    return position >= low_ && position <= high_ ? total : 0.0;
  }

  // The probability of the positions from `from` to `to`.
  double mass(double from, double to) const {
    double total = 0.0;
    for (std::size_t i = 0; i < levels; ++i) {
      const double left = MANUL_SIMD::larger(from, low(i)), right = MANUL_SIMD::smaller(to, high(i));
      if (right > left) total += mass_[i] * (right - left) / (2.0 * half_[i]);
    }
    return total;
  }

  // The smallest density of the range: levels contain each other, so it is at one of the ends.
  double floor() const { return MANUL_SIMD::smaller(density(low_), density(high_)); }

  static constexpr std::size_t levels = 5;
  double low(std::size_t level) const { return at_end(level, low_, centre_[level] - half_[level]); }
  double high(std::size_t level) const { return at_end(level, high_, centre_[level] + half_[level]); }
  double share(std::size_t level) const { return mass_[level]; }

 private:
  // The end of a level, in the range in spite of rounding.
  double at_end(std::size_t level, double whole, double end) const {
    return level + 1 == levels ? whole : MANUL_SIMD::clip(end, low_, high_);
  }

  double low_, high_;
  double rounding_;  // a draw at the end of a level is inside it
  double half_[levels], centre_[levels], mass_[levels];
};

// The n-th root of a number from 0 to 1, with the same bits on every machine.
inline double nth_root(double number, std::size_t n) {
  double root = 1.0;  // Newton's method falls monotonically from above
  for (int i = 0; i < 200 && n > 1; ++i) {
    double power = 1.0;
    for (std::size_t j = 1; j < n; ++j) power *= root;
    const double next = root - (root - number / power) / static_cast<double>(n);
    if (!(next < root)) break;
    root = next;
  }
  return n > 1 ? root : number;
}

// Exploration of one of `knobs` knobs, so that a share `anywhere` of the actions, and `nearby` of the others, has at
// least one knob that explores so.
inline Exploring exploring_per_knob(double nearby, double anywhere, std::size_t knobs) {
  if (knobs == 0) return {0.0, 0.0};
  return {1.0 - nth_root(1.0 - nearby, knobs), 1.0 - nth_root(1.0 - anywhere, knobs)};
}

}  // namespace manul
