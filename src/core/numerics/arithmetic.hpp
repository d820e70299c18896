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

// The natural logarithm of a positive normal number, to about 1e-15: with x = 2^k m and m near 1, the series of
// log m = 2 artanh((m - 1) / (m + 1)).
inline double logarithm(double x) {
  const std::uint64_t all = bits(x);
  auto k = static_cast<std::int64_t>(all >> 52) - 1023;
  double m = __builtin_bit_cast(double, (all & 0xfffffffffffffULL) | 0x3ff0000000000000ULL);
  if (m > 1.4142135623730951) m *= 0.5, k += 1;
  const double s = (m - 1.0) / (m + 1.0), square = s * s;
  double sum = 0.0;
  for (int odd = 21; odd >= 1; odd -= 2) sum = sum * square + 1.0 / odd;
  return static_cast<double>(k) * log_two + 2.0 * s * sum;
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
