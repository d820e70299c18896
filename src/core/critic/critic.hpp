// The critic: the networks' prediction of the loss, corrected by the forest.
//
//   critic = (1 - weight (1 - trust)) networks + weight forest
//
// Trees learn the loss minus `trust` times the networks' prediction. Networks that generalise have a trust of 1, so the
// trees learn what is left; if networks overfit, the trust falls and the trees learn the loss itself. Both coefficients
// are regressions on predictions that were made before the loss was known: trust of the loss on the networks'
// prediction, weight of the networks' error on the forest's correction. The forest
// predicts a curve over one column of actions; critics of several knobs have none.
#pragma once

#include "critic/ensemble.hpp"
#include "critic/forest.hpp"

namespace manul::MANUL_SIMD {

class Critic {
 public:
  // Contexts are as in the replay buffer.
  Critic(std::size_t width, std::size_t features, const ReplayBuffer& replay, bool has_forest, std::uint64_t seed)
      : has_forest_(has_forest), ensemble_(width, features, replay, seed),
        forest_(has_forest_ ? replay.column_count() : 0, has_forest_ ? replay.capacity() : 0, seed) {}

  Ensemble& ensemble() { return ensemble_; }
  const Ensemble& ensemble() const { return ensemble_; }
  std::size_t trees() const { return forest_.trees(); }

  double trust() const {
    return state_.rounds < settling || state_.variance <= 0.0 ? 1.0
                                                              : clip(state_.covariance / state_.variance, 0.0, 1.0);
  }

  double weight() const {
    const bool known = state_.judged >= settling && state_.correction_square > 0.0;
    return known ? clip(state_.correction_error / state_.correction_square, 0.0, 1.0) : 0.0;
  }

  // Before the networks learn, rounds are only stored.
  void remember(ReplayBuffer& replay) {
    if (has_forest_) forest_.remember(replay);
  }

  // Learns from the newest round; returns the error of the earlier prediction of its loss, in standard units.
  double learn(ReplayBuffer& replay, double age) {
    const double loss = replay.standard_loss(replay.slot(0));
    if (!has_forest_) return ensemble_.learn(replay, age - 1.0, loss);
    const double forest = forest_.remember(replay);
    const double error = ensemble_.learn(replay, age - 1.0, loss), networks = loss - error;
    const double correction = forest - (1.0 - trust()) * networks, remaining = error - weight() * correction;
    judge_networks(loss, networks);
    if (forest_.trees() > 0) judge_forest(error, correction);
    forest_.advance(replay, age, trust());
    return remaining;
  }

  // After a change of the world.
  void restart() {
    if (has_forest_) forest_.clear();
    state_.judged = state_.correction_error = state_.correction_square = 0.0;
  }

  // Sets the context for `score`.
  void look(ReplayBuffer& replay, const ContextView& context) {
    ensemble_.look(replay.standardise(context));
    forest_weight_ = static_cast<float>(weight());
    networks_weight_ = static_cast<float>(1.0 - weight() * (1.0 - trust()));
    if (forest_weight_ > 0.0f) forest_.look(replay.columns(context));
  }

  // Predicted losses, in standard units, of `size` actions of one column; `size` is a multiple of 16.
  void score(const float* actions, std::size_t size, float* losses) const {
    ensemble_.score(actions, size, losses);
    if (forest_weight_ == 0.0f) return;
    for (std::size_t i = 0; i < size; ++i)
      losses[i] = networks_weight_ * losses[i] + forest_weight_ * forest_.predict(actions[i]);
  }

  void resume(ReplayBuffer& replay, bool learns) {
    if (has_forest_) forest_.resume(replay, learns);
  }

  bool is_valid(const ReplayBuffer& replay) const {
    return ensemble_.is_valid() && ensemble_.has_features(replay.features()) &&
           (!has_forest_ || forest_.is_valid(replay)) && is_count(state_.rounds) && is_count(state_.judged) &&
           finite(state_.loss) && finite(state_.prediction) && finite(state_.covariance) && finite(state_.variance) &&
           finite(state_.correction_error) && finite(state_.correction_square);
  }

  std::size_t unsaved_bytes() const { return has_forest_ ? forest_.unsaved_bytes() : 0; }

  std::size_t arrays() const { return ensemble_.arrays() + (has_forest_ ? Forest::arrays + 1 : 0); }

  Array array(std::size_t index) {
    if (index < ensemble_.arrays()) return ensemble_.array(index);
    index -= ensemble_.arrays();
    if (index < Forest::arrays) return forest_.array(index);
    return {"mixing", "f8", &state_, sizeof state_ / sizeof(double)};
  }

 private:
  static constexpr double memory = Ensemble::judging_memory, settling = 50.0;  // rounds

  static double rate(double rounds) { return larger(1.0 / memory, 1.0 / rounds); }

  void judge_networks(double loss, double prediction) {
    const double share = rate(state_.rounds += 1.0), deviation = prediction - state_.prediction;
    state_.loss += share * (loss - state_.loss);
    state_.prediction += share * deviation;
    state_.covariance += share * (deviation * (loss - state_.loss) - state_.covariance);
    state_.variance += share * (deviation * (prediction - state_.prediction) - state_.variance);
  }

  void judge_forest(double error, double correction) {
    const double share = rate(state_.judged += 1.0);
    state_.correction_error += share * (error * correction - state_.correction_error);
    state_.correction_square += share * (correction * correction - state_.correction_square);
  }

  struct State {
    double rounds = 0.0, loss = 0.0, prediction = 0.0, covariance = 0.0, variance = 0.0;
    double judged = 0.0, correction_error = 0.0, correction_square = 0.0;
  };

  bool has_forest_;
  Ensemble ensemble_;
  Forest forest_;
  float networks_weight_ = 1.0f, forest_weight_ = 0.0f;
  State state_;
};

}  // namespace manul::MANUL_SIMD
