// The Gaussian process of the first rounds, given its parameters: the Cholesky factor L of the covariance K of the
// losses y, to which rounds are added one by one.
//
//   K = L L'        beta = L^-1 y        alpha = K^-1 y        y ~ N(0, s^2 K), s^2 = (prior + beta' beta) / (prior +
//   n)
//
// With a prior, another prediction of each loss, whose vector in y is s, the process predicts share s and what y -
// share s leaves: both vectors have the same factor, so any share can be taken at any time.
//
// The parameters and the units of contexts and losses are those of the round in which the factor was begun, so it can
// be computed again from them and the remembered rounds.
#pragma once

#include "critic/early_kernel.hpp"
#include "critic/replay_buffer.hpp"

namespace manul::MANUL_SIMD {

class EarlyFactor {
 public:
  static constexpr std::size_t most = 384;           // rounds
  static constexpr std::size_t most_doubtful = 256;  // rounds up to which predictions have a deviation
  static constexpr std::size_t cells = 256, nodes = padded(cells + 1);  // of the curve over one action
  static constexpr double scale_of_losses = 5.0;                        // y has a variance of about 1
  static constexpr double farthest = 5.0;      // standard deviations of contexts; outliers are clipped
  static constexpr double prior_rounds = 5.0;  // of the scale s^2

  EarlyFactor(std::size_t columns, std::size_t actions)
      : kernel_(columns, actions), head_(first_parameter + kernel_.parameters() + 2 * columns), contexts_(0),
        actions_(0), lower_(0), inverse_(0), losses_(0), beta_(0), alpha_(0), residuals_(0), similar_(0), in_action_(0),
        row_(0), solved_(0), own_(0), table_(0), places_(0), near_(0), doubts_(0), prior_beta_(0), prior_residuals_(0) {
  }

  // Takes or frees the memory that is not saved.
  void reserve(bool open, bool has_prior) {
    prior_beta_.resize(open && has_prior ? most : 0), prior_residuals_.resize(open && has_prior ? most : 0);
    const std::size_t columns = open ? kernel_.columns() : 0, actions = open ? kernel_.actions() : 0;
    const std::size_t all = open ? most : 0, one = actions == 1 ? 1 : 0;
    Buffer<double>* const by_round[] = {&inverse_, &losses_,    &beta_, &alpha_, &residuals_,
                                        &similar_, &in_action_, &row_,  &solved_};
    for (Buffer<double>* each : by_round) each->resize(all);
    contexts_.resize(columns * most), actions_.resize(actions * most), lower_.resize(offset(all));
    own_.resize(columns), table_.resize(one * 2 * nodes), places_.resize(one * nodes);
    near_.resize(one * most_doubtful * width), doubts_.resize(one * most_doubtful * width);
  }

  // Goes on without the prior.
  void drop_prior() {
    prior_beta_.resize(0), prior_residuals_.resize(0);
    share_ = squares_ = 0.0;
    for (std::size_t i = 0; i < rows(); ++i) squares_ += beta_[i] * beta_[i];
  }

  const EarlyKernel& kernel() const { return kernel_; }
  std::size_t rows() const { return static_cast<std::size_t>(head_.data()[rounds]); }

  // Begins with the current units of losses and contexts.
  void begin(const ReplayBuffer& replay, const double* parameters, const double* means, const double* scales) {
    const LossUnits units = replay.loss_units();
    head_[centre] = units.centre, head_[gain] = units.gain, head_[low] = units.low, head_[high] = units.high;
    for (std::size_t p = 0; p < kernel_.parameters(); ++p) head_[first_parameter + p] = parameters[p];
    for (std::size_t c = 0; c < kernel_.columns(); ++c) mean(c) = means[c], scale(c) = scales[c];
    resume();
  }

  // Computes what depends on the saved numbers only; the rounds are then added again.
  void resume() {
    kernel_.set(&head_[first_parameter], &scale(0));
    head_[rounds] = 0.0;
    lowest_ = __builtin_inf(), highest_ = -__builtin_inf(), squares_ = share_ = 0.0;
    if (kernel_.actions() != 1) return;
    for (std::size_t i = 0; i <= cells; ++i) {
      const double apart = static_cast<double>(i) / static_cast<double>(cells);
      table_[cells + i] = table_[cells - i] = EarlyKernel::matern(apart * __builtin_sqrt(5.0 * kernel_.action_rate(0)));
    }
  }

  void forget_rounds() { head_[rounds] = 0.0; }

  // Adds the round of a slot of the memory, and the prior's prediction of its loss, if there is one.
  void add(ReplayBuffer& replay, std::size_t slot, const double* prior) {
    const std::size_t i = rows(), size = padded(i);
    const double y = to_y(replay.loss(slot));
    double action[most_action_columns];
    standardise(replay.columns(slot));
    for (std::size_t k = 0; k < kernel_.actions(); ++k) actions_[k * most + i] = action[k] = replay.action(slot)[k];
    for (std::size_t c = 0; c < kernel_.active(); ++c) contexts_[c * most + i] = own_[c];
    compare(action, size);
    double* row = &lower_[offset(i)];
    for (std::size_t j = 0; j < size; ++j) row[j] = 0.0;
    for (std::size_t j = 0; j < i; ++j) row[j] = (row_[j] - dot(&lower_[offset(j)], row, padded(j))) * inverse_[j];
    const double pivot = kernel_.total() + kernel_.diagonal() - dot(row, row, size);
    const double diagonal = __builtin_sqrt(larger(pivot, least_pivot));
    inverse_[i] = 1.0 / diagonal;
    residuals_[i] = y - dot(row, beta_.data(), size);
    beta_[i] = residuals_[i] * inverse_[i];
    losses_[i] = y;
    if (prior_beta_.size() > 0) {
      prior_residuals_[i] = to_y(*prior) - dot(row, prior_beta_.data(), size);
      prior_beta_[i] = prior_residuals_[i] * inverse_[i];
    }
    squares_ += beta_[i] * beta_[i];
    lowest_ = smaller(lowest_, y), highest_ = larger(highest_, y);
    if (near_.size() > 0 && i < most_doubtful) place(action[0], &near_[i * width]);
    head_[rounds] += 1.0;
  }

  // Solves for alpha, after rounds were added, with a share of the prior; needed by predictions.
  void solve(double share) {
    const std::size_t n = rows();
    for (std::size_t i = 0; i < most; ++i) solved_[i] = i < n ? beta_[i] : 0.0;
    share_ = prior_beta_.size() > 0 ? share : 0.0;
    if (prior_beta_.size() > 0) {
      squares_ = 0.0;
      for (std::size_t i = 0; i < n; ++i) {
        solved_[i] -= share_ * prior_beta_[i];
        squares_ += solved_[i] * solved_[i];
      }
    }
    for (std::size_t i = n; i-- > 0;) {
      alpha_[i] = solved_[i] * inverse_[i];
      add_scaled(-alpha_[i], &lower_[offset(i)], solved_.data(), padded(i));
    }
  }

  // In y: the loss of a round minus its prediction from the rounds before it.
  double loss(std::size_t i) const { return losses_.data()[i]; }
  double residual(std::size_t i) const {
    return share_ > 0.0 ? residuals_.data()[i] - share_ * prior_residual(i) : residuals_.data()[i];
  }

  // The same without the prior, and what the prior adds to that prediction.
  double own_residual(std::size_t i) const { return residuals_.data()[i]; }
  double prior_residual(std::size_t i) const { return prior_residuals_.data()[i]; }

  // From y to the units of losses, and back.
  double to_loss(double y) const { return y * loss_unit() + head_.data()[centre]; }
  double loss_unit() const { return 1.0 / (scale_of_losses * head_.data()[gain]); }
  double to_y(double loss) const {
    const double* own = head_.data();
    return (clip(loss, own[low], own[high]) - own[centre]) * (own[gain] * scale_of_losses);
  }

  // Predictions are bounded by the losses seen, and half their range more.
  double bound(double y) const {
    const double reach = 0.5 * (highest_ - lowest_);
    return clip(y, lowest_ - reach, highest_ + reach);
  }

  // Sets the context of predictions.
  void look(const float* columns) {
    const std::size_t n = rows();
    standardise(columns);
    kernel_.compare_contexts(own_.data(), points(), padded(n), similar_.data());
    const double level = kernel_.variance(EarlyKernel::level), context = kernel_.variance(EarlyKernel::context);
    constant_ = 0.0;
    for (std::size_t j = 0; j < n; ++j) constant_ += alpha_[j] * (level + context * similar_[j]);
  }

  // The prediction without the parts that depend on the action, which are the sum of weights times their covariances.
  double constant() const { return constant_; }
  double weight(std::size_t j) const {
    return alpha_.data()[j] *
           (kernel_.variance(EarlyKernel::action) + kernel_.variance(EarlyKernel::both) * similar_.data()[j]);
  }
  double action(std::size_t j, std::size_t column) const { return actions_.data()[column * most + j]; }

  // The prediction of an action, in y, given that of the prior in units of losses.
  double predict(const double* action, double prior) {
    kernel_.compare_actions(action, points(), padded(rows()), in_action_.data());
    double total = constant_;
    for (std::size_t j = 0; j < rows(); ++j) total += weight(j) * in_action_[j];
    return bound(share_ > 0.0 ? total + share_ * to_y(prior) : total);
  }

  // The predictions at the nodes of a curve over all actions of one knob, in y. Rounds are moved to the two nodes next
  // to their actions. The prior has a curve in units of losses.
  void curve(double* losses, const double* prior) {
    for (std::size_t i = 0; i < nodes; ++i) places_[i] = 0.0, losses[i] = constant_;
    for (std::size_t j = 0; j < rows(); ++j) {
      const double place = actions_[j] * static_cast<double>(cells);
      const auto node = static_cast<std::size_t>(smaller(place, static_cast<double>(cells - 1)));
      const double moved = weight(j) * (place - static_cast<double>(node));
      places_[node] += weight(j) - moved;
      places_[node + 1] += moved;
    }
    for (std::size_t i = 0; i <= cells; ++i)
      if (places_[i] != 0.0) add_scaled(places_[i], table_.data() + cells - i, losses, nodes);
    for (std::size_t i = 0; i <= cells && share_ > 0.0; ++i) losses[i] += share_ * to_y(prior[i]);
    for (std::size_t i = 0; i <= cells; ++i) losses[i] = bound(losses[i]);
  }

  // The standard deviations of the predictions at every eighth node, in y; 0 if there are many rounds, because they
  // take the most time.
  static constexpr std::size_t doubts = 33, doubt_step = cells / (doubts - 1);
  void deviations(double* at) {
    const std::size_t n = rows();
    for (std::size_t g = 0; g < doubts; ++g) at[g] = 0.0;
    if (n > most_doubtful) return;
    const auto level = static_cast<float>(kernel_.variance(EarlyKernel::level)),
               context = static_cast<float>(kernel_.variance(EarlyKernel::context)),
               action = static_cast<float>(kernel_.variance(EarlyKernel::action)),
               both = static_cast<float>(kernel_.variance(EarlyKernel::both));
    Lanes squares[width / wide] = {};
    for (std::size_t j = 0; j < n; ++j) {
      Lanes rest[width / wide];
      const auto similar = static_cast<float>(similar_[j]);
      for (std::size_t g = 0; g < width / wide; ++g)
        rest[g] = level + context * similar + (action + both * similar) * load<Lanes>(&near_[j * width + g * wide]);
      const double* row = &lower_[offset(j)];
      for (std::size_t i = 0; i < j; ++i) {
        const auto factor = static_cast<float>(row[i]);
        for (std::size_t g = 0; g < width / wide; ++g) rest[g] -= factor * load<Lanes>(&doubts_[i * width + g * wide]);
      }
      for (std::size_t g = 0; g < width / wide; ++g) {
        rest[g] *= static_cast<float>(inverse_[j]);
        store(&doubts_[j * width + g * wide], rest[g]);
        squares[g] += rest[g] * rest[g];
      }
    }
    const double unit = (prior_rounds + squares_) / (prior_rounds + static_cast<double>(n));
    for (std::size_t g = 0; g < doubts; ++g)
      at[g] = __builtin_sqrt(unit * larger(0.0, kernel_.total() - squares[g / wide][g % wide]));
  }

  bool is_valid() const {
    const double* own = head_.data();
    bool all = is_count(own[rounds]) && own[rounds] <= static_cast<double>(most) && own[low] <= own[high];
    for (std::size_t i = 0; i < head_.size(); ++i) all = all && (finite(own[i]) || i == low || i == high);
    return all && (own[rounds] == 0.0 || own[gain] > 0.0);
  }

  // What `reserve` takes, without small buffers.
  std::size_t unsaved_bytes() const {
    const std::size_t columns = kernel_.columns() + kernel_.actions();
    return sizeof(double) * (offset(most) + columns * most) + 2 * sizeof(float) * most_doubtful * width;
  }

  // The numbers of a file.
  Buffer<double>& head() { return head_; }

 private:
  enum Number : std::size_t { rounds, centre, gain, low, high, first_parameter };
  static constexpr std::size_t width = 48;     // of a row of deviations: 33 actions and padding
  static constexpr double least_pivot = 1e-9;  // of the factor, if rounding leaves none

  // Rows of the factor without its diagonal have a multiple of eight numbers.
  static constexpr std::size_t offset(std::size_t row) {
    const std::size_t block = row / 8;
    return 32 * block * (block + 1) + (row % 8) * 8 * (block + 1);
  }

  double& mean(std::size_t column) { return head_[first_parameter + kernel_.parameters() + column]; }
  double& scale(std::size_t column) { return mean(kernel_.columns() + column); }
  EarlyPoints points() const { return {contexts_.data(), actions_.data(), most}; }

  void standardise(const float* columns) {
    for (std::size_t i = 0; i < kernel_.active(); ++i) {
      const std::size_t c = kernel_.active(i);
      own_[i] = clip((columns[c] - mean(c)) * scale(c), -farthest, farthest);
    }
  }

  // The covariances of the context that was standardised and an action with the first `size` rounds.
  void compare(const double* action, std::size_t size) {
    kernel_.compare_contexts(own_.data(), points(), size, similar_.data());
    kernel_.compare_actions(action, points(), size, in_action_.data());
    for (std::size_t j = 0; j < size; j += double_lanes)
      store(&row_[j], kernel_.covariance(load(&similar_[j]), load(&in_action_[j])));
  }

  // How near the actions with deviations are.
  void place(double action, float* near) const {
    const double rate = __builtin_sqrt(5.0 * kernel_.action_rate(0));
    for (std::size_t g = 0; g < doubts; ++g)
      near[g] = static_cast<float>(EarlyKernel::matern(rate * absolute(action - static_cast<double>(g) / 32.0)));
  }

  EarlyKernel kernel_;
  Buffer<double> head_;  // rounds, units of losses, parameters, and the means and scales of columns
  Buffer<double> contexts_, actions_;
  Buffer<double> lower_, inverse_, losses_, beta_, alpha_, residuals_;
  Buffer<double> similar_, in_action_, row_, solved_, own_;
  Buffer<double> table_, places_;
  Buffer<float> near_, doubts_;
  Buffer<double> prior_beta_, prior_residuals_;
  double share_ = 0.0;  // of the prior
  double lowest_ = 0.0, highest_ = 0.0, squares_ = 0.0, constant_ = 0.0;
};

}  // namespace manul::MANUL_SIMD
