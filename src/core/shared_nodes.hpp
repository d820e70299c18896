// The nodes of a tree as linear classifiers that have a direction in common.
//
//   f_v(x) = w_v.x + w_0.x + s (m_v - 1/2)        node v sends x right if f_v(x) >= 0
//
//   w_v  the node's own weights       w_0, s  shared by all nodes       m_v  where v splits the range, in [0, 1]
//
// On a problem with one linear optimum every node needs the same direction and only another threshold: w_0 and s are
// just that. Nodes are numbered from 1 at the root, so block 0 is free to hold w_0.
#pragma once

#include "context.hpp"

namespace manul::MANUL_SIMD {

using Node = std::uint32_t;

class SharedNodes {
 public:
  SharedNodes(std::size_t nodes, std::size_t stride)
      : stride_(stride), rate_(2.5 / __builtin_sqrt(static_cast<double>(stride))), weights_(nodes * stride),
        squares_(nodes * stride), slope_(2) {
    slope_[0] = untrained_slope;
  }

  // What all nodes share is computed once per context; the row must stay in place.
  void look(const float* row) {
    row_ = row;
    common_ = dot(weights_.data(), row_, stride_);
  }

  double margin(Node node) const {
    return dot(weights_.data() + stride_ * node, row_, stride_) + common_ + slope_.data()[0] * place(node);
  }

  // Teaches a node which side is cheaper: one step of AdaGrad on the hinge loss W max(0, 1 - y f_v(x)), where y is the
  // cheaper side and W the difference of the costs. Returns the margin after that.
  double learn(Node node, double cost_left, double cost_right) {
    const double before = margin(node), weight = cost_left - cost_right;
    const double label = weight > 0.0 ? 1.0 : -1.0;
    if (weight == 0.0 || label * before >= 1.0) return before;
    const double own = move(node, weight), shared = move(0, weight);
    common_ += shared;
    return before + own + shared + tilt(weight, place(node));
  }

  Buffer<float>& weights() { return weights_; }
  Buffer<float>& squares() { return squares_; }
  Buffer<double>& slope() { return slope_; }

 private:
  static constexpr double first_square = 0.01;
  static constexpr double untrained_slope = -1e-3;  // an untrained tree plays the middle

  // m_v - 1/2. Node 2^l + j is the j-th of its level and splits the range at (j + 1/2) / 2^l.
  static double place(Node node) {
    const Node width = Node{1} << (31 - __builtin_clz(node));
    return (node - width + 0.5) / width - 0.5;
  }

  // One step of AdaGrad in a block's weights; how far that moves the margin.
  double move(Node block, double weight) {
    float *weights = weights_.data() + stride_ * block, *squares = squares_.data() + stride_ * block;
    const auto gradient = static_cast<float>(weight), step = static_cast<float>(rate_ * weight);
    Total moved;
    groups(stride_, [&]<class V>(V, std::size_t i) {
      const V x = load<V>(row_ + i), slope = gradient * x, square = load<V>(squares + i) + slope * slope;
      const V change = step * x / root(square + static_cast<float>(first_square));
      store(squares + i, square);
      store(weights + i, load<V>(weights + i) + change);
      moved.add(x * change);
    });
    return moved.value();
  }

  // The same for s.
  double tilt(double weight, double m) {
    slope_[1] += (weight * m) * (weight * m);
    const double change = rate_ * weight * m / __builtin_sqrt(slope_[1] + first_square);
    slope_[0] += change;
    return m * change;
  }

  std::size_t stride_;
  double rate_;  // a wider context moves the margin farther per step
  Buffer<float> weights_, squares_;
  Buffer<double> slope_;
  const float* row_ = nullptr;
  double common_ = 0.0;
};

}  // namespace manul::MANUL_SIMD
