// Fits the parameters of the Gaussian process of the first rounds to a sample of them: one step of Adam on the
// logarithm of their posterior density, with the scale of the losses profiled out.
//
//   -(m + prior) / 2 log(prior + y' K^-1 y) - 1/2 log det K + log prior density
//
// Without the profile, the first purchase after many rounds without any is an outlier that the noise never recovers
// from.
#pragma once

#include "critic/early_factor.hpp"

namespace manul::MANUL_SIMD {

class EarlyFit {
 public:
  static constexpr std::size_t most = 96;  // rounds of a sample

  EarlyFit(std::size_t columns, std::size_t actions)
      : kernel_(columns, actions), contexts_(0), actions_(0), losses_(0), own_(0), gradient_(kernel_.parameters()) {}

  // Takes or frees the memory of samples.
  void reserve(bool open) {
    const std::size_t size = open ? most : 0;
    contexts_.resize(kernel_.columns() * size), actions_.resize(kernel_.actions() * size), losses_.resize(size);
    own_.resize(open ? kernel_.columns() : 0);
  }

  std::size_t unsaved_bytes() const { return sizeof(double) * (kernel_.columns() + kernel_.actions()) * most; }

  // Begins a sample: contexts and losses are in standard units, as in a factor.
  void begin(const double* parameters, const double* scales) {
    kernel_.set(parameters, scales);
    size_ = 0;
    double** const by_pair[] = {&similar_, &near_, &slopes_, &upper_, &inverse_, &precision_, &pull_};
    double* next = memory_of_pairs();
    for (double** each : by_pair) *each = next, next += most * most;
  }

  const EarlyKernel& kernel() const { return kernel_; }

  // The places of the next round in the sample.
  double& context(std::size_t active) { return contexts_[active * most + size_]; }
  double& action(std::size_t column) { return actions_[column * most + size_]; }
  void end_round(double y) { losses_[size_++] = y; }

  // The gradient of the posterior density, by the parameters.
  const double* gradient(const double* parameters) {
    set_covariance();
    factorise();
    invert();
    pull();
    for (std::size_t p = 0; p < kernel_.parameters(); ++p) {
      const double deviation = kernel_.prior_deviation(p);
      gradient_[p] = -parameters[p] / (deviation * deviation);
    }
    add_variances();
    add_rates();
    return gradient_.data();
  }

 private:
  // Half a megabyte that all agents of a thread share, because a step needs nothing of an earlier one.
  static double* memory_of_pairs() {
    static thread_local Buffer<double> memory(7 * most * most);
    return memory.data();
  }

  EarlyPoints points() const { return {contexts_.data(), actions_.data(), most}; }

  // The covariances of each round with those before it, and with itself. Only the lower triangles are used, except of
  // `upper_`, which becomes the transpose of the factor.
  void set_covariance() {
    for (std::size_t j = 0; j < size_; ++j) {
      double action[most_action_columns];
      for (std::size_t i = 0; i < kernel_.active(); ++i) own_[i] = contexts_[i * most + j];
      for (std::size_t k = 0; k < kernel_.actions(); ++k) action[k] = actions_[k * most + j];
      const std::size_t row = j * most, width = padded(j);
      kernel_.compare_contexts(own_.data(), points(), width, &similar_[row]);
      kernel_.compare_actions(action, points(), width, &near_[row], &slopes_[row]);
      for (std::size_t k = 0; k < width; k += double_lanes) {
        double covariances[double_lanes];
        store(covariances, kernel_.covariance(load(&similar_[row + k]), load(&near_[row + k])));
        for (std::size_t lane = 0; lane < double_lanes && k + lane < j; ++lane)
          upper_[(k + lane) * most + j] = covariances[lane];
      }
      for (std::size_t k = width; k < padded(j + 1); ++k) similar_[row + k] = near_[row + k] = slopes_[row + k] = 0.0;
      for (std::size_t k = j / 8 * 8; k < j; ++k) upper_[row + k] = 0.0;
      upper_[row + j] = kernel_.total() + kernel_.diagonal();
      for (std::size_t k = size_; k < padded(size_); ++k) upper_[row + k] = 0.0;
    }
  }

  // U' U = K, by rows of U.
  void factorise() {
    const std::size_t end = padded(size_);
    for (std::size_t i = 0; i < size_; ++i) {
      double* row = &upper_[i * most];
      const double inverse = 1.0 / __builtin_sqrt(larger(row[i], 1e-9));
      for (std::size_t j = i / 8 * 8; j < end; j += double_lanes) store(row + j, inverse * load(row + j));
      for (std::size_t j = i + 1; j < size_; ++j) {
        const std::size_t first = j / 8 * 8;
        add_scaled(-row[j], row + first, &upper_[j * most + first], end - first);
      }
    }
  }

  // The inverse of U', row by row, and K^-1 = (U^-1)(U^-1)'.
  void invert() {
    for (std::size_t i = 0; i < size_; ++i) {
      double *row = &inverse_[i * most], *whole = &precision_[i * most];
      const std::size_t width = padded(i + 1);
      for (std::size_t j = 0; j < width; ++j) row[j] = whole[j] = 0.0;
      row[i] = 1.0;
      for (std::size_t k = 0; k < i; ++k) add_scaled(-upper_[k * most + i], &inverse_[k * most], row, padded(k + 1));
      const double factor = 1.0 / upper_[i * most + i];
      for (std::size_t j = 0; j < width; j += double_lanes) store(row + j, factor * load(row + j));
    }
    for (std::size_t i = 0; i < size_; ++i)
      for (std::size_t j = 0; j <= i; ++j)
        add_scaled(inverse_[i * most + j], &inverse_[i * most], &precision_[j * most], padded(j + 1));
  }

  // The derivative of the density by the covariances of each pair, in the lower triangle; half of it on the diagonal.
  void pull() {
    double beta[most] = {}, alpha[most] = {}, squares = 0.0;
    for (std::size_t i = 0; i < size_; ++i) {
      beta[i] = dot(&inverse_[i * most], losses_.data(), padded(i + 1));
      squares += beta[i] * beta[i];
      add_scaled(beta[i], &inverse_[i * most], alpha, padded(i + 1));
    }
    const double prior = EarlyFactor::prior_rounds, gain = (static_cast<double>(size_) + prior) / (prior + squares);
    for (std::size_t j = 0; j < size_; ++j) {
      double* row = &pull_[j * most];
      for (std::size_t k = 0; k < padded(j + 1); ++k)
        row[k] = k > j ? 0.0 : gain * alpha[j] * alpha[k] - precision_[j * most + k];
      row[j] *= 0.5;
      similar_[j * most + j] = near_[j * most + j] = 1.0, slopes_[j * most + j] = 0.0;
    }
  }

  // Adds the sums of the derivatives times `each(i)`, where i is the place of a pair.
  template <class Each>
  double total(Each&& each) {
    DoubleTotal sum;
    for (std::size_t j = 0; j < size_; ++j)
      sum.add(padded(j + 1), [&](std::size_t k) { return load(&pull_[j * most + k]) * each(j * most + k); });
    return sum.value();
  }

  void add_variances() {
    double trace = 0.0;
    for (std::size_t j = 0; j < size_; ++j) trace += pull_[j * most + j];
    const auto own = [&](EarlyKernel::Part part) { return kernel_.variance(part); };
    const double jitter = EarlyKernel::jitter * trace;
    gradient_[EarlyKernel::level] +=
        own(EarlyKernel::level) * (jitter + total([](std::size_t) { return Doubles{} + 1.0; }));
    gradient_[EarlyKernel::action] +=
        own(EarlyKernel::action) * (jitter + total([&](std::size_t i) { return load(&near_[i]); }));
    gradient_[EarlyKernel::noise] += own(EarlyKernel::noise) * trace;
    if (kernel_.active() == 0) return;
    gradient_[EarlyKernel::context] +=
        own(EarlyKernel::context) * (jitter + total([&](std::size_t i) { return load(&similar_[i]); }));
    gradient_[EarlyKernel::both] +=
        own(EarlyKernel::both) * (jitter + total([&](std::size_t i) { return load(&similar_[i]) * load(&near_[i]); }));
  }

  void add_rates() {
    const double action = kernel_.variance(EarlyKernel::action), context = kernel_.variance(EarlyKernel::context),
                 both = kernel_.variance(EarlyKernel::both);
    for (std::size_t k = 0; k < kernel_.actions(); ++k)
      gradient_[EarlyKernel::parts + k] -= kernel_.action_rate(k) * apart(&actions_[k * most], [&](std::size_t i) {
                                             return (action + both * load(&similar_[i])) * load(&slopes_[i]);
                                           });
    for (std::size_t c = 0; c < kernel_.active(); ++c)
      gradient_[EarlyKernel::parts + kernel_.actions() + kernel_.active(c)] -=
          0.5 * kernel_.rate(c) * apart(&contexts_[c * most], [&](std::size_t i) {
            return (context + both * load(&near_[i])) * load(&similar_[i]);
          });
  }

  // The sum of the derivatives times `each(i)` times the squared distance in a column.
  template <class Each>
  double apart(const double* column, Each&& each) {
    DoubleTotal sum;
    for (std::size_t j = 0; j < size_; ++j)
      sum.add(padded(j + 1), [&](std::size_t k) {
        const Doubles distance = load(column + k) - column[j];
        return load(&pull_[j * most + k]) * each(j * most + k) * (distance * distance);
      });
    return sum.value();
  }

  EarlyKernel kernel_;
  std::size_t size_ = 0;
  Buffer<double> contexts_, actions_, losses_;
  double *similar_ = nullptr, *near_ = nullptr, *slopes_ = nullptr;  // of pairs
  double *upper_ = nullptr, *inverse_ = nullptr, *precision_ = nullptr, *pull_ = nullptr;
  Buffer<double> own_, gradient_;
};

}  // namespace manul::MANUL_SIMD
