// Boosted regression trees over contexts and actions, which learn from the rounds in memory, one tree at a time.
//
// A tree learns what the networks (times `trust`) and the other trees leave unexplained. There are at most 48 trees;
// after that, a new tree replaces the oldest, begins with a share of its predictions, and corrects 12 % of what
// remains. All sums are integers, so results do not depend on the order of additions. The constants were chosen by
// experiment: docs/ablation-auto.md.
#pragma once

#include "critic/forest_curve.hpp"
#include "critic/tree_growth.hpp"

namespace manul::MANUL_SIMD {

class Forest {
 public:
  Forest(std::size_t width, std::size_t capacity, std::uint64_t seed)
      : width_(width), capacity_(capacity), seed_(seed), bins_(width, capacity), growth_(capacity),
        nodes_(most_trees * most_nodes), gains_(width + 1), leaves_(most_trees * capacity), predictions_(capacity),
        curve_(width, most_trees), row_(width + 1), candidates_(width) {}

  std::size_t trees() const { return state_.made < most_trees ? static_cast<std::size_t>(state_.made) : most_trees; }

  // Adds the newest round; returns its predicted loss in standard units.
  double remember(ReplayBuffer& replay) {
    const std::size_t slot = replay.slot(0);
    bins_.write(replay, slot);
    find_leaves(replay, slot);
    return static_cast<double>(predictions_[slot]) * fixed_point;
  }

  // The work of one round: new bins for some columns, and a part of a tree. `age` is the number of rounds in the
  // current world, `trust` the weight of the networks' predictions in the targets.
  void advance(ReplayBuffer& replay, double age, double trust) {
    const std::size_t rounds = usable_rounds(replay, age);
    if (state_.growing != 0.0 && state_.started - state_.rounds < replay.oldest()) state_.growing = 0.0;
    if (state_.growing == 0.0) {
      refresh_columns(replay, rounds, age);
      if (rounds < first_rounds || state_.written > 0.0) return;
      state_.credit = smaller(1.0, state_.credit + trees_per_round(static_cast<double>(rounds)));
      if (state_.credit < 1.0) return;
      set_targets(replay, rounds, trust);
      start_growth(replay);
    }
    state_.slices += 1.0;
    if (growth_.work(slice)) plant(replay);
  }

  // Drops all trees, after a change of the world.
  void clear() {
    state_ = {};
    bins_.clear();
    for (std::size_t slot = 0; slot < capacity_; ++slot) predictions_[slot] = 0;
    for (std::size_t column = 0; column <= width_; ++column) gains_[column] = 0.0;
  }

  // Sets the context for `predict`.
  void look(const float* context) { curve_.look(context, trees()); }

  float predict(float action) const { return curve_.predict(action); }

  // Computes what files do not contain: curve and, if it `learns`, bins, leaves, predictions and the half-grown tree.
  void resume(ReplayBuffer& replay, bool learns) {
    for (std::size_t tree = 0; tree < trees(); ++tree) curve_.set_tree(tree, &nodes_[tree * most_nodes]);
    if (!learns) return;
    for (std::size_t age = 0; age < static_cast<std::size_t>(replay.remembered()); ++age) {
      bins_.write(replay, replay.slot(age));
      find_leaves(replay, replay.slot(age));
    }
    if (state_.growing == 0.0) return;
    start_growth(replay);
    for (double done = 0.0; done < state_.slices && !growth_.work(slice);) done += 1.0;
  }

  bool is_valid(const ReplayBuffer& replay) const {
    bool all = bins_.is_valid() && is_count(state_.made) && finite(state_.credit) && state_.sweeps >= 0.0 &&
               state_.sweeps <= sweeps && state_.column >= 0.0 &&
               (state_.column < static_cast<double>(width_) || state_.column == 0.0) && state_.left >= 0.0 &&
               state_.left <= static_cast<double>(width_) && is_count(state_.column) && is_count(state_.left) &&
               is_count(state_.written) && state_.written <= state_.rounds && is_count(state_.waited) &&
               is_count(state_.slices) && is_count(state_.rounds) && is_count(state_.started);
    all = all && state_.rounds <= static_cast<double>(capacity_ - reserve) && state_.started <= replay.rounds() &&
          ((state_.growing == 0.0 && state_.written == 0.0) ||
           replay.rounds() - state_.started <= static_cast<double>(reserve));
    if (!all) return false;  // the number of trees may be absurd
    for (std::size_t column = 0; column <= width_; ++column) all = all && finite(gains_.data()[column]);
    for (std::size_t node = 0; node < trees() * most_nodes; ++node) all = all && is_valid(nodes_.data()[node], node);
    return all && growth_.is_valid(largest_target) && have_one_parent();
  }

  // What files do not contain.
  std::size_t unsaved_bytes() const {
    return bins_.unsaved_bytes() + growth_.unsaved_bytes() + leaves_.size() + 4 * predictions_.size() +
           curve_.unsaved_bytes();
  }

  static constexpr std::size_t arrays = FeatureBins::arrays + 4;

  Array array(std::size_t index) {
    if (index < FeatureBins::arrays) return bins_.array(index);
    constexpr std::size_t words = sizeof(TreeNode) / sizeof(std::int32_t);
    const Array all[] = {
        {"trees", "i4", nodes_.data(), nodes_.size() * words},
        {"tree_targets", "i4", growth_.targets().data(), growth_.targets().size()},
        {"column_gains", "f8", gains_.data(), gains_.size()},
        {"forest", "f8", &state_, sizeof state_ / sizeof(double)},
    };
    return all[index - FeatureBins::arrays];
  }

 private:
  static constexpr std::size_t most_trees = 48;
  static constexpr std::size_t slice = 200'000;  // additions and comparisons per round, about 0.2 ms
  // The oldest rounds, from which a new tree does not learn, because they may be overwritten before it is complete.
  static constexpr std::size_t reserve = 512;
  static constexpr std::size_t first_rounds = 60;
  static constexpr double step = 0.12;           // of boosting
  static constexpr double half_kept = 8192.0;    // rounds at which half of the oldest tree is kept
  static constexpr double largest_target = 4.0;  // in standard units; limits outliers
  static constexpr double gain_memory = 0.98;    // per tree
  static constexpr std::size_t best_columns = 16, random_columns = 16;  // if there are more columns than both
  static constexpr std::size_t cells_per_round = 8192;                  // that get new bins
  static constexpr double column_pause = 512.0;      // rounds between them once there are many rounds
  static constexpr double sweeps = 4.0;              // over all columns, at 60, 240, 960 and 3,840 rounds
  static constexpr std::uint64_t column_stream = 9;  // of random numbers

  // The latest rounds that will still be remembered when a tree that learns from them is complete. Wide named contexts
  // may shorten the memory faster; then the tree is abandoned.
  std::size_t usable_rounds(const ReplayBuffer& replay, double age) const {
    const double remembered = replay.remembered(), kept = static_cast<double>(reserve);
    const double lasting = replay.oldest() > 0.0 ? larger(0.0, remembered - kept) : remembered;
    return static_cast<std::size_t>(smaller(age, smaller(lasting, static_cast<double>(capacity_) - kept)));
  }

  RegressionTrees all() const { return RegressionTrees(nodes_.data()); }

  // One per round at 100 rounds, one per 655 at 32,768.
  static double trees_per_round(double rounds) {
    const double full = rounds / 32768.0;
    return smaller(1.0, 100.0 / (rounds * (1.0 + full * full)));
  }

  // The context and the bin of the action.
  const float* row(ReplayBuffer& replay, std::size_t slot) {
    const float* columns = replay.columns(slot);
    for (std::size_t column = 0; column < width_; ++column) row_[column] = columns[column];
    row_[width_] = static_cast<float>(action_bin(replay.action(slot)[0]));
    return row_.data();
  }

  void find_leaves(ReplayBuffer& replay, std::size_t slot) {
    std::uint8_t leaves[most_trees];
    all().find_leaves(row(replay, slot), trees(), leaves);
    std::int32_t total = 0;
    for (std::size_t tree = 0; tree < trees(); ++tree) {
      leaves_[tree * capacity_ + slot] = leaves[tree];
      total += all().value(tree, leaves[tree]);
    }
    predictions_[slot] = total;
  }

  // Gives the columns new bins from time to time. Between trees only, because a growing tree reads them.
  void refresh_columns(ReplayBuffer& replay, std::size_t rounds, double age) {
    const auto width = static_cast<double>(width_);
    const double due = 60.0 * power_of_two(2 * static_cast<std::int64_t>(state_.sweeps));
    if (state_.sweeps < sweeps && age >= due) {
      state_.sweeps += 1.0;
      state_.left = width;
    } else if (state_.sweeps == sweeps && state_.left == 0.0 && (state_.waited += 1.0) >= column_pause) {
      state_.waited = 0.0;
      state_.left = smaller(1.0, width);
    }
    for (std::size_t cells = cells_per_round; cells > 0 && state_.left > 0.0;) cells -= refresh(replay, rounds, cells);
  }

  // Continues with the current column; returns the number of rewritten cells, at most `cells`.
  std::size_t refresh(ReplayBuffer& replay, std::size_t rounds, std::size_t cells) {
    const auto column = static_cast<std::size_t>(state_.column);
    if (state_.written == 0.0) {
      bins_.place_edges(replay, column, rounds);
      state_.rounds = static_cast<double>(rounds), state_.started = replay.rounds();
    }
    const auto first = static_cast<std::size_t>(state_.written + replay.rounds() - state_.started),
               unwritten = static_cast<std::size_t>(state_.rounds - state_.written);
    const std::size_t count = cells < unwritten ? cells : unwritten;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t slot = replay.slot(first + i);
      bins_.write(slot, column, replay.column(slot, column));
    }
    state_.written += static_cast<double>(count);
    if (count == unwritten) {
      state_.written = 0.0;
      state_.left -= 1.0;
      state_.column = column + 1 < width_ ? state_.column + 1.0 : 0.0;
    }
    return count;
  }

  // The values of the oldest tree if it will be replaced.
  std::int32_t oldest_value(std::size_t slot) {
    const std::size_t tree = next_tree();
    return state_.made < most_trees ? 0 : all().value(tree, leaves_[tree * capacity_ + slot]);
  }

  std::size_t next_tree() const { return static_cast<std::size_t>(state_.made) % most_trees; }

  void set_targets(ReplayBuffer& replay, std::size_t rounds, double trust) {
    const double kept = static_cast<double>(rounds) / (static_cast<double>(rounds) + half_kept);
    for (std::size_t i = 0; i < rounds; ++i) {
      const std::size_t slot = replay.slot(i);
      const std::int32_t oldest = oldest_value(slot);
      const double start = kept * oldest * fixed_point, others = (predictions_[slot] - oldest) * fixed_point;
      const double residual = replay.standard_loss(slot) - trust * replay.prediction(slot) - others;
      const double target = clip(start + step * (residual - start), -largest_target, largest_target);
      growth_.targets()[slot] = static_cast<std::int32_t>(target / fixed_point);
    }
    state_.growing = 1.0, state_.credit = state_.slices = 0.0;
    state_.rounds = static_cast<double>(rounds), state_.started = replay.rounds();
  }

  void start_growth(ReplayBuffer& replay) {
    std::size_t columns[TreeGrowth::most_columns];
    const std::size_t count = choose_columns(columns);
    const auto since = static_cast<std::size_t>(replay.rounds() - state_.started);
    growth_.start(bins_, columns, count, static_cast<std::size_t>(state_.rounds),
                  [&](std::size_t i) { return replay.slot(since + i); });
  }

  // All columns that can be split, or those with the largest gains so far and some others at random; and the action.
  std::size_t choose_columns(std::size_t* columns) {
    std::size_t count = 0;
    for (std::size_t column = 0; column < width_; ++column)
      if (bins_.count(column) > 1) candidates_[count++] = column;
    if (count > best_columns + random_columns) {
      for (std::size_t i = 0; i < best_columns; ++i) swap_candidates(i, best_candidate(i, count));
      for (std::size_t i = best_columns; i < best_columns + random_columns; ++i) {
        const auto number = static_cast<std::uint64_t>(state_.made) * random_columns + i - best_columns;
        const double place = draw(seed_, number, column_stream).first * static_cast<double>(count - i);
        swap_candidates(i, i + static_cast<std::size_t>(place));
      }
      count = best_columns + random_columns;
    }
    for (std::size_t i = 0; i < count; ++i) columns[i] = candidates_[i];
    columns[count] = width_;
    return count + 1;
  }

  std::size_t best_candidate(std::size_t first, std::size_t count) {
    std::size_t best = first;
    for (std::size_t i = first; i < count; ++i)
      if (gains_[candidates_[i]] > gains_[candidates_[best]]) best = i;
    return best;
  }

  void swap_candidates(std::size_t i, std::size_t j) {
    const std::size_t kept = candidates_[i];
    candidates_[i] = candidates_[j];
    candidates_[j] = kept;
  }

  // Puts the finished tree in the place of the oldest.
  void plant(ReplayBuffer& replay) {
    const std::size_t tree = next_tree();
    std::uint8_t* leaves = leaves_.data() + tree * capacity_;
    const auto replace = [&](std::size_t slot, std::uint8_t leaf) {
      predictions_[slot] += growth_.nodes()[leaf].value - oldest_value(slot);
      leaves[slot] = leaf;
    };
    growth_.visit_leaves(replace);
    const RegressionTrees grown(growth_.nodes());
    for (std::size_t i = 0; i < static_cast<std::size_t>(replay.rounds() - state_.started); ++i) {
      const std::size_t slot = replay.slot(i);
      std::uint8_t leaf;
      grown.find_leaves(row(replay, slot), 1, &leaf);
      replace(slot, leaf);
    }
    for (std::size_t node = 0; node < most_nodes; ++node)
      nodes_[tree * most_nodes + node] =
          node < growth_.node_count() ? growth_.nodes()[node] : TreeNode::leaf(node, width_);
    curve_.set_tree(tree, &nodes_[tree * most_nodes]);
    for (std::size_t column = 0; column <= width_; ++column) gains_[column] *= gain_memory;
    growth_.visit_gains([&](std::size_t column, double gain) { gains_[column] += gain; });
    state_.made += 1.0;
    state_.growing = 0.0;
  }

  // Whether a node of a file is within the tree, so that every path ends.
  bool is_valid(const TreeNode& node, std::size_t number) const {
    constexpr std::int32_t largest_value = 1 << 23;
    const auto width = static_cast<std::int32_t>(width_), own = static_cast<std::int32_t>(number % most_nodes);
    if (node.value < -largest_value || node.value > largest_value || node.column < 0 || node.column > width)
      return false;
    if (node.left == own) return node.threshold == __builtin_inff();
    const bool splits_actions = node.column == width;
    return node.left > own && node.left + 1 < static_cast<std::int32_t>(most_nodes) &&
           (!splits_actions || (node.threshold >= 0.0f && node.threshold < action_bins));
  }

  // Whether every node has one parent; otherwise a walk over all leaves could take for ever.
  bool have_one_parent() const {
    for (std::size_t tree = 0; tree < trees(); ++tree) {
      bool taken[most_nodes + 1] = {};
      for (std::size_t node = 0; node < most_nodes; ++node) {
        const auto left = static_cast<std::size_t>(nodes_.data()[tree * most_nodes + node].left);
        if (left == node) continue;
        if (taken[left] || taken[left + 1]) return false;
        taken[left] = taken[left + 1] = true;
      }
    }
    return true;
  }

  struct State {
    double made = 0.0, credit = 0.0;  // trees, and the part of the next one that is due
    double sweeps = 0.0, column = 0.0, left = 0.0, written = 0.0, waited = 0.0;  // of the columns' new bins
    double growing = 0.0, slices = 0.0;                                          // of the tree in progress
    double rounds = 0.0, started = 0.0;  // from which the tree, or the column, gets its data
  };

  std::size_t width_, capacity_;
  std::uint64_t seed_;
  FeatureBins bins_;
  TreeGrowth growth_;
  Buffer<TreeNode> nodes_;
  Buffer<double> gains_;
  Buffer<std::uint8_t> leaves_;  // of every tree and remembered round
  Buffer<std::int32_t> predictions_;
  ForestCurve curve_;
  Buffer<float> row_;
  Buffer<std::size_t> candidates_;
  State state_;
};

}  // namespace manul::MANUL_SIMD
