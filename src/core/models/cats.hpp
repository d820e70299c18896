// Cats: a tree trained on the path of the chosen leaf. The policy is the paper's: a tree of linear classifiers whose
// leaf is smoothed with bandwidth h. The training rule is not from the paper.
//
// The paper trains every node above the window of the action, most of which the context would never reach, with
// weights of 1 / (2 h epsilon). Here a round trains the nodes on one path only: that of the greedy leaf or, if the
// action was outside the greedy window, that of the leaf at the action (so that no subtree stays untrained). From the
// bottom up, each node compares the leaf passed up to it with the leaf that the context reaches from the sibling. The
// cost of a leaf is
//
//   C_i = Q_i + (l - q(x, a)) min(1, w_i),      w_i = 1 / (2 h P(a|x)) if |a - c_i| <= h, else 0
//
// where q models the loss, Q_i is its mean over the window of the leaf, c_i the window's centre and w_i the paper's
// weight. Without the bound, C_i would be unbiased (doubly robust) but have a very large variance; with it, a leaf that
// is rarely chosen is judged almost by the model alone.
#pragma once

#include "contexts/dense_context.hpp"
#include "contexts/hashed_context.hpp"
#include "models/loss_model.hpp"
#include "models/policy_model.hpp"
#include "models/settings.hpp"
#include "tree/geometry.hpp"
#include "tree/shared_nodes.hpp"

namespace manul::MANUL_SIMD {

// Contexts as rows of numbers, with a weight for every pair of node and column.
struct DenseSpace {
  using Context = DenseContext;
  using Table = DenseTable;
  static Context context(const CatsSettings& settings) { return Context(settings.width, true); }
  static DenseShape shape(const CatsSettings&, const Context& context) { return {context.stride()}; }
};

// Contexts of named fields, with weights in tables of 2^bits.
struct HashedSpace {
  using Context = HashedContext;
  using Table = HashedTable;
  static Context context(const CatsSettings&) { return Context(); }
  static HashedShape shape(const CatsSettings& settings, const Context&) {
    return {settings.bits, most_features + lanes};
  }
};

template <class Space>
class CatsModel final : public RoutingModel {
 public:
  explicit CatsModel(const CatsSettings& settings)
      : actions_(settings.actions), per_length_(1.0 / (settings.actions.high - settings.actions.low)),
        geometry_{lattice(settings), settings.depth, leaf_middle, settings.bandwidth},
        context_(Space::context(settings)),
        nodes_(Space::shape(settings, context_), static_cast<std::size_t>(geometry_.leaves())),
        loss_model_(Space::shape(settings, context_), settings.bandwidth * per_length_) {}

  Window window(const ContextView& context, Range within) override {
    context_.look(context);
    return {centre(choose_leaf(within), within), geometry_.bandwidth};
  }

  void learn(const ContextView& context, const Outcome& outcome) override {
    context_.look(context);
    const Node leaf = choose_leaf(outcome.within);
    const double middle = centre(leaf, outcome.within);
    last_window_ = {middle, geometry_.bandwidth};
    loss_model_.look(context_.input(), to_unit(middle));
    const double surprise = outcome.loss - loss_model_.at(to_unit(outcome.action));
    const bool inside = absolute(outcome.action - middle) <= geometry_.bandwidth;
    const double weight = inside ? 1.0 / (2.0 * geometry_.bandwidth * outcome.density) : 0.0;
    estimate_ = loss_model_.smoothed(to_unit(middle)) + surprise * weight;
    train(inside ? leaf : leaf_at(outcome.action), outcome, surprise);
    loss_model_.learn(to_unit(outcome.action), outcome.loss, -surprise);
    context_.count(context);
  }

  Window replay(const ContextView& context, const Outcome& outcome) override {
    learn(context, outcome);
    return last_window_;
  }

  // The greedy window of the last round, before learning from it.
  const Window& last_window() const { return last_window_; }

  std::uint32_t depth() const override { return geometry_.depth; }

  float weight(std::uint32_t row, std::uint32_t feature) const override { return nodes_.weight(row, feature); }

  void route(const ContextView& context, Range within, Step* steps) override {
    context_.look(context);
    choose_leaf(within);
    Node node = 1;
    for (std::uint32_t below = geometry_.depth; below-- > 0; ++steps) {
      const Node next = child(node, below), other = next ^ 1;
      *steps = {node, nodes_.margin(node), (next & 1) == 1, other < first_ >> below || other > last_ >> below};
      node = next;
    }
  }

  // The doubly robust estimate of the policy's loss in the last round, before learning from it.
  double estimate() const { return estimate_; }

  void forget(double half_life) override { context_.forget(half_life); }

  std::size_t arrays() const override { return 8 + Space::Context::moments_arrays; }

  Array array(std::size_t index) override {
    if (index >= 8) return context_.moments(index - 8);
    const Array all[] = {
        {"weights", "f4", nodes_.weights().data(), nodes_.weights().size()},
        {"squares", "f4", nodes_.squares().data(), nodes_.squares().size()},
        {"slope", "f8", nodes_.slope().data(), nodes_.slope().size()},
        {"model_vectors", "f4", loss_model_.vectors().data(), loss_model_.vectors().size()},
        {"model_vector_squares", "f4", loss_model_.vector_squares().data(), loss_model_.vector_squares().size()},
        {"model_scalars", "f8", loss_model_.scalars().data(), loss_model_.scalars().size()},
        {"model_scalar_squares", "f8", loss_model_.scalar_squares().data(), loss_model_.scalar_squares().size()},
        {"model_history", "f8", loss_model_.history().data(), loss_model_.history().size()},
    };
    return all[index];
  }

 private:
  // Leaves are spread over the possible centres of windows, so that all are reachable.
  static Range lattice(const CatsSettings& settings) {
    const Range middles = {settings.actions.low + settings.bandwidth, settings.actions.high - settings.bandwidth};
    return middles.low < middles.high ? middles : settings.actions;
  }

  double to_unit(double action) const { return (action - actions_.low) * per_length_; }

  Node number(std::int64_t leaf) const { return static_cast<Node>(geometry_.leaves() + leaf); }

  double centre(Node leaf, Range within) const {
    return geometry_.centre(static_cast<std::int64_t>(leaf) - geometry_.leaves(), within);
  }

  // The greedy leaf; sets the reachable leaves of this round.
  Node choose_leaf(Range within) {
    const Leaves leaves = geometry_.reachable(within);
    first_ = number(leaves.first), last_ = number(leaves.last);
    nodes_.look(context_.input());
    Node node = 1;
    for (std::uint32_t below = geometry_.depth; below-- > 0;) node = child(node, below);
    return node;
  }

  // One step down, to a child that is `below` levels above the leaves. A node with one reachable side is forced to it.
  // Without branches, which the processor could mispredict.
  Node child(Node node, std::uint32_t below) {
    const Node left = 2 * node, first = first_ >> below, last = last_ >> below;
    return left + ((left < first) | ((left < last) & (nodes_.margin(node) >= 0.0)));
  }

  // The reachable leaf nearest to an action.
  Node leaf_at(double action) const {
    const auto leaf = static_cast<std::int64_t>(geometry_.position(action));
    const Node node = number(leaf < 0 ? 0 : leaf);
    return node < first_ ? first_ : node > last_ ? last_ : node;
  }

  // Trains the nodes above a leaf, bottom-up. The cost passed up is that of the side that the node now selects.
  void train(Node leaf, const Outcome& outcome, double surprise) {
    find_rivals(leaf);
    find_costs(outcome, surprise);
    double carried = costs_[geometry_.depth];
    for (std::uint32_t below = 0; below < geometry_.depth; ++below) {
      const Node node = leaf >> below, sibling = node ^ 1;
      const bool forced = sibling < first_ >> below || sibling > last_ >> below;
      if (forced) continue;
      const double costs[] = {carried, costs_[below]};
      const bool from_right = node & 1;
      const bool picks_right = nodes_.learn(node / 2, costs[from_right], costs[!from_right]);
      carried = costs[picks_right != from_right];
    }
  }

  // The leaves that the context reaches from the siblings of the nodes above a leaf, and then the leaf itself. All
  // descend one level at a time, because independent steps overlap in the processor.
  void find_rivals(Node leaf) {
    rivals_[geometry_.depth] = leaf;
    for (std::uint32_t below = geometry_.depth; below-- > 0;) {
      for (std::uint32_t i = below + 1; i < geometry_.depth; ++i) rivals_[i] = child(rivals_[i], below);
      rivals_[below] = (leaf >> below) ^ 1;
    }
  }

  void find_costs(const Outcome& outcome, double surprise) {
    const double bounded = surprise * smaller(1.0 / (2.0 * geometry_.bandwidth * outcome.density), 1.0);
    for (std::uint32_t i = 0; i <= geometry_.depth; ++i) middles_[i] = centre(rivals_[i], outcome.within);
    for (std::uint32_t i = 0; i <= geometry_.depth; ++i) costs_[i] = loss_model_.smoothed(to_unit(middles_[i]));
    for (std::uint32_t i = 0; i <= geometry_.depth; ++i) {
      const bool covers = absolute(outcome.action - middles_[i]) <= geometry_.bandwidth;
      costs_[i] += covers ? bounded : 0.0;
    }
  }

  static constexpr double leaf_middle = 0.5;     // the offset of an action in its leaf
  static constexpr std::size_t most_depth = 32;  // nodes have numbers of 32 bits

  Range actions_;
  double per_length_;
  Geometry geometry_;
  typename Space::Context context_;
  SharedNodes<typename Space::Table> nodes_;
  LossModel<typename Space::Table> loss_model_;
  double estimate_ = 0.0;
  Window last_window_ = {};
  Node first_ = 0, last_ = 0, rivals_[most_depth + 1] = {};
  double middles_[most_depth + 1] = {}, costs_[most_depth + 1] = {};  // of the compared leaves
};

}  // namespace manul::MANUL_SIMD
