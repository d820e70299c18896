// The optimiser of the weights of the critic.
#pragma once

#include "numerics/vectors.hpp"

namespace manul::MANUL_SIMD {

// Adam (Kingma and Ba, 2015); the rate includes the bias correction. The tiny constants keep decaying numbers out of
// the subnormal range, in which arithmetic is a hundred times slower.
inline void adam(float* weights, float* means, float* squares, Lanes slope, float rate) {
  constexpr float tiny = 1e-30f;
  const Lanes mean = 0.9f * load<Lanes>(means) + (0.1f * slope + tiny);
  const Lanes square = 0.999f * load<Lanes>(squares) + (0.001f * (slope * slope) + tiny);
  store(means, mean);
  store(squares, square);
  store(weights, load<Lanes>(weights) - rate * mean * inverse_root(square + 1e-16f));
}

}  // namespace manul::MANUL_SIMD
