// The forest's predictions for all actions in one context.
//
// A walk follows splits of the context to one child and splits of the action to both. Several trees are walked at once
// and without branches, because the steps of one tree wait for each other and the processor would often mispredict.
#pragma once

#include "critic/regression_tree.hpp"

namespace manul::MANUL_SIMD {

class ForestCurve {
 public:
  ForestCurve(std::size_t width, std::size_t most_trees)
      : width_(width), nodes_(most_trees * most_nodes), row_(width + 1), steps_(action_bins + 1), curve_(action_bins) {}

  // Takes over a tree; parents precede their children.
  void set_tree(std::size_t tree, const TreeNode* nodes) {
    const std::size_t root = tree * most_nodes;
    std::uint32_t firsts[most_nodes] = {}, ends[most_nodes];
    for (std::uint32_t& end : ends) end = action_bins;
    for (std::size_t number = 0; number < most_nodes; ++number) {
      const TreeNode& node = nodes[number];
      const auto left = static_cast<std::size_t>(node.left);
      const bool splits_actions = node.column == static_cast<std::int32_t>(width_);
      if (left == number) {
        nodes_[root + number] = {firsts[number] << 16 | ends[number], node.value, static_cast<std::uint32_t>(width_),
                                 0};
        continue;
      }
      nodes_[root + number] = {static_cast<std::uint32_t>(root + left),
                               __builtin_bit_cast(std::int32_t, node.threshold),
                               static_cast<std::uint32_t>(node.column), splits_actions ? 2u : 1u};
      firsts[left] = firsts[left + 1] = firsts[number];
      ends[left] = ends[left + 1] = ends[number];
      if (splits_actions) ends[left] = firsts[left + 1] = static_cast<std::uint32_t>(node.threshold) + 1;
    }
  }

  // Sets the context for `predict`.
  void look(const float* context, std::size_t trees) {
    for (std::size_t column = 0; column < width_; ++column) row_[column] = context[column];
    row_[width_] = 0.0f;  // in place of the action: its splits lead to the left child
    for (std::size_t bin = 0; bin <= action_bins; ++bin) steps_[bin] = 0;
    for (std::size_t tree = 0; tree < trees; tree += together)
      add_steps(tree, tree + together < trees ? tree + together : trees);
    for (std::size_t bin = 1; bin < action_bins; ++bin) steps_[bin] += steps_[bin - 1];
    for (std::size_t bin = 0; bin < action_bins; ++bin) curve_[bin] = static_cast<float>(steps_[bin] * fixed_point);
  }

  float predict(float action) const { return curve_.data()[action_bin(action)]; }

  std::size_t unsaved_bytes() const { return sizeof(Node) * nodes_.size(); }

 private:
  static constexpr std::size_t together = 16;  // trees

  // A split, whose right child follows the left one; or a leaf, with the first bin of the actions that lead to it and
  // the end of these bins in 16 bits each, and its value in place of the bits of the threshold. So a walk reads one
  // line of the cache per node.
  struct Node {
    std::uint32_t left;
    std::int32_t threshold;
    std::uint32_t column, children;  // to follow: none of a leaf, one or both
  };

  struct Pair {
    std::uint32_t left, right;
  };

  // Adds the differences of the trees' values from one bin to the next.
  void add_steps(std::size_t tree, std::size_t last) {
    const Node* nodes = nodes_.data();
    const float* row = row_.data();
    std::uint32_t queue[together * most_nodes + 2];
    std::size_t size = 0, leaves = 0;
    for (; tree < last; ++tree) queue[size++] = static_cast<std::uint32_t>(tree * most_nodes);
    for (std::size_t i = 0; i < size; ++i) {
      const Node& node = nodes[queue[i]];
      queue[leaves] = queue[i];  // leaves are collected at the front
      leaves += node.children == 0;
      // Compilers make vectors of two stores, which takes longer than one store of both children.
      const Pair next = {node.left + (row[node.column] > __builtin_bit_cast(float, node.threshold)), node.left + 1};
      const auto both = __builtin_bit_cast(std::uint64_t, next);
      __builtin_memcpy(queue + size, &both, sizeof both);
      size += node.children;
    }
    for (std::size_t i = 0; i < leaves; ++i) {
      const Node& leaf = nodes[queue[i]];
      steps_[leaf.left >> 16] += leaf.threshold;
      steps_[leaf.left & 0xffff] -= leaf.threshold;
    }
  }

  std::size_t width_;
  Buffer<Node> nodes_;
  Buffer<float> row_;
  Buffer<std::int32_t> steps_;
  Buffer<float> curve_;
};

}  // namespace manul::MANUL_SIMD
