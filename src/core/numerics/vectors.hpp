// Vectors of floats with the same order of additions on every machine.
//
// This header is compiled once per instruction set, each time into its own namespace MANUL_SIMD. Every array is
// padded to a multiple of eight lanes. Sums use two accumulators, for even and odd groups of eight: one register on a
// 512-bit machine, four on a 128-bit machine, with the same bits. Nothing here may be contracted into fused
// multiply-adds (-ffp-contract=off), because the baseline has none.
#pragma once

#include <cstddef>
#include <cstdint>

namespace manul::MANUL_SIMD {

using Four = float __attribute__((vector_size(16)));
using Eight = float __attribute__((vector_size(32)));
using Sixteen = float __attribute__((vector_size(64)));

constexpr std::size_t lanes = 8;

// As wide as the machine allows; all operations are lane by lane, so the width does not change results.
#if defined(__AVX512F__)
using Lanes = Sixteen;
#elif defined(__AVX__)
using Lanes = Eight;
#else
using Lanes = Four;
#endif
constexpr std::size_t wide = sizeof(Lanes) / sizeof(float);

template <class Vector>
Vector load(const float* from) {
  Vector value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

template <class Vector>
void store(float* to, Vector value) {
  __builtin_memcpy(to, &value, sizeof value);
}

// ((v0 + v4) + (v2 + v6)) + ((v1 + v5) + (v3 + v7))
inline float sum(Eight v) {
  const Four halves = __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
  const Four quarters = halves + __builtin_shufflevector(halves, halves, 2, 3, 2, 3);
  return quarters[0] + quarters[1];
}

// Calls `each(Sixteen{}, i)` or `each(Eight{}, i)` for the groups of an array, in a fixed order.
template <class Each>
[[gnu::always_inline]] inline void groups(std::size_t size, Each&& each) {
  std::size_t i = 0;
#ifdef __AVX512F__
  for (; i + 16 <= size; i += 16) each(Sixteen{}, i);
#endif
  for (; i < size; i += 8) each(Eight{}, i);
}

// A sum over groups: even and odd groups of eight separately, then both together.
#ifdef __AVX512F__
class Total {
 public:
  void add(Sixteen v) { both_ += v; }
  void add(Eight v) { tail_ = v; }

  float value() const {
    const Eight even = __builtin_shufflevector(both_, both_, 0, 1, 2, 3, 4, 5, 6, 7);
    const Eight odd = __builtin_shufflevector(both_, both_, 8, 9, 10, 11, 12, 13, 14, 15);
    return sum((even + tail_) + odd);
  }

 private:
  Sixteen both_ = {};
  Eight tail_ = {};
};
#else  // on narrower machines compilers pass a vector of sixteen through memory
class Total {
 public:
  void add(Eight v) {
    const Eight added = next_ + v;
    next_ = other_;
    other_ = added;
  }

  float value() const { return sum(next_ + other_); }

 private:
  Eight next_ = {}, other_ = {};
};
#endif

inline float dot(const float* left, const float* right, std::size_t size) {
  Total total;
  groups(size, [&]<class V>(V, std::size_t i) { total.add(load<V>(left + i) * load<V>(right + i)); });
  return total.value();
}

template <class Vector>
Vector magnitude(Vector v) {
  using Bits = decltype(v < v);
  return reinterpret_cast<Vector>(reinterpret_cast<Bits>(v) & 0x7fffffff);
}

template <class Vector>
Vector largest(Vector a, Vector b) {
  return a > b ? a : b;
}

template <class Vector>
Vector root(Vector v) {
  for (std::size_t i = 0; i < sizeof v / sizeof(float); ++i) v[i] = __builtin_sqrtf(v[i]);
  return v;
}

// 1 / sqrt(v) of positive normal numbers to about 5e-6, several times faster than a root and a division: an estimate
// from the exponent, with Lomont's constant 0x5f375a86, and two steps of Newton's method.
template <class Vector>
Vector inverse_root(Vector v) {
  using Bits = decltype(v < v);
  Vector guess =
      reinterpret_cast<Vector>(0x5f375a86 - (reinterpret_cast<Bits>(v) >> 1 & 0x3fffffff));  // without the sign
  for (int i = 0; i < 2; ++i) guess *= 1.5f - 0.5f * v * guess * guess;
  return guess;
}

// e^x of numbers from -80 to 80 to about 1e-7: 2^k times the Taylor polynomial of the remainder.
template <class Vector>
Vector exponential(Vector x) {
  using Bits = decltype(x < x);
  constexpr float rounding = 0x1.8p23f;  // added, it leaves the nearest whole number in the last bits
  const Vector shifted = x * 1.44269504f + rounding, k = shifted - rounding;
  const Vector r = x - k * 0.693359375f + k * 2.12194440e-4f;  // the logarithm of 2 in two parts
  constexpr float inverse_factorials[] = {1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f};
  Vector sum = Vector{} + 1.0f / 720;
  for (const float coefficient : inverse_factorials) sum = sum * r + coefficient;
  return sum * reinterpret_cast<Vector>((reinterpret_cast<Bits>(shifted) + 127) << 23);
}

}  // namespace manul::MANUL_SIMD
