// A complete binary tree whose nodes send a context left or right, and the paper's way of training it.
//
//   K = 2^D leaves     nodes are numbered from 1 at the root; the children of v are 2v and 2v + 1, leaf i is K + i
//
// Algorithm 4 (get_action) is `route`, Algorithms 10 and 11 (Online_train_tree, Return_cost) are `Climb`.
#pragma once

#include "geometry.hpp"
#include "context.hpp"

namespace manul::MANUL_SIMD {

using Node = std::uint32_t;

template <class Learner>
class Tree {
 public:
  Tree(const Geometry& geometry, std::size_t stride)
      : geometry_(geometry), block_((lanes + Learner::arrays * stride + 15) / 16 * 16),
        nodes_(block_ * static_cast<std::size_t>(geometry.leaves() - 1)) {}

  const Geometry& geometry() const { return geometry_; }
  Buffer<float>& nodes() { return nodes_; }
  float* block(Node node) { return nodes_.data() + block_ * (node - 1); }

  Node leaf(std::int64_t index) const { return static_cast<Node>(geometry_.leaves() + index); }
  std::int64_t index(Node leaf) const { return static_cast<std::int64_t>(leaf) - geometry_.leaves(); }

  // From the root to a reachable leaf. A node with one reachable side is forced to that side.
  std::int64_t route(const Context& context, Leaves reachable) {
    Node node = 1;
    for (std::uint32_t below = geometry_.depth; below-- > 0;) {
      const Node first = leaf(reachable.first) >> below, last = leaf(reachable.last) >> below;
      const Node left = 2 * node, right = left + 1;
      const bool goes_right = left < first || (right <= last && Learner::margin(block(node), context) > 0.0f);
      node = goes_right ? right : left;
    }
    return index(node);
  }

 private:
  Geometry geometry_;
  std::size_t block_;
  Buffer<float> nodes_;
};

// The paper's training: the leaves `window` cost `cost`, all others nothing. Only nodes above the two ends of the
// window can have children of different cost, so two climbs find them all.
template <class Learner>
class Climb {
 public:
  Climb(Tree<Learner>& tree, const Context& context, Leaves reachable, float cost)
      : tree_(tree), context_(context), cost_(cost), lowest_(tree.leaf(reachable.first)),
        highest_(tree.leaf(reachable.last)) {}

  // `learned` is told of each update: (node, cost left, cost right).
  template <class Learned>
  void train(Leaves window, Learned&& learned) {
    alpha_ = larger_node(tree_.leaf(0) + window.first, lowest_);
    beta_ = window.last < tree_.index(highest_) ? tree_.leaf(window.last) : highest_;
    if (window.last < tree_.index(lowest_) || window.first > tree_.index(highest_)) return;
    cost_alpha_ = cost_beta_ = cost_;
    while (alpha_ > 1) {
      const Node above_alpha = alpha_ / 2, above_beta = beta_ / 2;
      const float next_alpha = visit(above_alpha, learned);
      const float next_beta = above_alpha == above_beta ? next_alpha : visit(above_beta, learned);
      alpha_ = above_alpha, beta_ = above_beta;
      cost_alpha_ = next_alpha, cost_beta_ = next_beta;
      lowest_ /= 2, highest_ /= 2;
    }
  }

 private:
  static Node larger_node(std::int64_t a, Node b) { return a > static_cast<std::int64_t>(b) ? static_cast<Node>(a) : b; }

  // Return_cost: what the subtree below a node of this level would cost.
  float cost_of(Node node) const {
    if (node < alpha_ || node > beta_) return 0.0f;
    if (node == alpha_) return cost_alpha_;
    return node == beta_ ? cost_beta_ : cost_;
  }

  // Trains a node on the costs of its two sides; the cost of the side it then picks. A forced node learns nothing and
  // passes on the cost of the side it is forced to.
  template <class Learned>
  float visit(Node node, Learned& learned) {
    const Node left = 2 * node, right = left + 1;
    if (left < lowest_) return cost_of(right);
    if (right > highest_) return cost_of(left);
    const float cost_left = cost_of(left), cost_right = cost_of(right);
    if (cost_left == cost_right) return cost_left;
    learned(node, cost_left, cost_right);
    return Learner::learn(tree_.block(node), context_, cost_left, cost_right) > 0.0f ? cost_right : cost_left;
  }

  Tree<Learner>& tree_;
  const Context& context_;
  float cost_, cost_alpha_ = 0.0f, cost_beta_ = 0.0f;
  Node lowest_, highest_, alpha_ = 0, beta_ = 0;
};

}  // namespace manul::MANUL_SIMD
