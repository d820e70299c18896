// Auto, a critic: it models the loss of every action in every context and chooses near the minimum. Not from the paper.
//
// A small ensemble of networks, corrected by a forest of regression trees, trained on replayed rounds, predicts the
// loss. The greedy action minimises the predicted loss smoothed by the bandwidth, which shrinks as rounds and accuracy
// grow and is narrower where that loss is steep. When predictions suddenly become worse, the world has changed:
// learning restarts with the current weights.
#pragma once

#include "critic/critic.hpp"
#include "critic/drift_detector.hpp"
#include "models/settings.hpp"

namespace manul::MANUL_SIMD {

class AutoModel final : public ReplayByWindow<CriticModel> {
 public:
  explicit AutoModel(const AutoSettings& settings)
      : actions_(settings.actions), bandwidth_(settings.bandwidth),
        replay_(settings.width, settings.features, settings.unknown_losses),
        critic_(settings.width, settings.features, replay_, settings.seed) {}

  Window window(const ContextView& context, Range within) override {
    const double half = 0.5 * (within.high - within.low);
    if (replay_.rounds() < warm_up) return {0.5 * (within.low + within.high), half};
    if (bandwidth_ > 0.0) return best_window(context, within, bandwidth_);
    critic_.ensemble().start();
    const Range range = {unit(within.low), unit(within.high)};
    const double h = smaller(bandwidth(), 0.5 * (range.high - range.low));
    critic_.look(replay_, context);
    const double rough = minimum(range, coarse, h), reach = (range.high - range.low) / coarse + h;
    double centre = minimum(around(rough, reach, range), fine, h);
    const double narrow = smaller(h, larger(narrowest, h / steepness(centre, h, range)));
    if (narrow < h) centre = minimum(around(centre, h, range), fine, narrow);
    const double wide = smaller(narrow * length(), half);
    return {clip(actions_.low + centre * length(), within.low + wide, within.high - wide), wide};
  }

  Window best_window(const ContextView& context, Range within, double bandwidth) override {
    const double wide = smaller(bandwidth, 0.5 * (within.high - within.low));
    critic_.ensemble().start();
    critic_.look(replay_, context);
    const Range range = {unit(within.low), unit(within.high)};
    const double h = wide / length(), reach = (range.high - range.low) / coarse + h;
    const double centre = minimum(around(minimum(range, coarse, h), reach, range), fine, h);
    return {clip(actions_.low + centre * length(), within.low + wide, within.high - wide), wide};
  }

  void learn(const ContextView& context, const Outcome& outcome) override {
    replay_.remember(context, unit(outcome.action), outcome.density * length(), outcome.loss);
    if (context.kind == ContextKind::hashed) critic_.ensemble().add_features(context);
    change_.age += 1.0;
    if (replay_.rounds() < warm_up) return critic_.remember(replay_);
    critic_.ensemble().start();
    if (!monitor_.detects_change(critic_.learn(replay_, change_.age))) return;
    change_ = {monitor_.restart(), change_.alarms + 1.0, replay_.rounds()};
    critic_.restart();
  }

  CriticReport report() const override {
    CriticReport all = {};
    critic_.ensemble().member_shares(all.weights);
    for (std::size_t m = 0; m < Ensemble::members; ++m)
      all.errors[m] = __builtin_sqrt(critic_.ensemble().error(m)) / replay_.gain();
    all.bandwidth = replay_.rounds() < warm_up ? 0.5 * length()
                    : bandwidth_ > 0.0         ? bandwidth_
                                               : bandwidth() * length();
    all.forest = critic_.weight();
    all.trees = static_cast<double>(critic_.trees());
    all.noise = monitor_.sigma() / replay_.gain();
    all.rounds = replay_.rounds();
    all.memory = smaller(change_.age, replay_.remembered());
    all.alarms = change_.alarms;
    all.last_alarm = change_.last_alarm;
    all.clipped = replay_.clipped();
    return all;
  }

  void predict(const ContextView& context, const double* actions, std::size_t count, double* losses) override {
    critic_.ensemble().start();
    critic_.look(replay_, context);
    float units[16] = {}, predicted[16];
    for (std::size_t first = 0; first < count; first += 16) {
      const std::size_t size = count - first < 16 ? count - first : 16;
      for (std::size_t i = 0; i < size; ++i) units[i] = static_cast<float>(unit(actions[first + i]));
      critic_.score(units, 16, predicted);
      for (std::size_t i = 0; i < size; ++i) losses[first + i] = replay_.original(predicted[i]);
    }
  }

  double age(double) const override { return change_.age; }

  // No half-life: the monitor detects when old evidence is outdated.
  void forget(double) override {}

  void start() override { critic_.ensemble().start(); }

  void resume() override { critic_.resume(replay_); }

  bool is_valid() const override {
    return replay_.is_valid() && critic_.is_valid(replay_) && monitor_.is_valid() && is_count(change_.age) &&
           is_count(change_.alarms) && is_count(change_.last_alarm);
  }

  std::size_t unsaved_bytes() const override { return critic_.unsaved_bytes(); }

  std::size_t arrays() const override { return replay_.arrays() + critic_.arrays() + 2; }

  Array array(std::size_t index) override {
    if (index < replay_.arrays()) return replay_.array(index);
    index -= replay_.arrays();
    if (index < critic_.arrays()) return critic_.array(index);
    if (index == critic_.arrays()) return {"monitor", "f8", &monitor_, sizeof monitor_ / sizeof(double)};
    return {"change", "f8", &change_, sizeof change_ / sizeof(double)};
  }

  void fit(std::size_t index, std::size_t size) override {
    if (index < replay_.arrays()) return replay_.fit(index, size);
    index -= replay_.arrays();
    if (index < critic_.ensemble().arrays()) critic_.ensemble().fit(index, size);
  }

 private:
  static constexpr double warm_up = 10.0;  // rounds of uniform exploration before the first step of training
  // Numbers of actions scored to find the minimum, to refine it, and to measure its slope; multiples of 16.
  static constexpr std::size_t coarse = 64, fine = 32, sides = 16;
  // Bandwidths in units of the range: the first, per standard deviation of the noise, and the last.
  static constexpr double widest = 0.05, per_noise = 1.5, narrowest = 1.0 / 1024.0;
  static constexpr double narrowing = 100.0;  // rounds after which the bandwidth begins to shrink

  double length() const { return actions_.high - actions_.low; }
  double unit(double action) const { return (action - actions_.low) / length(); }

  static Range around(double centre, double reach, Range range) {
    return {larger(range.low, centre - reach), smaller(range.high, centre + reach)};
  }

  // The bandwidth in units of the range if the predicted loss is not steep.
  double bandwidth() const {
    const double first = smaller(widest, per_noise * monitor_.sigma());
    return larger(first / __builtin_sqrt(__builtin_sqrt(1.0 + change_.age / narrowing)), narrowest);
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
    critic_.score(actions, sides, losses);
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
    critic_.score(actions, points, losses);
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

  struct Change {
    double age = 0.0, alarms = 0.0, last_alarm = 0.0;
  };

  Range actions_;
  double bandwidth_;  // 0 if the model chooses it
  ReplayBuffer replay_;
  Critic critic_;
  DriftDetector monitor_;
  Change change_;
};

}  // namespace manul::MANUL_SIMD
