// Vectors of doubles with the same order of additions on every machine, as `vectors.hpp` has of floats. Sizes of arrays
// are multiples of eight.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/arithmetic.hpp"

namespace manul::MANUL_SIMD {

// As wide as the machine allows; all operations are lane by lane, so the width does not change results.
#if defined(__AVX512F__)
using Doubles = double __attribute__((vector_size(64)));
#elif defined(__AVX__)
using Doubles = double __attribute__((vector_size(32)));
#else
using Doubles = double __attribute__((vector_size(16)));
#endif
constexpr std::size_t double_lanes = sizeof(Doubles) / sizeof(double);

constexpr std::size_t padded(std::size_t size) { return (size + 7) / 8 * 8; }

inline Doubles load(const double* from) {
  Doubles value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

inline void store(double* to, Doubles value) { __builtin_memcpy(to, &value, sizeof value); }

// A sum of lane i modulo 16, then of both halves, then of the eight lanes in a fixed order.
class DoubleTotal {
 public:
  // Adds `each(i)`, a vector of the numbers from i on, for all i up to `size`.
  template <class Each>
  [[gnu::always_inline]] void add(std::size_t size, Each&& each) {
    std::size_t i = 0;
    for (; i + 16 <= size; i += 16)
      for (std::size_t part = 0; part < parts; ++part) sums_[part] += each(i + part * double_lanes);
    for (std::size_t part = 0; i < size && part < parts / 2; ++part) sums_[part] += each(i + part * double_lanes);
  }

  double value() const {
    double lanes[8];
    for (std::size_t part = 0; part < parts / 2; ++part)
      store(lanes + part * double_lanes, sums_[part] + sums_[part + parts / 2]);
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
  }

 private:
  static constexpr std::size_t parts = 16 / double_lanes;
  Doubles sums_[parts] = {};
};

inline double dot(const double* left, const double* right, std::size_t size) {
  DoubleTotal total;
  total.add(size, [&](std::size_t i) { return load(left + i) * load(right + i); });
  return total.value();
}

// to += factor * from
inline void add_scaled(double factor, const double* from, double* to, std::size_t size) {
  for (std::size_t i = 0; i < size; i += double_lanes) store(to + i, load(to + i) + factor * load(from + i));
}

// e^x, as `exponential`; below -700 it is e^-700, and numbers above 700 are not allowed.
inline Doubles exponential(Doubles x) {
  using Bits = decltype(x < x);
  constexpr double rounding = 0x1.8p52;  // added, it leaves the nearest whole number in the last bits
  x = x > -700.0 ? x : Doubles{} - 700.0;
  const Doubles shifted = x * one_over_log_two + rounding, r = x - (shifted - rounding) * log_two;
  constexpr double inverse_factorials[] = {1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120,
                                           1.0 / 24,      1.0 / 6,      1.0 / 2,     1.0,        1.0};
  Doubles sum = Doubles{} + 1.0 / 39916800;
  for (const double coefficient : inverse_factorials) sum = sum * r + coefficient;
  return sum * reinterpret_cast<Doubles>((reinterpret_cast<Bits>(shifted) + 1023) << 52);
}

inline Doubles root(Doubles v) {
  for (std::size_t i = 0; i < double_lanes; ++i) v[i] = __builtin_sqrt(v[i]);
  return v;
}

}  // namespace manul::MANUL_SIMD
