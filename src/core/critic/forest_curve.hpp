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
      : width_(width), branches_(most_trees * most_nodes), leaves_(most_trees * most_nodes), row_(width + 1),
        steps_(action_bins + 1), curve_(action_bins) {}

  // Takes over a tree; parents precede their children.
  void set_tree(std::size_t tree, const TreeNode* nodes) {
    const std::size_t root = tree * most_nodes;
    leaves_[root] = {0, action_bins, 0};
    for (std::size_t number = 0; number < most_nodes; ++number) {
      const TreeNode& node = nodes[number];
      const std::size_t left = root + static_cast<std::size_t>(node.left);
      const bool is_leaf = left == root + number, splits_actions = node.column == static_cast<std::int32_t>(width_);
      const std::uint32_t children = is_leaf ? 0 : splits_actions ? 2 : 1;
      branches_[root + number] = {static_cast<std::uint32_t>(node.column), node.threshold,
                                  static_cast<std::uint32_t>(left), children};
      leaves_[root + number].value = node.value;
      if (is_leaf) continue;
      leaves_[left] = leaves_[left + 1] = leaves_[root + number];
      if (splits_actions) leaves_[left].end = leaves_[left + 1].first = static_cast<std::uint32_t>(node.threshold) + 1;
    }
  }

  // Sets the context for `predict`.
  void look(const float* context, std::size_t trees) {
    for (std::size_t column = 0; column < width_; ++column) row_[column] = context[column];
    row_[width_] = 0.0f;  // in place of the action: its splits lead to the left child
    for (std::size_t bin = 0; bin <= action_bins; ++bin) steps_[bin] = 0;
    for (std::size_t tree = 0; tree < trees; tree += together)
      add_steps(tree, tree + together < trees ? tree + together : trees);
    std::int32_t total = 0;
    for (std::size_t bin = 0; bin < action_bins; ++bin) {
      total += steps_[bin];
      curve_[bin] = static_cast<float>(total * fixed_point);
    }
  }

  float predict(float action) const { return curve_.data()[action_bin(action)]; }

  std::size_t unsaved_bytes() const { return sizeof(Branch) * branches_.size() + sizeof(Leaf) * leaves_.size(); }

 private:
  static constexpr std::size_t together = 16;  // trees

  struct Branch {
    std::uint32_t column;
    float threshold;
    std::uint32_t left, children;  // to follow: none of a leaf, one or both
  };

  // The bins of the actions that lead to the leaf, `end` excluded.
  struct Leaf {
    std::uint32_t first, end;
    std::int32_t value;
  };

  // Adds the differences of the trees' values from one bin to the next.
  void add_steps(std::size_t tree, std::size_t last) {
    const Branch* branches = branches_.data();
    const float* row = row_.data();
    std::uint32_t queue[together * most_nodes + 2];
    std::size_t size = 0, leaves = 0;
    for (; tree < last; ++tree) queue[size++] = static_cast<std::uint32_t>(tree * most_nodes);
    for (std::size_t i = 0; i < size; ++i) {
      const Branch& branch = branches[queue[i]];
      queue[leaves] = queue[i];  // leaves are collected at the front
      leaves += branch.children == 0;
      queue[size] = branch.left + (row[branch.column] > branch.threshold);
      queue[size + 1] = branch.left + 1;
      size += branch.children;
    }
    for (std::size_t i = 0; i < leaves; ++i) {
      const Leaf& leaf = leaves_[queue[i]];
      steps_[leaf.first] += leaf.value;
      steps_[leaf.end] -= leaf.value;
    }
  }

  std::size_t width_;
  Buffer<Branch> branches_;
  Buffer<Leaf> leaves_;
  Buffer<float> row_;
  Buffer<std::int32_t> steps_;
  Buffer<float> curve_;
};

}  // namespace manul::MANUL_SIMD
