// What predicts losses beside the networks and trees, the rest of the critic, while these have few rounds: a Gaussian
// process, and the best constant action.
//
//   own = w process + (1 - w) constant        critic = (1 - g) (rest + g1 (constant - rest)) + g own
//
// Weights come from predictions that were made before their losses were known. w and the evidence for exploring less
// are tests that heavy tails do not fool: the sum of differences of squared errors, divided by the root of the sum of
// their squares. The share g is a regression as in the critic that starts at 1. The process learns from 384 rounds and
// fades out until round 1,536, when it is dropped; the constant action may keep a share. The constants were chosen by
// experiment: docs/ablation-auto.md.
#pragma once

#include "critic/constant_expert.hpp"
#include "critic/early_process.hpp"
#include "critic/early_surface.hpp"
#include "critic/error_regression.hpp"

namespace manul::MANUL_SIMD {

class EarlyExperts {
 public:
  // The constant action is for one knob only. Experts that are not active do nothing, as in files of older versions.
  EarlyExperts(const ReplayBuffer& replay, bool one_knob, bool active)
      : one_knob_(one_knob), process_(replay.column_count(), replay.action_columns()), errors_(most),
        curve_(EarlyFactor::nodes) {
    if (!active) state_ = {.active = 0.0, .running = 0.0, .weight = 0.0};
  }

  // The share of own in the prediction.
  double share() const {
    if (!predicts()) return has_prior_only() ? 1.0 : 0.0;
    const double prior = prior_rounds * state_.rest.mean(), square = state_.own.square + prior;
    return fade() * (square > 0.0 ? clip((state_.own.product + prior) / square, 0.0, 1.0) : 1.0);
  }

  // The share of the constant action in the rest.
  double constant_share() const {
    if (!constant_.is_ready() || state_.active == 0.0) return 0.0;
    const double prior = prior_rounds * state_.lasting_rest.mean(), square = state_.constant.square + prior;
    if (!(square > 0.0)) return 0.0;
    const bool contextual = state_.contextual != 0.0;
    const double first = contextual ? 1.0 - state_.weight : 1.0;
    const double found = most_lasting * clip((state_.constant.product + prior * first) / square, 0.0, 1.0) *
                         (1.0 - fade()) * (1.0 - Test::logistic(state_.against_rest.z())) *
                         (contextual ? clip(2.0 - 2.0 * state_.weight, 0.0, 1.0) : 1.0);
    return found < least_share ? 0.0 : found;
  }

  // The factor of epsilon: what is known of the losses need not be explored.
  double exploring() const { return 1.0 - most_spared * (has_prior_only() ? 1.0 : state_.evidence); }

  // The factor of the bandwidth.
  double narrowing() const { return 1.0 - (one_knob_ ? 0.75 : 0.5) * share(); }

  // Begins to take predictions by a prior, which the process then starts from.
  void take_prior() { process_.take_prior(); }
  bool has_prior() const { return process_.has_prior(); }

  // The share of the prior in the prediction, not a number without one.
  double prior_share() const {
    if (!has_prior()) return __builtin_nan("");
    return share() * (predicts() ? state_.weight * process_.prior_share() : has_prior_only() ? 1.0 : 0.0);
  }

  // Learns from the newest round; `rest` is the error of the earlier prediction by the rest in standard units, if it is
  // judged yet; the prior predicted `expected`. Returns the error of all.
  double learn(ReplayBuffer& replay, double rest, bool is_judged, double expected) {
    if (state_.active == 0.0) return rest;
    has_constant_curve_ = false;
    state_.age += 1.0;
    const std::size_t slot = replay.slot(0), n = static_cast<std::size_t>(state_.age);
    const double loss = replay.bounded_loss(slot), gain = replay.gain();
    const double mean = constant_.is_ready() ? constant_.predict(replay.action(slot)[0]) : constant_.mean();
    const double constant = n > 1 ? loss - mean : 0.0;
    const bool predicted = predicts();
    const double g = share(), g1 = constant_share();
    double process = 0.0;
    if (n <= most && state_.running != 0.0) {
      process_.reserve(true);
      errors_[n - 1] = constant;
      process_.learn(replay, n, expected);
      const EarlyFactor& factor = process_.factor();
      if (predicted) process = loss - factor.to_loss(factor.bound(factor.loss(n - 1) - factor.residual(n - 1)));
    } else if (predicted) {
      double action[most_action_columns];
      for (std::size_t k = 0; k < replay.action_columns(); ++k) action[k] = replay.action(slot)[k];
      process_.factor().look(replay.columns(slot));
      process = loss - process_.factor().to_loss(process_.factor().predict(action, expected));
    }
    if (has_prior_only()) process = loss - expected;
    if (has_prior() && n > 1) process_.against_mean().add(loss - constant_.mean(), loss - expected);
    const double own = gain * (state_.weight * process + (1.0 - state_.weight) * constant);
    const double others = rest + g1 * (gain * constant - rest);
    if (is_judged) judge(rest, own, gain * constant, predicted);
    if (one_knob_) constant_.learn(replay, state_.age);
    if (n <= most && state_.running != 0.0) {
      process_.advance(replay, n);
      if (process_.is_ready()) test(n);
    }
    if (state_.age >= retirement || replay.oldest() > replay.rounds() - state_.age) {
      state_.running = 0.0;
      process_.drop_prior();
      process_.reserve(false);
    }
    return others + g * (own - others);
  }

  // After a change of the world.
  void restart() {
    if (state_.active == 0.0) return;
    state_ = {};
    process_.restart();
    constant_.restart();
  }

  // Sets the context for `score`; `optimistic` subtracts a part of their standard deviation from own predictions. The
  // prior has a curve over all actions, in units of losses.
  void look(ReplayBuffer& replay, const ContextView& context, bool optimistic, const double* prior) {
    const double g = share(), g1 = constant_share();
    rest_ = static_cast<float>((1.0 - g) * (1.0 - g1));
    if (g == 0.0 && (g1 == 0.0 || has_constant_curve_)) return;
    has_constant_curve_ = g == 0.0;
    const double weight = g * state_.weight, constant = g * (1.0 - state_.weight) + (1.0 - g) * g1;
    const double doubt = optimistic ? optimism * g * (1.0 - state_.weight) : 0.0;
    double values[EarlyFactor::nodes] = {}, deviations[EarlyFactor::doubts] = {}, unit = 0.0;
    if (has_prior_only()) {
      for (std::size_t i = 0; i <= EarlyFactor::cells; ++i) values[i] = replay.standard(prior[i]);
    } else if (weight > 0.0) {
      EarlyFactor& factor = process_.factor();
      factor.look(replay.columns(context));
      factor.curve(values, prior);
      if (optimistic) factor.deviations(deviations);
      for (double& value : values) value = (factor.to_loss(value) - replay.original(0.0)) * replay.gain();
      unit = factor.loss_unit() * replay.gain() * (1.0 - certainty * process_.prior_share());
    }
    for (std::size_t i = 0; i <= EarlyFactor::cells; ++i) {
      const double action = static_cast<double>(i) / static_cast<double>(EarlyFactor::cells);
      double value = weight * (values[i] - optimism * unit * between(deviations, i));
      if (constant > 0.0)
        value += replay.gain() *
                 (constant * (constant_.predict(action) - replay.original(0.0)) - doubt * constant_.deviation(action));
      curve_[i] = static_cast<float>(value);
    }
  }

  // The same for several knobs.
  void look(ReplayBuffer& replay, const ContextView& context, EarlySurface& surface) {
    const double g = share();
    if (g == 0.0) return surface.clear();
    process_.factor().look(replay.columns(context));
    surface.look(process_.factor(), g, replay.original(0.0), replay.gain());
  }

  // Adds own predictions to those of the rest, in standard units.
  void score(const float* actions, std::size_t size, float* losses) const {
    if (rest_ == 1.0f) return;
    constexpr auto last = static_cast<float>(EarlyFactor::cells);
    for (std::size_t i = 0; i < size; ++i) {
      const float place = last * (actions[i] > 0.0f ? (actions[i] < 1.0f ? actions[i] : 1.0f) : 0.0f);
      const auto node = static_cast<std::size_t>(place < last ? place : last - 1.0f);
      const float* at = curve_.data() + node;
      losses[i] = rest_ * losses[i] + at[0] + (place - static_cast<float>(node)) * (at[1] - at[0]);
    }
  }

  void resume(ReplayBuffer& replay) {
    has_constant_curve_ = false;
    const bool runs = state_.running != 0.0 && state_.age > 0.0;
    process_.reserve(runs);
    if (runs) process_.resume(replay, static_cast<std::size_t>(state_.age));
  }

  bool is_valid(const ReplayBuffer& replay) const {
    const double* all = reinterpret_cast<const double*>(&state_);
    for (std::size_t i = 0; i < sizeof state_ / sizeof(double); ++i)
      if (!finite(all[i])) return false;
    for (std::size_t i = 0; i < most; ++i)
      if (!finite(errors_.data()[i])) return false;
    const bool remembered =
        is_count(state_.age) && state_.age <= replay.rounds() &&
        (state_.running == 0.0 || (state_.age < retirement && replay.rounds() - state_.age >= replay.oldest()));
    return remembered && constant_.is_valid() && process_.is_valid(static_cast<std::size_t>(state_.age));
  }

  std::size_t unsaved_bytes() const { return process_.unsaved_bytes(); }

  std::size_t arrays() const { return process_.arrays() + 3; }

  Array array(std::size_t index) {
    if (index < process_.arrays()) return process_.array(index);
    index -= process_.arrays();
    if (index == 0) return {"early", "f8", &state_, sizeof state_ / sizeof(double)};
    if (index == 1) return {"early_errors", "f8", errors_.data(), errors_.size()};
    return constant_.array();
  }

 private:
  static constexpr std::size_t most = EarlyProcess::most;
  static constexpr double retirement = 1536.0;  // rounds
  static constexpr double prior_rounds = 20.0;  // of the shares
  static constexpr double optimism = 0.75;      // standard deviations
  static constexpr double most_spared = 0.8;    // of epsilon
  static constexpr double least_trust = 0.065;  // in a prior without a process: two standard deviations
  static constexpr double certainty = 0.8;      // of a prior: its deviations are so much smaller
  static constexpr double most_lasting = 0.5;   // of the constant action: with heavy tails, a larger share is worse
  static constexpr double least_share = 0.001;  // of the constant action; less is none, and costs no time
  static constexpr double memory = 0.995;       // per round, of the share that fades
  static constexpr double lasting = 1.0 - 1.0 / 2000.0;

  using Test = SelfNormalisedTest;

  struct State {
    double active = 1.0, running = 1.0, age = 0.0;  // not active if the file is older than the experts
    double weight = 1.0, evidence = 0.0, contextual = 0.0;
    ErrorRegression own = {}, constant = {};
    MeanSquare rest = {}, lasting_rest = {};
    Test against_rest = {};
  };

  // Whether only the prior predicts, until there is a process or the mean of the losses is better.
  bool has_prior_only() const { return has_prior() && !predicts() && process_.against_mean().doubt() >= least_trust; }

  bool predicts() const { return state_.running != 0.0 && process_.is_ready(); }

  double fade() const { return clip((retirement - state_.age) / (retirement - static_cast<double>(most)), 0.0, 1.0); }

  void judge(double rest, double own, double constant, bool predicted) {
    if (predicted) {
      state_.own.add(memory, rest, own);
      state_.rest.add(memory, rest);
    }
    state_.constant.add(lasting, rest, constant);
    state_.lasting_rest.add(lasting, rest);
    state_.against_rest.add(constant, rest, lasting);
  }

  // Tests the process against the constant action, and both together against the mean of the losses.
  void test(std::size_t n) {
    const EarlyFactor& factor = process_.factor();
    const double unit = factor.loss_unit();
    Test contexts, anything;
    for (std::size_t i = 8; i < n; ++i) contexts.add(errors_[i], unit * factor.residual(i));
    state_.contextual = factor.kernel().active() > 0 ? 1.0 : 0.0;
    const double first = process_.prior_share();  // a prior is more than a guess
    state_.weight = one_knob_ && state_.contextual != 0.0 ? Test::logistic(contexts.z() + first) : 1.0;
    double before = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
      const double mean = i > 0 ? before / static_cast<double>(i) : 0.0;
      if (i >= 4)
        anything.add(unit * (factor.loss(i) - mean),
                     state_.weight * unit * factor.residual(i) + (1.0 - state_.weight) * errors_[i]);
      before += factor.loss(i);
    }
    const double least = clip(2.0 - static_cast<double>(n) / 32.0, 0.0, 1.0);
    state_.evidence = larger(clip(0.5 * anything.z(), 0.0, 1.0), least);
  }

  // A deviation at a node of the curve.
  static double between(const double* deviations, std::size_t node) {
    constexpr std::size_t step = EarlyFactor::doubt_step;
    const std::size_t near = node / step, next = near + 1 < EarlyFactor::doubts ? near + 1 : near;
    const double way = static_cast<double>(node % step) / static_cast<double>(step);
    return deviations[near] + way * (deviations[next] - deviations[near]);
  }

  bool one_knob_;
  EarlyProcess process_;
  ConstantExpert constant_;
  Buffer<double> errors_;  // of the constant action in the rounds of the process
  Buffer<float> curve_;
  bool has_constant_curve_ = false;  // that of the constant action alone, which is the same in all contexts
  float rest_ = 1.0f;
  State state_;
};

}  // namespace manul::MANUL_SIMD
