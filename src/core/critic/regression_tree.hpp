// A regression tree over contexts and actions.
#pragma once

#include "critic/feature_bins.hpp"

namespace manul::MANUL_SIMD {

// Sums of losses and leaf values are whole multiples of this, so that they are exact in any order.
constexpr double fixed_point = 0x1p-20;
constexpr std::size_t most_leaves = 128, most_nodes = 2 * most_leaves - 1;

// Inner nodes send values up to the threshold to the left; that of the action is compared by its bin.
struct TreeNode {
  static constexpr std::int32_t leaf = -1;

  std::int32_t column = leaf;
  float threshold = 0.0f;
  std::int32_t value = 0;  // of a leaf, in units of `fixed_point`
  std::int32_t left = 0;   // the right child follows the left one
};

class RegressionTree {
 public:
  RegressionTree(const TreeNode* nodes, std::size_t width) : nodes_(nodes), width_(static_cast<std::int32_t>(width)) {}

  // The leaf of an action in a context.
  std::uint8_t find_leaf(const float* context, float action) const {
    std::int32_t at = 0;
    while (nodes_[at].column >= 0) at = child(nodes_[at], value_of(nodes_[at], context, action));
    return static_cast<std::uint8_t>(at);
  }

  std::int32_t value(std::size_t leaf) const { return nodes_[leaf].value; }

  // Adds the values of all actions in a context: `steps` gets the differences from one bin to the next.
  void add_steps(const float* context, std::int32_t* steps) const { add_steps(0, context, 0, action_bins, steps); }

 private:
  float value_of(const TreeNode& node, const float* context, float bin) const {
    return node.column == width_ ? bin : context[node.column];
  }

  static std::int32_t child(const TreeNode& node, float value) { return node.left + (value > node.threshold); }

  // For the actions from bin `first` up to, but not including, `last`.
  void add_steps(std::int32_t at, const float* context, std::size_t first, std::size_t last,
                 std::int32_t* steps) const {
    while (nodes_[at].column >= 0) {
      const TreeNode& node = nodes_[at];
      if (node.column != width_) {
        at = child(node, context[node.column]);
        continue;
      }
      const auto middle = static_cast<std::size_t>(node.threshold) + 1;
      if (middle > first && middle < last) add_steps(node.left + 1, context, middle, last, steps);
      if (middle <= first) {
        at = node.left + 1;
      } else {
        last = middle < last ? middle : last;
        at = node.left;
      }
    }
    steps[first] += nodes_[at].value;
    steps[last] -= nodes_[at].value;
  }

  const TreeNode* nodes_;
  std::int32_t width_;
};

}  // namespace manul::MANUL_SIMD
