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

  explicit RegressionTrees(const TreeNode* nodes) : nodes_(nodes) {}

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

 private:
  const TreeNode& node(std::size_t tree, std::int32_t number) const {
    return nodes_[tree * most_nodes + static_cast<std::size_t>(number)];
  }

  static std::int32_t child(const TreeNode& node, const float* row) {
    return node.left + (row[node.column] > node.threshold);
  }

  const TreeNode* nodes_;
};

}  // namespace manul::MANUL_SIMD
