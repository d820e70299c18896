// A regression tree over contexts and actions.
#pragma once

#include "critic/feature_bins.hpp"

namespace manul::MANUL_SIMD {

// Sums of losses and leaf values are whole multiples of this, so that they are exact in any order.
constexpr double fixed_point = 0x1p-20;
constexpr std::size_t most_leaves = 128, most_nodes = 2 * most_leaves - 1;

// Inner nodes send values up to the threshold to the left; the action, which is compared by its bin, is the last
// column. A leaf is its own left child and sends every value there, so walks need no test for leaves.
struct TreeNode {
  std::int32_t column;
  float threshold;
  std::int32_t left;   // the right child follows the left one
  std::int32_t value;  // of a leaf, in units of `fixed_point`

  static TreeNode leaf(std::size_t number, std::size_t width, std::int32_t value = 0) {
    return {static_cast<std::int32_t>(width), __builtin_inff(), static_cast<std::int32_t>(number), value};
  }
};

// Trees of the same width, one after the other.
class RegressionTrees {
 public:
  static constexpr std::size_t most_depth = 10;

  RegressionTrees(const TreeNode* nodes, std::size_t width) : nodes_(nodes), width_(static_cast<std::int32_t>(width)) {}

  // The leaves of a context and action in `count` trees; `row` is the context followed by the bin of the action.
  // Several trees are walked at once, because the steps of one wait for each other.
  void find_leaves(const float* row, std::size_t count, std::uint8_t* leaves) const {
    constexpr std::size_t together = 8;
    for (std::size_t first = 0; first < count; first += together) {
      const std::size_t size = count - first < together ? count - first : together;
      std::int32_t at[together] = {};
      for (std::size_t level = 0; level < most_depth; ++level)
        for (std::size_t t = 0; t < size; ++t) at[t] = child(node(first + t, at[t]), row);
      for (std::size_t t = 0; t < size; ++t) leaves[first + t] = static_cast<std::uint8_t>(at[t]);
    }
  }

  std::int32_t value(std::size_t tree, std::size_t leaf) const { return nodes_[tree * most_nodes + leaf].value; }

  // Adds a tree's values of all actions in a context: `steps` gets the differences from one bin to the next. The leaves
  // are visited in the order of their actions.
  void add_steps(std::size_t tree, const float* context, std::int32_t* steps) const {
    const TreeNode* nodes = nodes_ + tree * most_nodes;
    std::int32_t at = 0, waiting[most_nodes], before = 0;
    std::size_t first = 0, last = action_bins, ends[most_nodes], count = 0;
    for (;;) {
      for (; nodes[at].left != at;) {
        const TreeNode& node = nodes[at];
        if (node.column != width_) {
          at = child(node, context);
        } else {
          waiting[count] = node.left + 1, ends[count++] = last;
          at = node.left, last = static_cast<std::size_t>(node.threshold) + 1;
        }
      }
      steps[first] += nodes[at].value - before;
      before = nodes[at].value;
      if (count == 0) return;
      first = last, at = waiting[--count], last = ends[count];
    }
  }

 private:
  const TreeNode& node(std::size_t tree, std::int32_t number) const {
    return nodes_[tree * most_nodes + static_cast<std::size_t>(number)];
  }

  static std::int32_t child(const TreeNode& node, const float* row) {
    return node.left + (row[node.column] > node.threshold);
  }

  const TreeNode* nodes_;
  std::int32_t width_;
};

}  // namespace manul::MANUL_SIMD
