// The nodes of a tree as linear classifiers with a common direction.
//
//   f_v(x) = w_v.x + w_0.x + s (m_v - 1/2)        node v sends x right if f_v(x) >= 0
//
//   w_v  the node's own weights       w_0, s  shared by all nodes       m_v  where v splits the range, in [0, 1]
//
// If the best action is linear in the context, all nodes need the same direction with different thresholds, which w_0
// and s represent. Nodes are numbered from 1 at the root, so block 0 is free for w_0.
#pragma once

#include "contexts/weight_tables.hpp"
#include "numerics/arithmetic.hpp"

namespace manul::MANUL_SIMD {

using Node = std::uint32_t;

template <class Table>
class SharedNodes {
 public:
  template <class Shape>
  SharedNodes(Shape shape, std::size_t nodes) : weights_(shape, nodes), squares_(shape, nodes), slope_(2) {
    slope_[0] = untrained_slope;
  }

  // Computes the common part of all nodes once per context; the values must stay in place.
  void look(const Input& input) {
    x_ = input;
    weights_.look(x_), squares_.look(x_);
    rate_ = rate / __builtin_sqrt(static_cast<double>(x_.size));
    common_ = dot(weights_.read(0), x_.values, x_.size);
  }

  double margin(Node node) {
    return dot(weights_.read(node), x_.values, x_.size) + common_ + slope_.data()[0] * place(node);
  }

  // Trains a node: one step of AdaGrad on the hinge loss W max(0, 1 - y f_v(x)), where y is the cheaper side and W the
  // difference of the costs. Returns whether the node then sends the context right.
  bool learn(Node node, double cost_left, double cost_right) {
    const double before = margin(node), weight = cost_left - cost_right;
    if (weight * before >= absolute(weight)) return before >= 0.0;
    const double own = move(node, weight), shared = move(0, weight);
    common_ += shared;
    return speculate(before >= 0.0, before + own + shared + tilt(weight, place(node)) >= 0.0);
  }

  float weight(Node block, std::uint32_t feature) const { return weights_.at(block, feature); }

  Buffer<float>& weights() { return weights_.all(); }
  Buffer<float>& squares() { return squares_.all(); }
  Buffer<double>& slope() { return slope_; }

 private:
  // Chosen by experiment (docs/ablation-cats.md): the first step of a weight is at most rate / sqrt(first_square).
  static constexpr double first_square = 0.01, rate = 2.5;
  static constexpr double untrained_slope = -1e-3;  // an untrained tree chooses the middle of the range

  // m_v - 1/2. Node 2^l + j is the j-th of its level and splits the range at (j + 1/2) / 2^l.
  static double place(Node node) { return (node + 0.5) * power_of_two(__builtin_clz(node) - 31) - 1.5; }

  // One step of AdaGrad in the weights of a block; returns the change of the margin.
  [[gnu::flatten]] double move(Node block, double weight) {
    float *weights = weights_.open(block), *squares = squares_.open(block);
    const auto gradient = static_cast<float>(weight), step = static_cast<float>(rate_ * weight);
    Total moved;
    groups(x_.size, [&]<class V>(V, std::size_t i) {
      const V x = load<V>(x_.values + i), slope = gradient * x,
              square = x_.retention * load<V>(squares + i) + slope * slope;
      const V change = step * x / root(square + static_cast<float>(first_square));
      store(squares + i, square);
      store(weights + i, load<V>(weights + i) + change);
      moved.add(x * change);
    });
    weights_.close(block), squares_.close(block);
    return moved.value();
  }

  // The same step for s.
  double tilt(double weight, double m) {
    slope_[1] = x_.retention * slope_[1] + (weight * m) * (weight * m);
    const double change = rate_ * weight * m / __builtin_sqrt(slope_[1] + first_square);
    slope_[0] += change;
    return m * change;
  }

  Table weights_, squares_;
  Buffer<double> slope_;
  Input x_ = {};
  double rate_ = 0.0;  // a wider context moves the margin farther per step
  double common_ = 0.0;
};

}  // namespace manul::MANUL_SIMD
