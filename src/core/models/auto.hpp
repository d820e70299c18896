// Auto, a critic: it models the loss of every action in every context and chooses near the minimum. Not from the paper.
//
// A small ensemble of networks, corrected by a forest of regression trees, trained on replayed rounds, predicts the
// loss. The greedy action minimises the predicted loss smoothed by the bandwidth, which shrinks as rounds and accuracy
// grow and is narrower where that loss is steep. When predictions suddenly become worse, the world has changed:
// learning restarts with the current weights.
#pragma once

#include "critic/prior.hpp"
#include "models/first_actions.hpp"
#include "models/settings.hpp"
#include "models/start.hpp"
#include "parts/formula_play.hpp"

namespace manul::MANUL_SIMD {

class AutoModel final : public LossLearnerModel<ReplayByWindow<CriticModel>> {
 public:
  explicit AutoModel(const AutoSettings& settings)
      : LossLearnerModel(settings.width, settings.features, 1, true, settings.unknown_losses, settings.seed,
                         settings.early),
        actions_(settings.actions), bandwidth_(settings.bandwidth), start_(unit(settings.start)),
        formula_(settings.parts, settings.width, settings.features > 0) {
    if (start_ >= 0.0) learner_.take_start();
    if (!settings.prior) return;
    prior_ = new Prior(settings.width, settings.features, settings.unknown_losses);
    learner_.take_prior();
  }

  double age(double rounds) const override { return formula_.age(LossLearnerModel::age(rounds)); }
  double exploring() const override { return formula_.leads() ? 1.0 : LossLearnerModel::exploring(); }

  ~AutoModel() override { delete prior_; }

  Window window(const ContextView& context, Range all) override {
    double values[FormulaPlay::points];
    if (predict(context, values)) return formula_window(values, all, bandwidth_);
    if (formula_.starts()) return formula_start(all);
    const Range within = startable(all);
    const double half = 0.5 * (within.high - within.low);
    if (formula_.explores()) return first_window(within, formula_.explored());
    if (!learner_.predicts()) return first_window(within, learner_.replay().remembered());
    if (bandwidth_ > 0.0) return best_window(context, within, bandwidth_, true);
    const Range range = {unit(within.low), unit(within.high)};
    const double h = smaller(learner_.bandwidth(), 0.5 * (range.high - range.low));
    look(context, true);
    const double rough = minimum(range, coarse, h), reach = (range.high - range.low) / coarse + h;
    double centre = minimum(around(rough, reach, range), fine, h);
    const double narrow = smaller(h, larger(LossLearner::narrowest, h / steepness(centre, h, range)));
    if (narrow < h) centre = minimum(around(centre, h, range), fine, narrow);
    const double wide = smaller(narrow * length(), half);
    return {clip(actions_.low + centre * length(), within.low + wide, within.high - wide), wide};
  }

  Window best_window(const ContextView& context, Range within, double bandwidth) override {
    double values[FormulaPlay::points];
    if (predict(context, values)) return formula_window(values, within, bandwidth);
    return best_window(context, within, bandwidth, false);
  }

  bool inherit(const CriticModel& sister) override {
    return formula_.inherit(static_cast<const AutoModel&>(sister).formula_);
  }

  void learn(const ContextView& context, const Outcome& outcome) override {
    const double action = unit(outcome.action);
    if (!formula_.empty()) learn_parts(context, action, outcome);
    double expected = 0.0;
    if (prior_ != nullptr) {
      prior_->look(context);
      expected = prior_->predict(action);
    }
    learner_.learn(context, &action, outcome.density * length(), outcome.loss, expected);
    if (prior_ != nullptr && !learner_.has_prior()) {
      delete prior_;
      prior_ = nullptr;
    }
  }

  FormulaReport formula_report() const override { return formula_.report(); }
  Prices& prices() override { return formula_.prices(); }
  Expectation expectation() const override { return formula_.expectation(); }
  double spent(double action) const override { return formula_.spent(unit(action)); }

  CriticReport report() const override {
    CriticReport all = learner_.report();
    if (formula_.leads()) all.bandwidth = formula_.bandwidth();
    all.bandwidth = learner_.predicts() && bandwidth_ > 0.0 ? bandwidth_ : all.bandwidth * length();
    return all;
  }

  void predict(const ContextView& context, const double* actions, std::size_t count, double* losses) override {
    for (std::size_t i = 0; i < count; ++i) losses[i] = unit(actions[i]);
    double values[FormulaPlay::points];
    if (!predict(context, values)) return predict_losses(context, losses, count, losses);
    for (std::size_t i = 0; i < count; ++i)
      losses[i] = formula_.scaled_loss(ActionBasis::Place(losses[i]).value(values));
  }

  void start() override {
    learner_.start();
    if (prior_ != nullptr) prior_->start();
  }

  void resume() override {
    if (prior_ != nullptr) prior_->resume();
    if (prior_ != nullptr && learner_.replay().rounds() == 0.0) learner_.adopt_features(prior_->learner());
    learner_.resume();
    formula_.resume();
  }

  bool is_valid() const override {
    return learner_.is_valid() && formula_.is_valid() && (prior_ == nullptr || prior_->is_valid());
  }

  std::size_t arrays() const override { return own_arrays() + (prior_ == nullptr ? 0 : prior_->arrays()); }

  Array array(std::size_t index) override {
    if (index < learner_.arrays()) return learner_.array(index);
    return index < own_arrays() ? formula_.array(index - learner_.arrays()) : prior_->array(index - own_arrays());
  }

  void fit(std::size_t index, std::size_t size) override {
    if (index < learner_.arrays()) return learner_.fit(index, size);
    if (index >= own_arrays()) prior_->fit(index - own_arrays(), size);
  }

 private:
  // Numbers of actions scored to find the minimum, to refine it, and to measure its slope; multiples of 16.
  static constexpr std::size_t coarse = 64, fine = 32, sides = 16;

  // Sets the context of predictions.
  void look(const ContextView& context, bool optimistic) {
    if (prior_ == nullptr) return learner_.look(context, optimistic);
    prior_->look(context);
    learner_.look(context, optimistic, prior_->curve());
  }

  Window best_window(const ContextView& context, Range within, double bandwidth, bool optimistic) {
    const double wide = smaller(bandwidth, 0.5 * (within.high - within.low));
    look(context, optimistic);
    const Range range = {unit(within.low), unit(within.high)};
    const double h = wide / length(), reach = (range.high - range.low) / coarse + h;
    const double centre = minimum(around(minimum(range, coarse, h), reach, range), fine, h);
    return {clip(actions_.low + centre * length(), within.low + wide, within.high - wide), wide};
  }

  // Before losses are predicted, or after a wrong formula; apart from the `newest` actions.
  Window first_window(Range within, double newest) const {
    const double half = 0.5 * (within.high - within.low);
    if (!learner_.spreads_first_actions()) return {0.5 * (within.low + within.high), half};
    const Window found = MANUL_SIMD::first_window(learner_.replay(), actions_, within, newest);
    const double wide = smaller(larger(found.bandwidth, bandwidth_), half);
    return {clip(found.centre, within.low + wide, within.high - wide), wide};
  }

  // What windows may use of a range in the rounds after a start.
  Range startable(Range within) const {
    if (!(start_ >= 0.0)) return within;
    const Range part =
        near_start({unit(within.low), unit(within.high)}, start_, larger(learner_.reach(), bandwidth_ / length()));
    return {clip(actions_.low + part.low * length(), within.low, within.high),
            clip(actions_.low + part.high * length(), within.low, within.high)};
  }

  // The values of the formula on its grid; false if there are none.
  bool predict(const ContextView& context, double* values) {
    const auto critic = [&](const double* positions, double* losses) {
      if (learner_.is_warm()) predict_losses(context, positions, FormulaPlay::points, losses);
      return learner_.is_warm();
    };
    return formula_.predict(context, critic, values);
  }

  // The losses that the critic predicts at positions.
  void predict_losses(const ContextView& context, const double* positions, std::size_t count, double* losses) {
    look(context, false);
    float units[16] = {}, predicted[16];
    for (std::size_t first = 0; first < count; first += 16) {
      const std::size_t size = count - first < 16 ? count - first : 16;
      for (std::size_t i = 0; i < size; ++i) units[i] = static_cast<float>(positions[first + i]);
      learner_.score(units, 16, predicted);
      for (std::size_t i = 0; i < size; ++i) losses[first + i] = learner_.replay().original(predicted[i]);
    }
  }

  void learn_parts(const ContextView& context, double position, const Outcome& outcome) {
    double critic = __builtin_nan("");
    if (outcome.parts != nullptr && learner_.is_warm()) predict_losses(context, &position, 1, &critic);
    formula_.learn(context, position, outcome, critic);
  }

  Window formula_window(const double* values, Range within, double bandwidth) {
    const Window found = formula_.window(values, {unit(within.low), unit(within.high)}, bandwidth / length());
    const double wide = smaller(found.bandwidth * length(), 0.5 * (within.high - within.low));
    const double centre = clip(actions_.low + found.centre * length(), within.low + wide, within.high - wide);
    return {centre, wide, found.most_exploring};
  }

  // Near the start, while the formula cannot be evaluated.
  Window formula_start(Range within) const {
    const double wide = smaller(formula_.start_width * length(), 0.5 * (within.high - within.low));
    return {clip(actions_.low + formula_.start() * length(), within.low + wide, within.high - wide), wide};
  }

  std::size_t own_arrays() const { return learner_.arrays() + formula_.arrays(); }

  double length() const { return actions_.high - actions_.low; }
  double unit(double action) const { return (action - actions_.low) / length(); }

  static Range around(double centre, double reach, Range range) {
    return {larger(range.low, centre - reach), smaller(range.high, centre + reach)};
  }

  // The mean slope of the predicted loss towards both ends of the window, in standard units per range of actions, but
  // at least 1. On steeper sides the same noise corresponds to a smaller distance, so a narrower window is as
  // informative.
  double steepness(double centre, double h, Range range) const {
    float actions[sides], losses[sides];
    for (std::size_t i = 0; i < sides; ++i) {
      const double place = (static_cast<double>(i) + 0.5) / (0.5 * sides) - 1.0;
      actions[i] = static_cast<float>(clip(centre + h * place, range.low, range.high));
    }
    learner_.score(actions, sides, losses);
    double rise = 0.0;
    for (std::size_t i = 0; i < sides; ++i) rise += i < sides / 4 || i >= 3 * sides / 4 ? losses[i] : -losses[i];
    return larger(rise / (0.25 * sides * h), 1.0);
  }

  // The centre of the best window among those around `points` equidistant actions.
  double minimum(Range range, std::size_t points, double h) const {
    float actions[coarse], losses[coarse];
    double sums[coarse + 1] = {};
    const double step = (range.high - range.low) / static_cast<double>(points);
    for (std::size_t i = 0; i < points; ++i)
      actions[i] = static_cast<float>(range.low + (static_cast<double>(i) + 0.5) * step);
    learner_.score(actions, points, losses);
    for (std::size_t i = 0; i < points; ++i) sums[i + 1] = sums[i] + losses[i];
    const double reach = h / step + 0.5;  // NaN if the range is too narrow for its parts to differ
    const std::size_t radius = reach < static_cast<double>(points) ? static_cast<std::size_t>(reach) : points;
    double best = 0.0, lowest = 1e300;
    for (std::size_t i = 0; i < points; ++i) {
      const std::size_t first = i > radius ? i - radius : 0, last = i + radius < points ? i + radius + 1 : points;
      const double smoothed = (sums[last] - sums[first]) / static_cast<double>(last - first);
      if (smoothed >= lowest) continue;
      lowest = smoothed;
      best = actions[i];
    }
    return best;
  }

  Range actions_;
  double bandwidth_;  // 0 if the model chooses it
  double start_;      // a position, or not a number
  FormulaPlay formula_;
  Prior* prior_ = nullptr;
};

}  // namespace manul::MANUL_SIMD
