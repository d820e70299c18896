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
  std::int64_t route(const Context& context, Leaves reachable) { return route(context, reachable, reachable); }

  // The same as long as it can end in `wanted`; some other leaf where it does not.
  std::int64_t route(const Context& context, Leaves reachable, Leaves wanted) {
    const Node lowest = leaf(wanted.first), highest = leaf(wanted.last);
    Node node = 1;
    for (std::uint32_t below = geometry_.depth; below-- > 0;) {
      if (node < lowest >> (below + 1) || node > highest >> (below + 1)) return index(node << (below + 1));
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

// The paper's training: the leaves of a window cost `cost`, all others nothing. Only nodes above the two ends of the
// window can have children of different cost, so two climbs find them all.
//
// Costs travel upwards as "pays or not" and are tested by branches, not copied as numbers: the processor then predicts
// what a subtree pays and works on several levels at once, instead of waiting for each to finish.
template <class Learner>
class Climb {
 public:
  Climb(Tree<Learner>& tree, const Context& context, Leaves reachable, float cost)
      : tree_(tree), context_(context), cost_(cost), lowest_(tree.leaf(reachable.first)),
        highest_(tree.leaf(reachable.last)) {}

  // `learned` is told of each update: (node, cost left, cost right).
  template <class Learned>
  void train(Leaves window, Learned&& learned) {
    if (window.last < tree_.index(lowest_) || window.first > tree_.index(highest_) || cost_ == 0.0f) return;
    alpha_ = window.first > tree_.index(lowest_) ? tree_.leaf(window.first) : lowest_;
    beta_ = window.last < tree_.index(highest_) ? tree_.leaf(window.last) : highest_;
    while (alpha_ > 1) {
      const Node above_alpha = alpha_ / 2, above_beta = beta_ / 2;
      const bool next_alpha = visit(above_alpha, learned);
      const bool next_beta = above_alpha == above_beta ? next_alpha : visit(above_beta, learned);
      alpha_ = above_alpha, beta_ = above_beta;
      alpha_pays_ = next_alpha, beta_pays_ = next_beta;
      lowest_ /= 2, highest_ /= 2;
      if (alpha_ == beta_ && !alpha_pays_) return;  // nothing below this node pays, so nothing above it differs
    }
  }

 private:
  // Return_cost: whether what the subtree below a node of this level picks has the cost.
  bool pays(Node node) const {
    if (node < alpha_ || node > beta_) return false;
    if (node == alpha_) return alpha_pays_;
    return node == beta_ ? beta_pays_ : true;
  }

  // Trains a node whose sides differ in cost; whether the side it then picks pays. A forced node learns nothing and
  // passes on the side it is forced to.
  template <class Learned>
  bool visit(Node node, Learned& learned) {
    const Node left = 2 * node, right = left + 1;
    if (left < lowest_) return pays(right);
    if (right > highest_) return pays(left);
    if (pays(left)) {
      if (pays(right)) return true;
      learned(node, cost_, 0.0f);
      return !(Learner::learn(tree_.block(node), context_, cost_, 0.0f) > 0.0f);
    }
    if (!pays(right)) return false;
    learned(node, 0.0f, cost_);
    return Learner::learn(tree_.block(node), context_, 0.0f, cost_) > 0.0f;
  }

  Tree<Learner>& tree_;
  const Context& context_;
  float cost_;
  Node lowest_, highest_, alpha_ = 0, beta_ = 0;
  bool alpha_pays_ = true, beta_pays_ = true;
};

// An agent that consists of such a tree and of what its nodes see of a context.
template <class Learner, class Base>
class Trained : public Base {
 public:
  Trained(std::size_t width, const Geometry& geometry) : context_(width, false), tree_(geometry, context_.stride()) {}

  void forget(double half_life) override { context_.forget(half_life); }

  std::size_t arrays() const override { return 2; }

  Array array(std::size_t index) override {
    const Array all[] = {
        {"nodes", "f4", tree_.nodes().data(), tree_.nodes().size()},
        {"largest", "f4", context_.largest_array().data(), context_.largest_array().size()},
    };
    return all[index];
  }

 protected:
  Context context_;
  Tree<Learner> tree_;
};

}  // namespace manul::MANUL_SIMD
