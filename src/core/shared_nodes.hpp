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
        squares_(nodes * stride), direction_(2 * stride), tilt_(2) {
    tilt_[0] = untrained_tilt;
  }

  // What all nodes share is computed once per context; the row must stay in place.
  void look(const float* row) {
    row_ = row;
    common_ = dot(weights_.data(), row_, stride_);
  }

  double margin(Node node) const {
    return dot(weights_.data() + stride_ * node, row_, stride_) + common_ + tilt_.data()[0] * place(node);
  }

  // Teaches a node which side is cheaper; the margin after that. The loss is the hinge, weighted by the difference of
  // the costs; the step is implicit (passive-aggressive: at most up to the margin 1) in the metric of AdaGrad.
  double learn(Node node, double cost_left, double cost_right) {
    const double before = margin(node), label = cost_left > cost_right ? 1.0 : -1.0;
    const double weight = label * (cost_left - cost_right), missing = 1.0 - label * before;
    if (weight == 0.0 || missing <= 0.0) return before;

    const double m = place(node);
    tilt_[1] += weight * weight * m * m;
    const double tilt_direction = m / __builtin_sqrt(tilt_[1] + first_square);
    float *own = direction_.data(), *shared = own + stride_;
    const double shared_reach = aim(shared, 0, weight);
    const double reach = aim(own, node, weight) + shared_reach + m * tilt_direction;
    const double moved = label * smaller(missing, rate_ * weight * reach), step = moved / reach;
    move(node, own, step);
    move(0, shared, step);
    tilt_[0] += step * tilt_direction;
    common_ += step * shared_reach;
    return before + moved;
  }

  Buffer<float>& weights() { return weights_; }
  Buffer<float>& squares() { return squares_; }
  Buffer<double>& tilt() { return tilt_; }

 private:
  static constexpr double first_square = 0.01;
  static constexpr double untrained_tilt = -1e-3;  // an untrained tree plays the middle

  // m_v - 1/2. Node 2^l + j is the j-th of its level and splits the range at (j + 1/2) / 2^l.
  static double place(Node node) {
    const Node width = Node{1} << (31 - __builtin_clz(node));
    return (node - width + 0.5) / width - 0.5;
  }

  // Takes the gradient weight * x into a block's sum of squares, and writes x in AdaGrad's metric to `direction`.
  // Returns how far one step in that direction moves the margin.
  float aim(float* direction, Node block, double weight) {
    float* squares = squares_.data() + stride_ * block;
    const auto gradient = static_cast<float>(weight);
    Total reach;
    groups(stride_, [&]<class V>(V, std::size_t i) {
      const V x = load<V>(row_ + i), slope = gradient * x, square = load<V>(squares + i) + slope * slope;
      const V scaled = x / root(square + static_cast<float>(first_square));
      store(squares + i, square);
      store(direction + i, scaled);
      reach.add(x * scaled);
    });
    return reach.value();
  }

  void move(Node block, const float* direction, double step) {
    float* weights = weights_.data() + stride_ * block;
    const auto length = static_cast<float>(step);
    groups(stride_, [&]<class V>(V, std::size_t i) {
      store(weights + i, load<V>(weights + i) + length * load<V>(direction + i));
    });
  }

  std::size_t stride_;
  double rate_;  // a wider context moves the margin farther per step
  Buffer<float> weights_, squares_, direction_;
  Buffer<double> tilt_;
  const float* row_ = nullptr;
  double common_ = 0.0;
};

}  // namespace manul::MANUL_SIMD
