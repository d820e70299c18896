// AdaGrad on the label -1 (left is cheaper) or +1, weighted by the difference of the costs.
//
// Importance weights reach 1 / (2 h epsilon), so a plain gradient step overshoots. Both losses below move the
// prediction like infinitely many small steps: squared by the closed form of Karampatziakis and Langford (2011),
// logistic by an implicit step.
#pragma once

#include "contexts/dense_context.hpp"

namespace manul::MANUL_SIMD {

struct Squared {
  static double gradient(double margin, double label, double weight) { return weight * (margin - label); }

  // The change of the margin, given the change by a unit step in the direction of the gradient.
  static double move(double margin, double label, double weight, double reach) {
    return (label - margin) * (1.0 - exponential(-weight * reach));
  }
};

struct Logistic {
  static double gradient(double margin, double label, double weight) {
    return -label * weight / (1.0 + exponential(label * margin));
  }

  // Solves delta = weight reach / (1 + e^(label margin + delta)) by Newton's method, safeguarded by its bracket.
  static double move(double margin, double label, double weight, double reach) {
    const double most = weight * reach, agreement = label * margin;
    double low = 0.0, high = most, delta = most / (1.0 + exponential(agreement));
    for (int i = 0; i < 4; ++i) {
      const double tail = 1.0 / (1.0 + exponential(agreement + delta));
      const double excess = delta - most * tail;
      (excess > 0.0 ? high : low) = delta;
      const double next = delta - excess / (1.0 + most * tail * (1.0 - tail));
      delta = next > low && next < high ? next : 0.5 * (low + high);
    }
    return label * delta;
  }
};

template <class Loss>
class AdaGrad {
 public:
  static constexpr std::size_t arrays = 2;

  static float margin(const float* node, const DenseContext& context) {
    return dot(node + lanes, context.row(), context.stride());
  }

  static bool learn(float* node, const DenseContext& context, float cost_left, float cost_right) {
    const float before = margin(node, context);
    const double label = cost_left > cost_right ? 1.0 : -1.0;
    const double weight = label * (static_cast<double>(cost_left) - cost_right);
    const auto gradient = static_cast<float>(Loss::gradient(before, label, weight));
    float *weights = node + lanes, *squares = weights + context.stride();
    const float norm = accumulate(squares, context, gradient);
    const double moved = Loss::move(before, label, weight, rate * norm);
    const auto step = static_cast<float>(moved / norm);
    groups(context.stride(), [&]<class V>(V, std::size_t i) {
      store(weights + i, load<V>(weights + i) + step * load<V>(context.row() + i) / spread(load<V>(squares + i)));
    });
    return speculate(before > 0.0f, before + static_cast<float>(moved) > 0.0f);
  }

 private:
  static constexpr double rate = 0.5;
  static constexpr float first_square = 0.01f;  // bounds the first step

  template <class V>
  static V spread(V squares) {
    return root(squares + first_square);
  }

  // Adds the squared gradient to `squares`; returns the squared length of the context in the metric they define.
  static float accumulate(float* squares, const DenseContext& context, float gradient) {
    Total total;
    groups(context.stride(), [&]<class V>(V, std::size_t i) {
      const V x = load<V>(context.row() + i), slope = gradient * x;
      const V square = context.retention() * load<V>(squares + i) + slope * slope;
      store(squares + i, square);
      total.add(x * x / spread(square));
    });
    return total.value();
  }
};

}  // namespace manul::MANUL_SIMD
