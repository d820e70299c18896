// Grows one regression tree: histograms of the bins, always the split with the largest gain next.
//
// The work is done in slices, so that no round takes long. A bin of a histogram is one integer, the sum of the targets
// in its upper 48 bits and the number of rounds in its lower 16: one addition per round and column, exact in any order.
#pragma once

#include "critic/regression_tree.hpp"

namespace manul::MANUL_SIMD {

class TreeGrowth {
 public:
  static constexpr std::size_t most_columns = 33;  // with the action

  explicit TreeGrowth(std::size_t capacity)
      : targets_(capacity), order_(capacity), moved_(capacity), histograms_(most_leaves * most_bins),
        nodes_(most_nodes) {}

  // In units of `fixed_point`, by slot.
  Buffer<std::int32_t>& targets() { return targets_; }
  const TreeNode* nodes() const { return nodes_.data(); }
  std::size_t node_count() const { return node_count_; }

  // Whether no target of a file is larger than `largest`, in standard units.
  bool is_valid(double largest) const {
    const auto most = static_cast<std::int32_t>(largest / fixed_point);
    for (std::size_t slot = 0; slot < targets_.size(); ++slot)
      if (targets_.data()[slot] < -most || targets_.data()[slot] > most) return false;
    return true;
  }

  std::size_t unsaved_bytes() const { return 4 * (order_.size() + moved_.size()) + 8 * histograms_.size(); }

  // Calls `each(slot, leaf)` for all rounds of the finished tree.
  template <class Each>
  void visit_leaves(Each&& each) const {
    for (std::size_t l = 0; l < leaf_count_; ++l)
      for (std::size_t i = leaves_[l].begin; i < leaves_[l].end; ++i)
        each(order_.data()[i], static_cast<std::uint8_t>(leaves_[l].node));
  }

  // Calls `each(column, gain)` for all splits of the finished tree.
  template <class Each>
  void visit_gains(Each&& each) const {
    for (std::size_t i = 0; i < split_count_; ++i) each(splits_[i].column, splits_[i].gain);
  }

  // `columns` are those that may be split, `slots` are `rounds` remembered rounds.
  template <class Slot>
  void start(const FeatureBins& bins, const std::size_t* columns, std::size_t count, std::size_t rounds, Slot&& slot) {
    bins_ = &bins;
    column_count_ = count;
    for (std::size_t c = 0; c < count; ++c) columns_[c] = static_cast<std::uint32_t>(columns[c]);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
      order_[i] = static_cast<std::uint32_t>(slot(i));
      sum += targets_[order_[i]];
    }
    leaf_limit_ = rounds / rounds_per_leaf < most_leaves ? rounds / rounds_per_leaf : most_leaves;
    leaf_count_ = node_count_ = 1;
    split_count_ = 0;
    leaves_[0] = {0, rounds, 0, 0, sum, {}};
    nodes_[0] = TreeNode::leaf(0, bins.width());
    build(0, none);
  }

  // About `units` additions and comparisons; returns whether the tree is finished.
  bool work(std::size_t units) {
    for (std::size_t done = 0; done < units;) {
      if (building_ != none) {
        done += add_rounds(units - done);
      } else {
        const std::size_t best = best_leaf();
        if (best == none) return finish();
        done += split(best);
      }
    }
    return false;
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  static constexpr std::size_t rounds_per_leaf = 32, least_rounds = 16;
  static constexpr float shrinkage = 20.0f;  // a leaf's value is its sum over the number of rounds plus this
  static constexpr std::size_t most_bins = (most_columns - 1) * FeatureBins::most + action_bins;
  static constexpr int count_bits = 16;

  struct Split {
    double gain;
    std::size_t column, bin;
    std::int64_t left_sum;
  };

  // The histogram of leaf i is the i-th.
  struct Leaf {
    std::size_t begin, end, node, depth;
    std::int64_t sum;
    Split best;

    std::size_t size() const { return end - begin; }
  };

  std::int64_t* histogram(std::size_t leaf) { return histograms_.data() + leaf * most_bins; }

  bool divisible(const Leaf& leaf) const {
    return leaf.size() >= 2 * least_rounds && leaf.depth < RegressionTrees::most_depth;
  }

  // Starts the histogram of a leaf. That of its sibling, which has the histogram of their parent, is the difference.
  void build(std::size_t leaf, std::size_t sibling) {
    building_ = leaf, sibling_ = sibling, next_ = leaves_[leaf].begin;
    visit_bins([bins = histogram(leaf)](std::size_t i) { bins[i] = 0; });
  }

  // Calls `each(i)` for the bins of a histogram.
  template <class Each>
  void visit_bins(Each&& each) const {
    for (std::size_t c = 0; c < column_count_; ++c)
      for (std::size_t i = c * FeatureBins::most, end = i + bins_->count(columns_[c]); i < end; ++i) each(i);
  }

  std::size_t add_rounds(std::size_t units) {
    const Leaf& leaf = leaves_[building_];
    const std::size_t affordable = next_ + units / column_count_ + 1,
                      end = affordable < leaf.end ? affordable : leaf.end;
    const std::size_t first = next_, count = column_count_;
    for (; next_ < end; ++next_) {
      const std::uint32_t slot = order_[next_];
      const std::uint8_t* row = bins_->row(slot);
      const std::int64_t added = (static_cast<std::int64_t>(targets_[slot]) << count_bits) + 1;
      std::int64_t* sums = histogram(building_);
      for (std::size_t c = 0; c < count; ++c, sums += FeatureBins::most) sums[row[columns_[c]]] += added;
    }
    std::size_t done = (next_ - first) * column_count_;
    if (next_ == leaf.end) done += compare();
    return done;
  }

  // Both histograms are complete: finds the best splits.
  std::size_t compare() {
    find_split(building_);
    if (sibling_ != none) {
      visit_bins([rest = histogram(sibling_), part = histogram(building_)](std::size_t i) { rest[i] -= part[i]; });
      find_split(sibling_);
    }
    building_ = none;
    return 2 * column_count_ * FeatureBins::most;
  }

  void find_split(std::size_t number) {
    Leaf& leaf = leaves_[number];
    leaf.best = {};
    if (!divisible(leaf)) return;
    float best = -1.0f;
    for (std::size_t c = 0; c < column_count_; ++c)
      find_split(leaf, histogram(number) + c * FeatureBins::most, c, best);
    const Split& split = leaf.best;
    if (split.gain == 0.0) return;
    const std::int64_t* bins = histogram(number) + split.column * FeatureBins::most;
    std::int64_t left = 0;
    for (std::size_t bin = 0; bin <= split.bin; ++bin) left += bins[bin];
    const auto rounds = static_cast<double>(left & 0xffff), all = static_cast<double>(leaf.size());
    leaf.best.left_sum = left >> count_bits;
    leaf.best.gain =
        score(leaf.best.left_sum, rounds) + score(leaf.sum - leaf.best.left_sum, all - rounds) - score(leaf.sum, all);
  }

  // Compares the splits of one column; sets a gain of 1 until the exact one is known.
  void find_split(Leaf& leaf, const std::int64_t* bins, std::size_t column, float& best) {
    const std::size_t count = bins_->count(columns_[column]) - 1;
    std::int64_t totals[action_bins], total = 0;
    for (std::size_t bin = 0; bin < count; ++bin) totals[bin] = total += bins[bin];
    float gains[action_bins];
    const auto sum = static_cast<float>(leaf.sum), all = static_cast<float>(leaf.size());
    constexpr auto least = static_cast<float>(least_rounds);
    for (std::size_t bin = 0; bin < count; ++bin) {
      const auto left = static_cast<float>(totals[bin] >> count_bits),
                 on_left = static_cast<float>(static_cast<std::int32_t>(totals[bin] & 0xffff));
      const float right = sum - left, on_right = all - on_left;
      const float below_left = on_left + shrinkage, below_right = on_right + shrinkage;
      const float gain = (left * left * below_right + right * right * below_left) / (below_left * below_right);
      gains[bin] = ((on_left >= least) & (on_right >= least)) ? gain : -1.0f;
    }
    for (std::size_t bin = count; bin % wide != 0; ++bin) gains[bin] = -1.0f;
    Lanes top = Lanes{} - 1.0f;
    for (std::size_t bin = 0; bin < count; bin += wide) top = largest(top, load<Lanes>(gains + bin));
    float highest = top[0];
    for (std::size_t i = 1; i < wide; ++i) highest = highest < top[i] ? top[i] : highest;
    if (highest <= best) return;
    best = highest;
    std::size_t bin = 0;
    while (gains[bin] != highest) ++bin;
    leaf.best = {1.0, column, bin, 0};
  }

  static double score(std::int64_t sum, double rounds) {
    const double exact = static_cast<double>(sum) * fixed_point;
    return exact * exact / (rounds + static_cast<double>(shrinkage));
  }

  std::size_t best_leaf() const {
    std::size_t best = none;
    double gain = 0.0;
    for (std::size_t l = 0; l < leaf_count_ && leaf_count_ < leaf_limit_; ++l)
      if (leaves_[l].best.gain > gain) gain = leaves_[l].best.gain, best = l;
    return best;
  }

  // Splits a leaf: the larger child takes its place and its histogram.
  std::size_t split(std::size_t number) {
    const Leaf parent = leaves_[number];
    const Split split = parent.best;
    const std::size_t column = columns_[split.column], middle = partition(parent, column, split.bin);
    splits_[split_count_++] = {split.gain, column, split.bin, 0};
    const bool is_action = column == bins_->width();
    nodes_[parent.node] = {static_cast<std::int32_t>(column),
                           is_action ? static_cast<float>(split.bin) : bins_->edge(column, split.bin),
                           static_cast<std::int32_t>(node_count_), 0};
    const Leaf left = {parent.begin, middle, node_count_, parent.depth + 1, split.left_sum, {}},
               right = {middle, parent.end, node_count_ + 1, parent.depth + 1, parent.sum - split.left_sum, {}};
    nodes_[left.node] = TreeNode::leaf(left.node, bins_->width());
    nodes_[right.node] = TreeNode::leaf(right.node, bins_->width());
    const bool left_is_larger = left.size() > right.size();
    leaves_[number] = left_is_larger ? left : right;
    leaves_[leaf_count_] = left_is_larger ? right : left;
    node_count_ += 2, leaf_count_ += 1;
    if (leaf_count_ < leaf_limit_ && divisible(leaves_[number])) build(leaf_count_ - 1, number);
    return parent.size();
  }

  // Moves the rounds of the left child to the front; returns where the right child begins.
  std::size_t partition(const Leaf& leaf, std::size_t column, std::size_t bin) {
    std::size_t left = leaf.begin, right = 0;
    for (std::size_t i = leaf.begin; i < leaf.end; ++i) {
      const std::uint32_t slot = order_[i];
      const bool goes_left = bins_->row(slot)[column] <= bin;
      order_[left] = slot, moved_[right] = slot;
      left += goes_left, right += !goes_left;
    }
    for (std::size_t i = 0; i < right; ++i) order_[left + i] = moved_[i];
    return left;
  }

  bool finish() {
    for (std::size_t l = 0; l < leaf_count_; ++l) {
      const auto rounds = static_cast<std::int64_t>(leaves_[l].size());
      nodes_[leaves_[l].node].value =
          static_cast<std::int32_t>(leaves_[l].sum / (rounds + static_cast<std::int64_t>(shrinkage)));
    }
    return true;
  }

  Buffer<std::int32_t> targets_;
  Buffer<std::uint32_t> order_, moved_;
  Buffer<std::int64_t> histograms_;
  Buffer<TreeNode> nodes_;
  const FeatureBins* bins_ = nullptr;
  std::size_t column_count_ = 0;
  std::uint32_t columns_[most_columns] = {};
  std::size_t leaf_limit_ = 0, leaf_count_ = 0, node_count_ = 0, split_count_ = 0;
  std::size_t building_ = none, sibling_ = none, next_ = 0;  // the histogram in progress
  Leaf leaves_[most_leaves];                                 // not initialised, so that a new agent is small
  Split splits_[most_leaves];
};

}  // namespace manul::MANUL_SIMD
