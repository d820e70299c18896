// dLinear of the paper's experiments: one cost regressor per atom; the lowest prediction wins.
//
// The costs are doubly robust (Dudik, Langford and Li, 2011): q_i(x) + [i = played] (loss - q_i(x)) / P(played), where
// q is a second regressor per atom that learns from the rounds in which the atom was chosen.
#pragma once

#include "learners/coin_betting.hpp"
#include "models/policy_model.hpp"
#include "models/settings.hpp"
#include "tree/geometry.hpp"

namespace manul::MANUL_SIMD {

class DiscreteLinearModel final : public ReplayByWindow<PolicyModel> {
 public:
  explicit DiscreteLinearModel(const DiscreteSettings& settings)
      : context_(settings.width, false), atoms_{settings.actions, std::int64_t{1} << settings.depth},
        block_((lanes + CoinRegressor::arrays * context_.stride() + 15) / 16 * 16),
        costs_(block_ * static_cast<std::size_t>(atoms_.leaves)), losses_(costs_.size()) {}

  // Ties go to the first atom.
  Window window(const ContextView& context, Range within) override {
    context_.look(context);
    const auto [first, last] = atoms_.inside(within);
    std::int64_t best = first;
    float lowest = predict(costs_, first);
    for (std::int64_t leaf = first + 1; leaf <= last; ++leaf) {
      const float cost = predict(costs_, leaf);
      if (cost < lowest) lowest = cost, best = leaf;
    }
    return {atoms_.at(best), 0.0};
  }

  void learn(const ContextView& context, const Outcome& outcome) override {
    context_.measure(context);
    const auto played = atoms_.nearest(outcome.action);
    const double mass = outcome.density * atoms_.spacing();
    const double error = predict(losses_, played) - outcome.loss;
    for (std::int64_t leaf = 0; leaf < atoms_.leaves; ++leaf) {
      const double cost = predict(losses_, leaf) - (leaf == played ? error / mass : 0.0);
      step(costs_, leaf, predict(costs_, leaf) - static_cast<float>(cost));
    }
    step(losses_, played, static_cast<float>(error));
  }

  void forget(double half_life) override { context_.forget(half_life); }

  std::size_t arrays() const override { return 3; }

  Array array(std::size_t index) override {
    const Array all[] = {
        {"costs", "f4", costs_.data(), costs_.size()},
        {"losses", "f4", losses_.data(), losses_.size()},
        {"largest", "f4", context_.largest_array().data(), context_.largest_array().size()},
    };
    return all[index];
  }

 private:
  // A regressor has its limit first and its arrays from `lanes` on.
  float* block(Buffer<float>& regressors, std::int64_t leaf) {
    return regressors.data() + block_ * static_cast<std::size_t>(leaf);
  }
  float predict(Buffer<float>& regressors, std::int64_t leaf) {
    return CoinRegressor::predict(block(regressors, leaf) + lanes, context_);
  }
  void step(Buffer<float>& regressors, std::int64_t leaf, float gradient) {
    float* regressor = block(regressors, leaf);
    CoinRegressor::step(regressor[0], regressor + lanes, context_, gradient);
  }

  DenseContext context_;
  Atoms atoms_;
  std::size_t block_;
  Buffer<float> costs_, losses_;
};

}  // namespace manul::MANUL_SIMD
