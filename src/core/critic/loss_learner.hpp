// What Auto learns with, for one knob or several: the memory, the critic, and the monitor of its predictions, which
// restarts learning with the current weights when predictions suddenly become worse.
#pragma once

#include "critic/critic.hpp"
#include "critic/drift_detector.hpp"
#include "critic/early_experts.hpp"

namespace manul::MANUL_SIMD {

class LossLearner {
 public:
  LossLearner(std::size_t width, std::size_t features, std::size_t action_columns, bool has_forest, bool unknown_losses,
              std::uint64_t seed, bool has_active_experts, std::size_t most_rows = 32768)
      : replay_(width, features, action_columns, unknown_losses, most_rows),
        critic_(width, features, replay_, has_forest, seed), one_knob_(has_forest),
        spreads_(one_knob_ && has_active_experts), has_early_(one_knob_ || action_columns <= most_early_columns),
        early_(replay_, one_knob_, has_active_experts) {}

  const ReplayBuffer& replay() const { return replay_; }
  const Critic& critic() const { return critic_; }
  bool is_warm() const { return replay_.rounds() >= (spreads_ ? spread_rounds : uniform_rounds); }

  // Whether the first actions avoid each other, so that fewer are needed.
  bool spreads_first_actions() const { return spreads_; }
  double age() const { return change_.age; }

  // Begins near a start.
  void take_start() { has_start_ = true; }

  // How far from the start windows may be, as a share of the range. It grows with the rounds that say something: if
  // most losses are equal, as while nearly nobody buys, those that differ from the one before, which count twice,
  // because of losses that take two values equally often every second one differs.
  double reach() const {
    return has_start_ ? first_reach + reach_per_round * smaller(replay_.rounds(), 2.0 * differing_) : 1.0;
  }

  // Begins to take predictions by a prior.
  void take_prior() { early_.take_prior(); }
  bool has_prior() const { return early_.has_prior(); }

  // Whether it predicts: after the first rounds, or from a prior.
  bool predicts() const { return is_warm() || (has_prior() && early_.share() > 0.0); }

  // Learns the features of another one, in their order, with initial weights.
  void adopt_features(const LossLearner& other) {
    replay_.adopt_features(other.replay_,
                           [&](const ContextView& feature) { critic_.ensemble().add_features(feature); });
  }

  // The columns of the action and the density are relative to the range [0, 1]. The prior predicted `expected`.
  void learn(const ContextView& context, const double* action, double density, double loss, double expected = 0.0) {
    replay_.remember(context, action, density, loss);
    if (context.kind == ContextKind::hashed) critic_.ensemble().add_features(context);
    change_.age += 1.0;
    if (has_start_ && replay_.rounds() > 1.0 && replay_.loss(replay_.slot(0)) != replay_.loss(replay_.slot(1)))
      differing_ += 1.0;
    if (!is_warm()) {
      critic_.remember(replay_);
      if (has_early_) early_.learn(replay_, 0.0, false, expected);
      return;
    }
    start();
    double error = critic_.learn(replay_, change_.age);
    if (has_early_) error = early_.learn(replay_, error, true, expected);
    if (!monitor_.detects_change(error)) return;
    change_ = {monitor_.restart(), change_.alarms + 1.0, replay_.rounds()};
    critic_.restart();
    if (has_early_) early_.restart();
  }

  // Sets the context for predictions, which are `optimistic` about what is doubtful in order to try it. A prior has a
  // curve over all actions.
  void look(const ContextView& context, bool optimistic = false, const double* prior = nullptr) {
    start();
    critic_.look(replay_, context);
    if (one_knob_) early_.look(replay_, context, optimistic, prior);
  }

  // Sets the context for predictions of several knobs: those of the critic, and what is mixed into them.
  void look(const ContextView& context, EarlySurface& surface) {
    look(context);
    if (has_early_) early_.look(replay_, context, surface);
  }

  // Predicted losses, in standard units, of `size` actions of one column; `size` is a multiple of 16.
  void score(const float* actions, std::size_t size, float* losses) const {
    critic_.score(actions, size, losses);
    early_.score(actions, size, losses);
  }

  // The factor of epsilon in schedules that depend on the evidence: little is explored far from a start.
  double exploring() const { return (has_early_ ? early_.exploring() : 1.0) * smaller(1.0, reach()); }

  // The bandwidth in units of the range if the predicted loss is not steep: per standard deviation of the noise, and
  // narrower with the rounds. `factor` multiplies it.
  double bandwidth(double factor = 1.0) const {
    const double noise = is_warm() ? per_noise * monitor_.sigma() : widest;
    const double first = smaller(widest, noise) * factor * (has_early_ ? early_.narrowing() : 1.0);
    return larger(first / __builtin_sqrt(__builtin_sqrt(1.0 + change_.age / narrowing)), narrowest);
  }

  CriticReport report() const {
    CriticReport all = {};
    critic_.ensemble().member_shares(all.weights);
    for (std::size_t m = 0; m < Ensemble::members; ++m)
      all.errors[m] = __builtin_sqrt(critic_.ensemble().error(m)) / replay_.gain();
    all.bandwidth = predicts() ? bandwidth() : 0.5;
    all.forest = critic_.weight();
    all.trees = static_cast<double>(critic_.trees());
    all.noise = monitor_.sigma() / replay_.gain();
    all.rounds = replay_.rounds();
    all.memory = smaller(change_.age, replay_.remembered());
    all.alarms = change_.alarms;
    all.last_alarm = change_.last_alarm;
    all.clipped = replay_.clipped();
    all.early = has_early_ ? early_.share() : 0.0;
    all.constant = has_early_ ? early_.constant_share() : 0.0;
    all.prior = early_.prior_share();
    return all;
  }

  void start() { critic_.ensemble().start(); }

  // Computes what is not saved; all of it only if it `learns`, not only predicts.
  void resume(bool learns = true) {
    critic_.resume(replay_, learns);
    if (has_early_) early_.resume(replay_);
  }

  bool is_valid() const {
    return replay_.is_valid() && critic_.is_valid(replay_) && (!has_early_ || early_.is_valid(replay_)) &&
           monitor_.is_valid() && is_count(change_.age) && is_count(change_.alarms) && is_count(change_.last_alarm) &&
           is_count(differing_);
  }

  std::size_t unsaved_bytes() const { return critic_.unsaved_bytes() + (has_early_ ? early_.unsaved_bytes() : 0); }

  std::size_t arrays() const { return early_end() + (has_start_ ? 1 : 0); }

  Array array(std::size_t index) {
    if (index == early_end()) return {"start", "f8", &differing_, 1};
    if (index >= own_arrays()) return early_.array(index - own_arrays());
    if (index < replay_.arrays()) return replay_.array(index);
    index -= replay_.arrays();
    if (index < critic_.arrays()) return critic_.array(index);
    if (index == critic_.arrays()) return {"monitor", "f8", &monitor_, sizeof monitor_ / sizeof(double)};
    return {"change", "f8", &change_, sizeof change_ / sizeof(double)};
  }

  void fit(std::size_t index, std::size_t size) {
    if (index >= own_arrays()) return;
    if (index < replay_.arrays()) return replay_.fit(index, size);
    index -= replay_.arrays();
    if (index < critic_.ensemble().arrays()) critic_.ensemble().fit(index, size);
  }

  static constexpr double narrowest = 1.0 / 1024.0;  // bandwidth

 private:
  static constexpr double uniform_rounds = 10.0, spread_rounds = 7.0;  // before the first step of training
  static constexpr double widest = 0.05, per_noise = 1.5;
  static constexpr double first_reach = 0.01, reach_per_round = 1.0 / 400.0;  // of a start, to each side
  static constexpr std::size_t most_early_columns = 3;  // of several knobs: with more, the first experts do not help
  static constexpr double narrowing = 100.0;            // rounds after which the bandwidth begins to shrink

  std::size_t early_end() const { return own_arrays() + (has_early_ ? early_.arrays() : 0); }
  std::size_t own_arrays() const { return replay_.arrays() + critic_.arrays() + 2; }

  struct Change {
    double age = 0.0, alarms = 0.0, last_alarm = 0.0;
  };

  ReplayBuffer replay_;
  Critic critic_;
  bool one_knob_, spreads_, has_early_;
  EarlyExperts early_;
  DriftDetector monitor_;
  Change change_;
  bool has_start_ = false;
  double differing_ = 0.0;  // losses that differed from the one before
};

// A model that learns with it, for one knob or several.
template <class Base>
class LossLearnerModel : public Base {
 public:
  template <class... Settings>
  explicit LossLearnerModel(const Settings&... settings) : learner_(settings...) {}

  double age(double) const override { return learner_.age(); }
  double exploring() const override { return learner_.exploring(); }
  void forget(double) override {}  // no half-life: the monitor detects when old evidence is outdated
  void start() override { learner_.start(); }
  void resume() override { learner_.resume(); }
  bool is_valid() const override { return learner_.is_valid(); }
  std::size_t unsaved_bytes() const override { return learner_.unsaved_bytes(); }
  std::size_t arrays() const override { return learner_.arrays(); }
  Array array(std::size_t index) override { return learner_.array(index); }
  void fit(std::size_t index, std::size_t size) override { learner_.fit(index, size); }

 protected:
  LossLearner learner_;
};

}  // namespace manul::MANUL_SIMD
