// A linear policy, x -> clip(w.x), trained by the gradient of its smoothed loss.
//
// With centre c, a window of half-width h and an action a drawn with density P, 3 (a - c) (loss - b) / h^2 times the
// window's density over P is an unbiased estimate of the slope in c of the loss smoothed by the Epanechnikov kernel.
#pragma once

#include "contexts/dense_context.hpp"
#include "models/policy_model.hpp"
#include "models/settings.hpp"

namespace manul::MANUL_SIMD {

class LinearModel final : public ReplayByWindow<PolicyModel> {
 public:
  explicit LinearModel(const LinearSettings& settings)
      : settings_(settings), context_(settings.width, true), weights_(context_.stride()), squares_(context_.stride()) {}

  Window window(const ContextView& context, Range within) override {
    context_.look(context);
    return {clip_to_fit(target(), within), settings_.bandwidth};
  }

  void learn(const ContextView& context, const Outcome& outcome) override {
    context_.look(context);
    const double wanted = target(), centre = clip_to_fit(wanted, outcome.within);
    const double slope = slope_at(centre, outcome);
    // Outside the clipping range the loss does not depend on the weights; only steps back towards the range are taken.
    if ((wanted - centre) * slope >= 0.0) step(static_cast<float>(slope));
    context_.count(context);
    rounds_ += 1.0;
    baseline_ += (outcome.loss - baseline_) / smaller(rounds_, smaller(memory, 1.0 / (1.0 - context_.retention())));
  }

  void forget(double half_life) override { context_.forget(half_life); }

  std::size_t arrays() const override { return 4 + DenseContext::moments_arrays; }

  Array array(std::size_t index) override {
    if (index >= 4) return context_.moments(index - 4);
    const Array all[] = {
        {"weights", "f4", weights_.data(), weights_.size()},
        {"squares", "f4", squares_.data(), squares_.size()},
        {"baseline", "f8", &baseline_, 1},
        {"rounds", "f8", &rounds_, 1},
    };
    return all[index];
  }

 private:
  static constexpr double memory = 10000.0;  // rounds in the running mean of the loss, which follows the policy

  double span() const { return settings_.actions.high - settings_.actions.low; }

  // Weights are in units of the range; the initial action is its middle.
  double target() const {
    const double position = 0.5 + dot(weights_.data(), context_.row(), context_.stride());
    return settings_.actions.low + span() * position;
  }

  double clip_to_fit(double action, Range within) const {
    return clip(action, within.low + settings_.bandwidth, within.high - settings_.bandwidth);
  }

  // In units of the range.
  double slope_at(double centre, const Outcome& outcome) const {
    const double away = outcome.action - centre, h = settings_.bandwidth;
    if (absolute(away) > h) return 0.0;
    const double ratio = 1.0 / (2.0 * h * outcome.density);
    return 3.0 * away * (outcome.loss - baseline_) / (h * h) * ratio * span();
  }

  // AdaGrad; `tiny` avoids 0 / 0.
  void step(float slope) {
    constexpr float tiny = 1e-12f;
    const float rate = static_cast<float>(settings_.rate);
    groups(context_.stride(), [&]<class V>(V, std::size_t i) {
      const V gradient = slope * load<V>(context_.row() + i);
      const V squares = context_.retention() * load<V>(&squares_[i]) + gradient * gradient;
      store(&squares_[i], squares);
      store(&weights_[i], load<V>(&weights_[i]) - rate * gradient / (root(squares) + tiny));
    });
  }

  LinearSettings settings_;
  DenseContext context_;
  Buffer<float> weights_, squares_;
  double baseline_ = 0.0, rounds_ = 0.0;
};

}  // namespace manul::MANUL_SIMD
