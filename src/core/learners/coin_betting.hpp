// Coin betting (Orabona and Pal, 2016): least squares without a learning rate.
//
// Each coordinate bets a fraction of its wealth on the next gradient:
//   w = (1 + wealth) theta / (L M (L M + G)),   theta = -sum of gradients, G = sum of their magnitudes,
// with L the largest gradient of the node's prediction and M the largest magnitude of the feature so far.
#pragma once

#include "contexts/dense_context.hpp"

namespace manul::MANUL_SIMD {

class CoinRegressor {
 public:
  static constexpr std::size_t arrays = 4;

  static float predict(const float* weights, const DenseContext& context) {
    return dot(weights, context.row(), context.stride());
  }

  // `limit` is L, which the node stores; theta, G and wealth follow `weights`. Returns the new prediction.
  [[gnu::flatten]] static float step(float& limit, float* weights, const DenseContext& context, float gradient) {
    const float size = gradient < 0.0f ? -gradient : gradient;
    if (size > limit) limit = size;
    const std::size_t stride = context.stride();
    const float retention = context.retention(), reach = limit, *row = context.row(), *largest = context.largest();
    float *sums = weights + stride, *totals = sums + stride, *wealths = totals + stride;
    Total prediction;
    groups(stride, [&]<class V>(V, std::size_t i) {
      const V x = load<V>(row + i), slope = gradient * x;
      const V scale = reach * load<V>(largest + i);
      const V before = bet(load<V>(sums + i), load<V>(totals + i), load<V>(wealths + i), scale);
      const V theta = retention * load<V>(sums + i) - slope;
      const V total = retention * load<V>(totals + i) + magnitude(slope);
      const V wealth = retention * load<V>(wealths + i) - slope * before;
      const V weight = bet(theta, total, wealth, scale);
      store(sums + i, theta);
      store(totals + i, total);
      store(wealths + i, wealth);
      store(weights + i, weight);
      prediction.add(weight * x);
    });
    return prediction.value();
  }

 private:
  template <class V>
  static V bet(V theta, V total, V wealth, V scale) {
    constexpr float tiny = 1e-30f;  // the scale is 0 before the first gradient
    return (1.0f + wealth) / (scale * (scale + total) + tiny) * theta;
  }
};

// The paper's node: one regressor per side predicts its cost. The smaller prediction wins; ties go left.
class CoinCosts {
 public:
  static constexpr std::size_t arrays = 2 * CoinRegressor::arrays;

  static float margin(const float* node, const DenseContext& context) {
    return CoinRegressor::predict(left(node, context), context) - CoinRegressor::predict(right(node, context), context);
  }

  static bool learn(float* node, const DenseContext& context, float cost_left, float cost_right) {
    float *to_left = left(node, context), *to_right = right(node, context);
    const float before_left = CoinRegressor::predict(to_left, context);
    const float before_right = CoinRegressor::predict(to_right, context);
    const float after_left = CoinRegressor::step(node[0], to_left, context, before_left - cost_left);
    const float after_right = CoinRegressor::step(node[1], to_right, context, before_right - cost_right);
    return speculate(before_left > before_right, after_left > after_right);
  }

 private:
  template <class T>
  static T* left(T* node, const DenseContext&) {
    return node + lanes;
  }
  template <class T>
  static T* right(T* node, const DenseContext& context) {
    return node + lanes + CoinRegressor::arrays * context.stride();
  }
};

// One regressor of the label -1 (left is cheaper) or +1, weighted by the difference of the costs.
class CoinMargin {
 public:
  static constexpr std::size_t arrays = CoinRegressor::arrays;

  static float margin(const float* node, const DenseContext& context) {
    return CoinRegressor::predict(node + lanes, context);
  }

  static bool learn(float* node, const DenseContext& context, float cost_left, float cost_right) {
    const float label = cost_left > cost_right ? 1.0f : -1.0f;
    const float weight = label * (cost_left - cost_right), before = margin(node, context);
    const float after = CoinRegressor::step(node[0], node + lanes, context, weight * (before - label));
    return speculate(before > 0.0f, after > 0.0f);
  }
};

}  // namespace manul::MANUL_SIMD
