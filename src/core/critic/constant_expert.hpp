// Predicts the loss of an action whatever the context is: the mean losses in 32 bins of the action, smoothed.
//
// The losses of bins are a Gaussian process with a constant, averaged over eight settings of its kernel by their
// evidence. With many irrelevant features or rare rewards it finds the best constant action long before a model of
// contexts does.
#pragma once

#include "critic/early_kernel.hpp"
#include "critic/replay_buffer.hpp"

namespace manul::MANUL_SIMD {

class ConstantExpert {
 public:
  static constexpr std::size_t bins = 32;

  ConstantExpert() {
    for (std::size_t l = 0; l < lengths; ++l)
      for (std::size_t b = 0; b < bins; ++b) {
        const double apart = static_cast<double>(b) / static_cast<double>(bins) / length[l];
        table_[l][b] = EarlyKernel::matern(apart * 2.23606797749979);
      }
  }

  // Whether two different losses were seen.
  bool is_ready() const { return state_.ready != 0.0; }

  // The mean of the losses before.
  double mean() const { return state_.rounds > 0.0 ? state_.offset + state_.sum / state_.rounds : 0.0; }

  // The predicted loss at an action, and its standard deviation.
  double predict(double action) const { return between(state_.means, action); }
  double deviation(double action) const { return between(state_.deviations, action); }

  // Learns from the newest round, number `n` since the start; the unit of losses may still change in the early ones.
  void learn(const ReplayBuffer& replay, double n) {
    add(replay, replay.slot(0));
    if (n < state_.next && is_ready()) return;
    if (n <= static_cast<double>(ReplayBuffer::early) && replay.rounds() - n >= replay.oldest()) {
      state_ = {.ready = state_.ready};
      for (double age = n; age > 0.0; age -= 1.0) add(replay, replay.slot(static_cast<std::size_t>(age - 1.0)));
    }
    state_.next = n + larger(1.0, __builtin_floor(n / 16.0));
    update();
  }

  void restart() { state_ = {}; }

  bool is_valid() const {
    bool all = is_count(state_.rounds) && finite(state_.offset) && finite(state_.sum) && finite(state_.squares) &&
               is_count(state_.next) && (state_.ready == 0.0 || state_.ready == 1.0);
    for (std::size_t b = 0; b < bins; ++b)
      all = all && is_count(state_.counts[b]) && finite(state_.sums[b]) && finite(state_.means[b]) &&
            finite(state_.deviations[b]);
    return all;
  }

  Array array() { return {"constant_expert", "f8", &state_, sizeof state_ / sizeof(double)}; }

 private:
  static constexpr std::size_t lengths = 2, shares = 4;
  static constexpr double length[lengths] = {0.2, 0.6};             // of the kernel, as shares of the range
  static constexpr double share[shares] = {0.003, 0.03, 0.3, 3.0};  // variance of the curve per variance of the noise
  static constexpr double level = 4.0;                              // variance of the constant
  static constexpr double prior_rounds = 5.0;                       // of the noise

  struct State {
    double rounds = 0.0, offset = 0.0, sum = 0.0, squares = 0.0;  // of losses minus the offset, the first loss
    double next = 0.0, ready = 0.0;                               // the round of the next update
    double counts[bins] = {}, sums[bins] = {}, means[bins] = {}, deviations[bins] = {};
  };

  static std::size_t bin(double action) {
    return static_cast<std::size_t>(clip(action * static_cast<double>(bins), 0.0, static_cast<double>(bins - 1)));
  }

  static double between(const double* values, double action) {
    const double place = clip(action * static_cast<double>(bins) - 0.5, 0.0, static_cast<double>(bins - 1));
    const auto near = static_cast<std::size_t>(smaller(place, static_cast<double>(bins - 2)));
    return values[near] + (place - static_cast<double>(near)) * (values[near + 1] - values[near]);
  }

  void add(const ReplayBuffer& replay, std::size_t slot) {
    const double loss = replay.bounded_loss(slot);
    if (state_.rounds == 0.0) state_.offset = loss;
    const double above = loss - state_.offset;
    const std::size_t b = bin(replay.action(slot)[0]);
    state_.rounds += 1.0, state_.sum += above, state_.squares += above * above;
    state_.counts[b] += 1.0, state_.sums[b] += above;
  }

  void update() {
    const double n = state_.rounds, mean = state_.sum / n, variance = state_.squares / n - mean * mean;
    state_.ready = variance > rounding * state_.squares / n ? 1.0 : 0.0;
    if (!is_ready()) return;
    double within = state_.squares, evidence[lengths * shares], best = -__builtin_inf();
    used_ = 0;
    for (std::size_t b = 0; b < bins; ++b) {
      if (state_.counts[b] == 0.0) continue;
      within -= state_.sums[b] * state_.sums[b] / state_.counts[b];
      places_[used_] = b, means_[used_++] = state_.sums[b] / state_.counts[b] - mean;
    }
    const double noise = prior_rounds * variance + larger(0.0, within);
    double means[lengths * shares][bins], variances[lengths * shares][bins];
    for (std::size_t s = 0; s < lengths * shares; ++s) {
      evidence[s] = solve(share[s / lengths], table_[s % lengths], noise, means[s], variances[s]);
      best = larger(best, evidence[s]);
    }
    double total = 0.0;
    for (double& each : evidence) total += each = exponential(each - best);
    for (std::size_t b = 0; b < bins; ++b) {
      double first = 0.0, second = 0.0;
      for (std::size_t s = 0; s < lengths * shares; ++s) {
        first += evidence[s] / total * means[s][b];
        second += evidence[s] / total * (variances[s][b] + means[s][b] * means[s][b]);
      }
      state_.means[b] = state_.offset + mean + first;
      state_.deviations[b] = __builtin_sqrt(larger(0.0, second - first * first));
    }
  }

  // The predictions for all bins with one setting of the kernel, and the logarithm of its evidence.
  double solve(double rho, const double* near, double noise, double* means, double* variances) {
    double factor[bins][bins], solved[bins][bins], weights[bins], explained[bins], squares = 0.0, evidence = 0.0;
    for (std::size_t b = 0; b < bins; ++b) means[b] = explained[b] = 0.0;
    for (std::size_t i = 0; i < used_; ++i) {
      const std::size_t own = places_[i];
      const auto covariance = [&](std::size_t b) { return level + rho * near[b > own ? b - own : own - b]; };
      for (std::size_t b = 0; b < bins; ++b) solved[i][b] = covariance(b);
      weights[i] = means_[i];
      for (std::size_t j = 0; j < i; ++j) {
        double rest = covariance(places_[j]);
        for (std::size_t k = 0; k < j; ++k) rest -= factor[i][k] * factor[j][k];
        factor[i][j] = rest / factor[j][j];
      }
      double pivot = level + rho + 1.0 / state_.counts[own];
      for (std::size_t j = 0; j < i; ++j) {
        pivot -= factor[i][j] * factor[i][j];
        weights[i] -= factor[i][j] * weights[j];
        for (std::size_t b = 0; b < bins; b += double_lanes)
          store(&solved[i][b], load(&solved[i][b]) - factor[i][j] * load(&solved[j][b]));
      }
      factor[i][i] = __builtin_sqrt(larger(pivot, 1e-12));
      const double inverse = 1.0 / factor[i][i];
      weights[i] *= inverse;
      squares += weights[i] * weights[i];
      evidence -= logarithm(factor[i][i]);
      for (std::size_t b = 0; b < bins; b += double_lanes) {
        const Doubles own_row = inverse * load(&solved[i][b]);
        store(&solved[i][b], own_row);
        store(means + b, load(means + b) + weights[i] * own_row);
        store(explained + b, load(explained + b) + own_row * own_row);
      }
    }
    const double rounds = state_.rounds + prior_rounds, scale = larger(noise + squares, 1e-300);
    for (std::size_t b = 0; b < bins; ++b) variances[b] = scale / rounds * larger(0.0, level + rho - explained[b]);
    return evidence - 0.5 * rounds * logarithm(scale);
  }

  static constexpr double rounding = 1e-12;  // of the variance, relative to the squares: less is none

  double table_[lengths][bins];
  std::size_t used_ = 0, places_[bins];  // bins with losses
  double means_[bins];                   // their mean losses minus that of all
  State state_;
};

}  // namespace manul::MANUL_SIMD
