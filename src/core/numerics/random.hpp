// Philox4x64-10 (Salmon et al., 2011): random numbers as a pure function of (seed, decision).
//
// The same generator as numpy.random.Philox(key=seed, counter=decision), so NumPy can repeat any decision.
#pragma once

#include <cstdint>

namespace manul {

struct Draws {
  double first;
  double second;
};

namespace philox {

struct Product {
  std::uint64_t high;
  std::uint64_t low;
};

static inline Product multiply(std::uint64_t a, std::uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return {static_cast<std::uint64_t>(product >> 64), static_cast<std::uint64_t>(product)};
}

static inline double unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1.0p-53; }

}  // namespace philox

// Two uniform numbers in [0, 1) for one decision; `stream` separates other uses of the same seed.
static inline Draws draw(std::uint64_t seed, std::uint64_t decision, std::uint64_t stream = 0) {
  std::uint64_t a = decision + 1, b = stream, c = 0, d = 0;
  std::uint64_t key0 = seed, key1 = 0;  // the constants are from the paper
  for (int round = 0; round < 10; ++round) {
    const auto left = philox::multiply(0xD2E7470EE14C6C93ULL, a);
    const auto right = philox::multiply(0xCA5A826395121157ULL, c);
    a = right.high ^ b ^ key0;
    b = right.low;
    c = left.high ^ d ^ key1;
    d = left.low;
    key0 += 0x9E3779B97F4A7C15ULL;
    key1 += 0xBB67AE8584CAA73BULL;
  }
  return {philox::unit(a), philox::unit(b)};
}

// Approximately standard normal: the sum of twelve uniform numbers.
static inline float normal(std::uint64_t seed, std::uint64_t& next, std::uint64_t stream) {
  double total = -6.0;
  for (int i = 0; i < 6; ++i) {
    const Draws draws = draw(seed, next++, stream);
    total += draws.first + draws.second;
  }
  return static_cast<float>(total);
}

}  // namespace manul
