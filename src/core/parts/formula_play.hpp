// Plays an outcome with parts: near the action with the highest value by the formula, as long as that predicts outcomes
// no worse than the critic of the loss does.
#pragma once

#include "critic/error_regression.hpp"
#include "critic/self_normalised_test.hpp"
#include "models/policy_model.hpp"
#include "parts/outcome_parts.hpp"

namespace manul::MANUL_SIMD {

class FormulaPlay {
 public:
  static constexpr std::size_t points = OutcomeParts::points;  // a multiple of 16

  // `width` and `named` are as in OutcomeParts.
  FormulaPlay(const PartsSettings& settings, std::size_t width, bool named)
      : settings_(settings), parts_(settings, width, named) {}

  bool empty() const { return parts_.empty(); }
  double rounds() const { return parts_.rounds(); }

  // The weight of the formula's prediction, from 0 to 1; the critic of the loss has the rest. The mean of both is often
  // better than either, and its best weight moves less than the odds that one of them is better.
  double weight() const {
    const double prior = prior_rounds * judge_.least.mean(), square = judge_.share.square + prior;
    return square > 0.0 ? clip((judge_.share.product + prior) / square, 0.0, 1.0) : 1.0;
  }

  // Whether it decides. Otherwise the critic does, as if there were no formula; so it does if few outcomes have parts.
  // With limits in expectation, which only the parts can keep, it always decides.
  bool leads() const { return !empty() && (is_limited() || is_trusted()); }

  // Whether there are limits in expectation.
  bool is_limited() const { return settings_.spent != nullptr || settings_.kept != nullptr; }
  Prices& prices() { return prices_; }
  Expectation expectation() const { return expectation_; }

  // What is expected to be spent at a position in the context of the latest window; NaN if that is not known.
  double spent(double position) const {
    return expectation_.spent == expectation_.spent ? ActionBasis::Place(position).value(spent_) : __builtin_nan("");
  }

  // After a wrong formula, whose actions were few, the critic explores first, as at the beginning.
  bool explores() const { return !empty() && judge_.since > 0.0 && judge_.since <= exploring_rounds; }
  double explored() const { return judge_.since - 2.0; }  // rounds of that so far

  // The rounds that schedules of exploration depend on; `critic` are those of the critic.
  double age(double critic) const {
    return leads()              ? parts_.rounds() * (settings_.cost_aware ? fading : 1.0)
           : judge_.since > 0.0 ? smaller(critic, judge_.since - 1.0)
                                : critic;
  }

  // The value of each action of the grid, better if higher; `critic(positions, losses)` predicts losses at `points`
  // positions, or returns false. Returns false if there is no value.
  template <class Critic>
  bool predict(const ContextView& context, Critic&& critic, double* values) {
    expectation_ = {};
    if (!leads() || !parts_.predict(context, values, spent_, kept_)) return false;
    const double own = is_trusted() ? weight() : 0.0;
    double positions[points], losses[points];
    for (std::size_t g = 0; g < points; ++g) positions[g] = ActionBasis::position(g);
    if (own > almost_all || !critic(positions, losses)) return true;
    for (std::size_t g = 0; g < points; ++g) values[g] = own * values[g] - (1.0 - own) * original(losses[g]);
    return true;
  }

  // A value as a loss of the model.
  double scaled_loss(double value) const {
    return settings_.losses.high < __builtin_inf()
               ? (-value - settings_.losses.low) / (settings_.losses.high - settings_.losses.low)
               : -value;
  }

  // The half-width of windows, as a share of the range. With a budget it shrinks faster: the price moves the window
  // through the day, which explores nearby.
  double bandwidth() const {
    const double root = __builtin_sqrt(1.0 + parts_.rounds() / 100.0);
    return 0.03 / (settings_.spent != nullptr ? root : __builtin_sqrt(root));
  }

  // The window among the positions of a range, by the values of `predict`; `bandwidth` is its half-width, or 0 if it is
  // chosen here.
  Window window(const double* values, Range range, double bandwidth = 0.0) {
    const double whole = 0.5 * (range.high - range.low), age = parts_.rounds();
    const double half = smaller(bandwidth > 0.0 ? bandwidth : this->bandwidth(), whole);
    const double near = parts_.has_start() ? first_exploring * smaller(1.0, 0.1 + age / 400.0) : 1.0;
    double worth[points];
    price(values, prices_.spent, worth);
    const double most = settings_.cost_aware ? smaller(near, affordable(worth, range)) : 1.0;
    const double centre = OutcomeParts::best(worth, range, half);
    if (is_limited()) {
      price(values, prices_.usual, worth);
      const double usual = OutcomeParts::best(worth, range, half);
      expectation_ = {mean(values, centre, half), mean(spent_, centre, half), mean(kept_, centre, half),
                      mean(spent_, usual, half), kept_[0]};
      for (const double kept : kept_) expectation_.most_kept = larger(expectation_.most_kept, kept);
    }
    return {centre, half, most};
  }

  // Learns from an outcome; `critic` is the loss that was predicted, or NaN.
  void learn(const ContextView& context, double position, const Outcome& outcome, double critic) {
    if (outcome.parts == nullptr) return void(judge_.bare += 1.0);
    const double loss = original(outcome.loss), value = parts_.learn(context, position, outcome.parts);
    if (outcome.judged) judge_formula(-loss, parts_.value(context, position, outcome.parts));
    if (judge_.since > 0.0) judge_.since += 1.0;
    if (!(value == value && critic == critic)) return;
    const double own = loss + value, other = loss - original(critic);
    judge_.rounds += 1.0;
    const double rate = larger(1.0 / judge_.rounds, 1.0 / memory);
    const double before = loss - judge_.centre;
    judge_.centre += rate * before;
    judge_.spread += rate * (before * (loss - judge_.centre) - judge_.spread);
    judge_.own_square += rate * (own * own - judge_.own_square);
    judge_.critic_square += rate * (other * other - judge_.critic_square);
    if (!(judge_.spread > 0.0)) return;  // before the first purchase, a critic that expects none makes no errors
    const double most = farthest * __builtin_sqrt(smaller(judge_.own_square, judge_.critic_square));
    const double largest = larger(__builtin_fabs(own), __builtin_fabs(other));
    compare(largest > most ? most / largest : 1.0, own, other);
  }

  // The share of the variance of reported values that the formula explains, given the parts; 1 if none were reported.
  double explained() const {
    return judge_.variance > 0.0 ? larger(0.0, 1.0 - judge_.unexplained / judge_.variance) : 1.0;
  }

  // Whether it plays near the start, because it cannot predict all parts yet.
  bool starts() const { return leads() && parts_.has_start() && !parts_.is_known(); }
  double start() const { return parts_.start(); }
  static constexpr double start_width = 0.1;

  // Takes over what the play of another agent has learned; false if its contexts or parts are others.
  bool inherit(const FormulaPlay& sister) { return parts_.inherit(sister.parts_); }

  void resume() { parts_.resume(); }

  FormulaReport report() const {
    FormulaReport all;
    all.parts = parts_.count();
    all.weight = is_trusted() ? weight() : 0.0;
    all.reported = judge_.reported, all.explained = explained();
    for (std::size_t p = 0; p < all.parts; ++p) {
      all.hints[p] = parts_.part(p).hint_weight();
      all.inherited[p] = parts_.part(p).inherited_weight();
    }
    return all;
  }

  std::size_t arrays() const { return empty() ? 0 : OutcomeParts::arrays + (is_limited() ? 2 : 1); }
  Array array(std::size_t index) {
    if (index < OutcomeParts::arrays) return parts_.array(index);
    if (index > OutcomeParts::arrays) return {"prices", "f8", &prices_, sizeof prices_ / sizeof(double)};
    return {"judge", "f8", &judge_, sizeof judge_ / sizeof(double)};
  }

  bool is_valid() const {
    return parts_.is_valid() && is_count(judge_.rounds) && is_count(judge_.since) && is_count(judge_.bare) &&
           is_count(judge_.reported) && finite(judge_.mean) && finite(judge_.variance) && finite(judge_.unexplained) &&
           finite(judge_.centre) && finite(judge_.own_square) && finite(judge_.critic_square) &&
           finite(judge_.spread) && finite(judge_.share.product) && judge_.share.square >= 0.0 &&
           finite(judge_.share.square) && judge_.least.sum >= 0.0 && finite(judge_.least.sum) &&
           judge_.least.count >= 0.0 && finite(judge_.least.count) && finite(judge_.for_critic.sum) &&
           judge_.for_critic.squares >= 0.0 && finite(judge_.for_critic.squares) && finite(prices_.spent) &&
           finite(prices_.kept) && finite(prices_.usual);
  }

 private:
  static constexpr double fading = 5.0;             // exploration fades so many times as fast as the critic's
  static constexpr double first_exploring = 0.05;   // near a start, less is enough
  static constexpr double almost_all = 0.99;        // of the weight
  static constexpr double enough_parts = 50.0;      // rounds with parts that outweigh any number without
  static constexpr double exploring_rounds = 10.0;  // as the critic's own

  static constexpr double memory = 1000.0;               // rounds of what is reported and of mean errors
  static constexpr double lasting = 1.0 - 1.0 / 4000.0;  // per round, of what is judged
  static constexpr double prior_rounds = 100.0;          // that say that the formula is right
  static constexpr double farthest = 5.0;                // root mean squares, of errors with heavy tails
  // The critic decides alone if the formula has less weight, and is worse by more standard deviations.
  static constexpr double least_weight = 0.05, most_doubt = 3.0;
  // A formula is wrong if it explains less of the reported values, and right again if it explains more.
  static constexpr double least_reported = 8.0, least_explained = 0.5, well_explained = 0.8;

  struct Judge {
    double rounds = 0.0, centre = 0.0, spread = 0.0, own_square = 0.0, critic_square = 0.0;
    ErrorRegression share = {};                                            // of the formula, mixed into the critic
    MeanSquare least = {};                                                 // the smaller error of both
    SelfNormalisedTest for_critic = {};                                    // whether the critic is better
    double reported = 0.0, mean = 0.0, variance = 0.0, unexplained = 0.0;  // of reported values
    double since = 0.0;  // rounds since the formula was found to be wrong, or 0
    double bare = 0.0;   // outcomes without parts
  };

  bool is_trusted() const {
    return !empty() && judge_.since == 0.0 && !(weight() < least_weight && judge_.for_critic.z() > most_doubt) &&
           parts_.rounds() >= smaller(judge_.bare, enough_parts);
  }

  // Compares the errors of both predictions, which `scale` multiplies.
  void compare(double scale, double own, double other) {
    own *= scale, other *= scale;
    judge_.share.add(lasting, other, own);
    judge_.least.add(lasting, smaller(__builtin_fabs(own), __builtin_fabs(other)));
    judge_.for_critic.add(own, other, lasting);
  }

  // What each action of the grid is worth if what is spent has this price.
  void price(const double* values, double spent, double* worth) const {
    for (std::size_t g = 0; g < points; ++g)
      worth[g] = is_limited() ? values[g] - spent * spent_[g] + prices_.kept * kept_[g] : values[g];
  }

  // The mean over a window.
  static double mean(const double* values, double centre, double half) {
    double sum = 0.0;
    for (std::size_t i = 0; i < within_window; ++i) {
      const double place = (static_cast<double>(i) + 0.5) / (0.5 * within_window) - 1.0;
      sum += ActionBasis::Place(centre + half * place).value(values);
    }
    return sum / within_window;
  }
  static constexpr std::size_t within_window = 8;

  // Judges the formula by a value that was reported and the one that it says, given the parts.
  void judge_formula(double reported, double said) {
    if (!(said == said)) return;
    judge_.reported += 1.0;
    const double rate = larger(1.0 / judge_.reported, 1.0 / memory), before = reported - judge_.mean;
    judge_.mean += rate * before;
    const double square = before * (reported - judge_.mean), error = (reported - said) * (reported - said);
    judge_.variance += rate * (square - judge_.variance);
    judge_.unexplained += rate * (error - judge_.unexplained);
    if (judge_.reported < least_reported) return;
    if (judge_.since == 0.0 && explained() < least_explained) judge_.since = 1.0;
    if (judge_.since > 0.0 && explained() > well_explained) judge_.since = 0.0;
  }

  double original(double loss) const {
    return settings_.losses.high < __builtin_inf()
               ? settings_.losses.low + loss * (settings_.losses.high - settings_.losses.low)
               : loss;
  }

  // Epsilon is smaller if exploring anywhere costs most of the value.
  static double affordable(const double* values, Range range) {
    double most = -__builtin_inf(), mean = 0.0;
    for (std::size_t g = 0; g < points; ++g) {
      const double position = range.low + (range.high - range.low) * ActionBasis::position(g);
      const double value = ActionBasis::Place(position).value(values);
      most = larger(most, value), mean += value / points;
    }
    if (!(most > 0.0)) return least_exploring;
    const double gap = (most - mean) / most;
    return gap > 0.4 ? larger(0.02 / gap, least_exploring) : 1.0;
  }
  static constexpr double least_exploring = 0.0005;

  PartsSettings settings_;
  OutcomeParts parts_;
  Judge judge_;
  Prices prices_;
  Expectation expectation_;
  double spent_[points], kept_[points];  // by each action of the grid, in the context of `predict`
};

}  // namespace manul::MANUL_SIMD
