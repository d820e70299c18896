// Scalar functions that give the same bits on every machine; the C library's differ from version to version.
#pragma once

#include <cstdint>

namespace manul::MANUL_SIMD {

inline double absolute(double x) { return __builtin_fabs(x); }
inline double smaller(double a, double b) { return a < b ? a : b; }
inline double larger(double a, double b) { return a > b ? a : b; }
inline double clip(double x, double low, double high) { return smaller(larger(x, low), high); }

inline bool finite(double x) { return absolute(x) < __builtin_inf(); }

// Whether x can be a number of rounds. Rounds are counted in doubles, which represent every integer up to 2^53.
inline bool is_count(double x) { return x >= 0.0 && x <= 0x1p53; }

inline std::uint64_t bits(double x) {
  std::uint64_t same;
  __builtin_memcpy(&same, &x, sizeof same);
  return same;
}

// 2^k for |k| up to 1022.
inline double power_of_two(std::int64_t k) {
  const auto bits = static_cast<std::uint64_t>(k + 1023) << 52;
  double power;
  __builtin_memcpy(&power, &bits, sizeof power);
  return power;
}

constexpr double log_two = 0.6931471805599453, one_over_log_two = 1.4426950408889634;

// e^x for |x| up to 700, to about 1e-13: 2^k times the Taylor polynomial of the remainder.
inline double exponential(double x) {
  x = clip(x, -700.0, 700.0);
  const double k = __builtin_floor(x * one_over_log_two + 0.5);
  const double r = x - k * log_two;
  constexpr double inverse_factorials[] = {1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120,
                                           1.0 / 24,      1.0 / 6,      1.0 / 2,     1.0,        1.0};
  double sum = 1.0 / 39916800;
  for (const double coefficient : inverse_factorials) sum = sum * r + coefficient;
  return sum * power_of_two(static_cast<std::int64_t>(k));
}

// The natural logarithm of a positive normal number, to about 1e-15: the power of two, and the series of the inverse
// hyperbolic tangent for the rest.
inline double logarithm(double x) {
  auto power = static_cast<double>(bits(x) >> 52) - 1023.0;
  const std::uint64_t mantissa = (bits(x) & ~(~std::uint64_t{0} << 52)) | bits(1.0);
  double rest;
  __builtin_memcpy(&rest, &mantissa, sizeof rest);
  if (rest > 1.4142135623730951) rest *= 0.5, power += 1.0;
  const double z = (rest - 1.0) / (rest + 1.0);
  double sum = 0.0;
  for (int term = 21; term >= 1; term -= 2) sum = sum * z * z + 1.0 / term;
  return power * log_two + 2.0 * z * sum;
}

// Returns `truth`, but lets the processor continue speculatively with `guess`, which is known earlier. The empty
// statements prevent the compiler from noticing that both are equal in that case.
[[gnu::always_inline]] inline bool speculate(bool guess, bool truth) {
  int result = guess, hidden = guess;
  asm("" : "+r"(hidden));
  if (hidden != static_cast<int>(truth)) [[unlikely]] {
    result = truth;
    asm volatile("" : "+r"(result));
  }
  return result != 0;
}

// The share of old evidence that remains after one round, if half remains after `half_life` rounds.
inline double retention_after(double half_life) { return exponential(-log_two / half_life); }

}  // namespace manul::MANUL_SIMD
