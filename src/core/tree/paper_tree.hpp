// The tree of Cats.paper and DiscreteTree: nodes send a context left or right, trained by the rule of the paper. Cats
// has its own tree, in models/cats.hpp and tree/shared_nodes.hpp.
//
//   K = 2^D leaves     nodes are numbered from 1 at the root; the children of v are 2v and 2v + 1, leaf i is K + i
//
// Algorithm 4 (get_action) is `route`, Algorithms 10 and 11 (Online_train_tree, Return_cost) are `Climb`.
#pragma once

#include "contexts/dense_context.hpp"
#include "tree/geometry.hpp"

namespace manul::MANUL_SIMD {

using Node = std::uint32_t;

// A learner is a class of static functions of one node's block: `margin` is positive if the node sends the context
// right, and `learn` updates it with the costs of both sides and returns whether it then sends the context right.
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

  // Descends from the root to a reachable leaf. A node with one reachable side is forced to that side.
  std::int64_t route(const DenseContext& context, Leaves reachable) { return route(context, reachable, reachable); }

  // The same, but stops early with any other leaf if it cannot end in `wanted`.
  std::int64_t route(const DenseContext& context, Leaves reachable, Leaves wanted) {
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

// The paper's training rule: the leaves of a window have the cost `cost`, all others 0.
//
// Only nodes above the two ends of the window can have children of different cost. The leaf that the subtree at an end
// selects either has the cost (the end "pays") or not; the leaf of its sibling has the cost if the sibling is inside
// the window. So an end that pays trains the next node whose other side is outside the window, and an end that does not
// trains the next node whose other side is inside. Whether a side is inside is a bit of the end's number at each level,
// so the climb can jump from node to node. Above the point where the ends meet, the other side is always outside.
template <class Learner>
class Climb {
 public:
  Climb(Tree<Learner>& tree, const DenseContext& context, Leaves reachable, float cost)
      : tree_(tree), context_(context), cost_(cost), lowest_(tree.leaf(reachable.first)),
        highest_(tree.leaf(reachable.last)) {}

  // Calls `observe(node, cost left, cost right)` for each update.
  template <class Observe>
  void train(Leaves window, Observe&& observe) {
    if (window.first < tree_.index(lowest_)) window.first = tree_.index(lowest_);
    if (window.last > tree_.index(highest_)) window.last = tree_.index(highest_);
    if (window.first > window.last || cost_ == 0.0f) return;
    const Node alpha = tree_.leaf(window.first), beta = tree_.leaf(window.last);
    const Levels apart = differing(alpha, beta), below = apart >> 1;  // the ends are siblings at the top of `apart`
    // A node with one reachable side is forced: it learns nothing and passes up the leaf of that side.
    const Levels left_reachable = differing(alpha, lowest_), right_reachable = differing(beta, highest_);
    const bool left = climb<true>(alpha, alpha & left_reachable & below, ~alpha & below, observe);
    const bool right = climb<false>(beta, ~beta & right_reachable & below, beta & below, observe);
    bool pays = left == right ? left : update(alpha >> __builtin_ctz(~apart), right, observe);
    Levels above = ((alpha & left_reachable) | (~alpha & right_reachable)) & ~apart;
    for (; pays && above != 0; above &= above - 1) {
      const int level = __builtin_ctz(above);
      pays = update(alpha >> level >> 1, alpha >> level & 1, observe);
    }
  }

 private:
  using Levels = std::uint32_t;  // a set of levels as bits; level 0 is that of the leaves

  // The levels at which two leaves have different ancestors.
  static Levels differing(Node a, Node b) { return a == b ? 0 : ~Levels{0} >> __builtin_clz(a ^ b); }

  // Climbs from one end of the window to where both meet; returns whether the selected leaf pays. The side that pays is
  // the right one at all nodes above the left end, and the left one above the right end.
  template <bool right_pays, class Observe>
  [[gnu::always_inline]] bool climb(Node end, Levels while_paying, Levels while_not, Observe& observe) {
    bool pays = true;
    Levels ahead = ~Levels{0};
    while (const Levels levels = (pays ? while_paying : while_not) & ahead) {
      const int level = __builtin_ctz(levels);
      pays = update<right_pays>(end >> level >> 1, observe);
      ahead = ~Levels{1} << level;
    }
    return pays;
  }

  // Trains a node of which one side pays; returns whether the side that it then selects pays.
  template <bool right_pays, class Observe>
  [[gnu::always_inline]] bool update(Node node, Observe& observe) {
    const float left = right_pays ? 0.0f : cost_, right = right_pays ? cost_ : 0.0f;
    observe(node, left, right);
    return Learner::learn(tree_.block(node), context_, left, right) == right_pays;
  }

  template <class Observe>
  [[gnu::always_inline]] bool update(Node node, bool right_pays, Observe& observe) {
    return right_pays ? update<true>(node, observe) : update<false>(node, observe);
  }

  Tree<Learner>& tree_;
  const DenseContext& context_;
  float cost_;
  Node lowest_, highest_;
};

// A model with such a tree and the input row of its nodes.
template <class Learner, class Base>
class TreeModel : public Base {
 public:
  TreeModel(std::size_t width, const Geometry& geometry) : context_(width, false), tree_(geometry, context_.stride()) {}

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
  DenseContext context_;
  Tree<Learner> tree_;
};

}  // namespace manul::MANUL_SIMD
