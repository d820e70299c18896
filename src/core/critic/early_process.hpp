// A Gaussian process on contexts and actions, which predicts losses from the first rounds better than the networks.
//
// Its parameters are fitted all the time, its factor has those of the time when it was begun. When the rounds have
// grown by a tenth, a new factor is begun, which is built beside the present one in slices, so that no round takes
// long.
#pragma once

#include "critic/early_fit.hpp"
#include "critic/self_normalised_test.hpp"

namespace manul::MANUL_SIMD {

class EarlyProcess {
 public:
  static constexpr std::size_t most = EarlyFactor::most;

  // Of contexts it reads the first 128 columns: with more, it would have too few rounds for its parameters.
  EarlyProcess(std::size_t columns, std::size_t actions)
      : columns_(columns < most_columns ? columns : most_columns), least_rounds_(actions == 1 ? 6 : 8),
        factors_{{columns_, actions}, {columns_, actions}}, fit_(columns_, actions), parameters_(3 * count()),
        moments_(2 * columns_), scales_(columns_), prior_(0) {}

  // Whether it predicts: after the first rounds, and two different losses.
  bool is_ready() const { return state_.ready != 0.0; }
  const EarlyFactor& factor() const { return factors_[present()]; }
  EarlyFactor& factor() { return factors_[present()]; }
  bool reads_contexts() const { return columns_ > 0; }

  // Begins, before the first round, to take predictions by a prior beside the losses.
  void take_prior() { prior_.resize(most); }

  void drop_prior() {
    if (!has_prior()) return;
    prior_.resize(0);
    for (EarlyFactor& each : factors_) each.drop_prior();
  }

  bool has_prior() const { return prior_.size() > 0; }
  double prior_share() const { return has_prior() ? prior_state_.share : 0.0; }

  // The test of the prior against the mean of the losses.
  SelfNormalisedTest& against_mean() { return prior_state_.against_mean; }
  const SelfNormalisedTest& against_mean() const { return prior_state_.against_mean; }

  // Takes or frees the memory that is not saved; without it, the process does nothing.
  void reserve(bool open) {
    if (open == open_) return;
    open_ = open;
    for (EarlyFactor& each : factors_) each.reserve(open, has_prior());
    fit_.reserve(open);
  }

  // Begins anew with the next round; the parameters stay.
  void restart() {
    for (std::size_t i = 0; i < moments_.size(); ++i) moments_[i] = 0.0;
    drop_prior();
    for (EarlyFactor& each : factors_) each.forget_rounds();
    state_ = {.steps = state_.steps, .first_power = state_.first_power, .second_power = state_.second_power};
  }

  // Learns from the newest round, number `n` since the start, counted from 1. A prediction of its loss by the rounds
  // before it is then in the factor. The prior predicted `expected`.
  void learn(ReplayBuffer& replay, std::size_t n, double expected) {
    const std::size_t slot = replay.slot(0);
    if (has_prior()) prior_[n - 1] = expected;
    count_columns(replay.columns(slot), static_cast<double>(n));
    const double loss = replay.loss(slot);
    state_.lowest = n == 1 ? loss : smaller(state_.lowest, loss);
    state_.highest = n == 1 ? loss : larger(state_.highest, loss);
    if (is_ready()) factor().add(replay, slot, prior(n - 1));
  }

  // The other work of the round: steps of the fit, and a slice of the next factor.
  void advance(ReplayBuffer& replay, std::size_t n) {
    if (n < least_rounds_ || state_.lowest == state_.highest) return;
    if (state_.building == 0.0) {
      const std::size_t steps = due_steps(n);
      for (std::size_t i = 0; i < steps; ++i) step(replay, n);
      const double grown = growth * state_.factored + growth_rounds;
      if (state_.first_steps >= first_steps && (!is_ready() || static_cast<double>(n) >= grown)) begin(replay, n);
    }
    if (state_.building != 0.0) build(replay, n);
    if (!is_ready()) return;
    if (has_prior()) judge_prior();
    factor().solve(prior_share());
  }

  // Computes what is not saved; the rounds since the start are `n`.
  void resume(ReplayBuffer& replay, std::size_t n) {
    rebuild(replay, present(), n);
    if (state_.building != 0.0) rebuild(replay, 1 - present(), n);
    if (is_ready()) factor().solve(prior_share());
  }

  // `n` rounds since the start are remembered.
  bool is_valid(std::size_t n) const {
    bool all = (state_.ready == 0.0 || state_.ready == 1.0) && (state_.present == 0.0 || state_.present == 1.0) &&
               finite(state_.building) && is_count(state_.factored) && is_count(state_.steps) &&
               is_count(state_.first_steps) && finite(state_.first_power) && finite(state_.second_power) &&
               finite(state_.lowest) && finite(state_.highest) && prior_state_.share >= 0.0 &&
               prior_state_.share <= 1.0;
    all = all && finite(prior_state_.against_mean.sum) && finite(prior_state_.against_mean.squares);
    for (std::size_t i = 0; i < prior_.size(); ++i) all = all && finite(prior_.data()[i]);
    for (const EarlyFactor& each : factors_) all = all && each.is_valid() && each.rows() <= n;
    for (std::size_t i = 0; i < parameters_.size(); ++i) all = all && finite(parameters_.data()[i]);
    for (std::size_t i = 0; i < moments_.size(); ++i) all = all && finite(moments_.data()[i]);
    return all && (state_.ready == 0.0 || factor().rows() > 0);
  }

  std::size_t unsaved_bytes() const {
    return factors_[0].unsaved_bytes() + factors_[1].unsaved_bytes() + fit_.unsaved_bytes();
  }

  std::size_t arrays() const { return has_prior() ? 7 : 5; }

  Array array(std::size_t index) {
    const Array all[] = {
        {"early_process", "f8", &state_, sizeof state_ / sizeof(double)},
        {"early_parameters", "f8", parameters_.data(), parameters_.size()},
        {"early_columns", "f8", moments_.data(), moments_.size()},
        {"early_factor", "f8", factors_[0].head().data(), factors_[0].head().size()},
        {"early_factor_2", "f8", factors_[1].head().data(), factors_[1].head().size()},
        {"prior", "f8", &prior_state_, sizeof prior_state_ / sizeof(double)},
        {"prior_losses", "f8", prior_.data(), prior_.size()},
    };
    return all[index];
  }

 private:
  static constexpr std::size_t most_columns = 128;
  static constexpr double prior_rounds = 10.0;  // of the share of the prior
  static constexpr double tolerance = 0.5;      // standard deviations by which the prior may be worse
  static constexpr double least_share = 0.02;   // of a prior that is kept
  static constexpr double first_steps = 20.0;   // of the fit, before the first factor
  static constexpr std::size_t steps_per_round = 20, steps_of_many = 4;  // of them, if there are few rounds or many
  static constexpr double growth = 1.1, growth_rounds = 3.0;             // of the rounds, until the next factor
  static constexpr double slice = 250'000.0;                             // multiplications per round, about 0.1 ms
  static constexpr double rate = 0.1, momentum = 0.9, square_momentum = 0.99;  // of Adam

  struct State {
    double ready = 0.0, present = 0.0;      // whether a factor is complete, and which one
    double building = 0.0, factored = 0.0;  // whether the other one is being built, and with how many rounds it began
    double first_steps = 0.0, steps = 0.0, first_power = 1.0, second_power = 1.0;  // of the fit
    double lowest = 0.0, highest = 0.0;                                            // losses
  };

  struct PriorState {
    double share = 1.0;
    SelfNormalisedTest against_mean = {};
  };

  const double* prior(std::size_t round) const { return prior_.data() + (has_prior() ? round : 0); }

  // The share of the prior: the regression of the process's errors without it on what it adds, times a test of the
  // errors with it against those without.
  void judge_prior() {
    const EarlyFactor& own = factor();
    double product = 0.0, square = 0.0, errors = 0.0;
    SelfNormalisedTest test;
    for (std::size_t i = 0; i < own.rows(); ++i) {
      const double error = own.own_residual(i), added = own.prior_residual(i);
      product += error * added, square += added * added, errors += error * error;
      test.add(error, error - added);
    }
    const double rounds = prior_rounds * errors / static_cast<double>(own.rows());
    const double regression = square + rounds > 0.0 ? clip((product + rounds) / (square + rounds), 0.0, 1.0) : 1.0;
    prior_state_.share = regression * test.doubt(tolerance);
    if (prior_state_.share < least_share) drop_prior();
  }

  std::size_t count() const { return factors_[0].kernel().parameters(); }
  std::size_t present() const { return state_.present != 0.0 ? 1 : 0; }

  // Running moments (Welford) of the columns.
  void count_columns(const float* columns, double n) {
    for (std::size_t c = 0; c < columns_; ++c) {
      double &mean = moments_[c], &variance = moments_[columns_ + c];
      const double before = columns[c] - mean;
      mean += before / n;
      variance += (before * (columns[c] - mean) - variance) / n;
    }
  }

  void set_scales() {
    for (std::size_t c = 0; c < columns_; ++c) scales_[c] = inverse_deviation(moments_[c], moments_[columns_ + c]);
  }

  std::size_t due_steps(std::size_t n) {
    if (state_.first_steps < first_steps) {
      const auto left = static_cast<std::size_t>(first_steps - state_.first_steps);
      const std::size_t most_now = n <= 32 ? steps_per_round : steps_of_many;
      const std::size_t now = left < most_now ? left : most_now;
      state_.first_steps += static_cast<double>(now);
      return now;
    }
    const std::size_t pause = n < 64 ? 1 : n < 128 ? 2 : n < 256 ? 4 : 8;
    return n % pause == 0 ? 1 : 0;
  }

  // The slot of a round since the start, of which there are `n`.
  static std::size_t slot(const ReplayBuffer& replay, std::size_t round, std::size_t n) {
    return replay.slot(n - 1 - round);
  }

  // One step of Adam on rounds that are evenly spaced.
  void step(ReplayBuffer& replay, std::size_t n) {
    double *own = parameters_.data(), *means = own + count(), *squares = means + count();
    set_scales();
    fit_.begin(own, scales_.data());
    const std::size_t size = n < EarlyFit::most ? n : EarlyFit::most;
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t from = slot(replay, i * n / size, n);
      const float* columns = replay.columns(from);
      for (std::size_t a = 0; a < fit_.kernel().active(); ++a) {
        const std::size_t c = fit_.kernel().active(a);
        fit_.context(a) = clip((columns[c] - moments_[c]) * scales_[c], -EarlyFactor::farthest, EarlyFactor::farthest);
      }
      for (std::size_t k = 0; k < fit_.kernel().actions(); ++k) fit_.action(k) = replay.action(from)[k];
      double y = EarlyFactor::scale_of_losses * replay.standard_loss(from);
      if (has_prior()) y -= prior_state_.share * EarlyFactor::scale_of_losses * replay.standard(prior_[i * n / size]);
      fit_.end_round(y);
    }
    const double* gradient = fit_.gradient(own);
    state_.steps += 1.0;
    state_.first_power *= momentum, state_.second_power *= square_momentum;
    for (std::size_t p = 0; p < count(); ++p) {
      means[p] = momentum * means[p] + (1.0 - momentum) * gradient[p];
      squares[p] = square_momentum * squares[p] + (1.0 - square_momentum) * gradient[p] * gradient[p];
      const double move = rate * means[p] / (1.0 - state_.first_power) /
                          (__builtin_sqrt(squares[p] / (1.0 - state_.second_power)) + 1e-6);
      const double farthest = fit_.kernel().farthest(p);
      const bool known = finite(move);
      own[p] = known ? clip(own[p] + move, -farthest, farthest) : 0.0;
      if (!known) means[p] = squares[p] = 0.0;
    }
  }

  void begin(ReplayBuffer& replay, std::size_t n) {
    set_scales();
    factors_[1 - present()].begin(replay, parameters_.data(), moments_.data(), scales_.data());
    state_.building = 1.0, state_.factored = static_cast<double>(n);
  }

  // Adds rounds to the next factor, which replaces the present one when it has all.
  void build(ReplayBuffer& replay, std::size_t n) {
    EarlyFactor& next = factors_[1 - present()];
    for (double work = 0.0; next.rows() < n && work < slice;) {
      const auto size = static_cast<double>(next.rows());
      next.add(replay, slot(replay, next.rows(), n), prior(next.rows()));
      work += 0.5 * size * size + size * (40.0 + static_cast<double>(next.kernel().active()));
    }
    if (next.rows() < n) return;
    state_.ready = 1.0, state_.present = 1.0 - state_.present, state_.building = 0.0;
  }

  void rebuild(ReplayBuffer& replay, std::size_t which, std::size_t n) {
    const std::size_t rows = factors_[which].rows();
    factors_[which].resume();
    for (std::size_t i = 0; i < rows; ++i) factors_[which].add(replay, slot(replay, i, n), prior(i));
  }

  bool open_ = false;
  std::size_t columns_, least_rounds_;
  EarlyFactor factors_[2];
  EarlyFit fit_;
  Buffer<double> parameters_;  // and Adam's means and squares of their gradients
  Buffer<double> moments_;     // means and variances of columns
  Buffer<double> scales_;
  Buffer<double> prior_;  // predictions by a prior of the losses since the start
  PriorState prior_state_;
  State state_;
};

}  // namespace manul::MANUL_SIMD
