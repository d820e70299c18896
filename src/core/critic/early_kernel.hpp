// The covariance of losses in the Gaussian process of the first rounds:
//
//   k((x, a), (x', a')) = level + action A + context X + both X A
//
//   X = exp(-1/2 sum_i r_i (x_i - x'_i)^2)        A = Matern 5/2 of sum_k l_k (a_k - a'_k)^2
//
// Its parameters are logarithms relative to their prior means, so that 0 is the prior mean of each.
#pragma once

#include "critic/sparse_contexts.hpp"
#include "numerics/buffer.hpp"
#include "numerics/doubles.hpp"

namespace manul::MANUL_SIMD {

// Points of the process by columns: number j of column c is at [c * capacity + j]. The columns of contexts come first.
struct EarlyPoints {
  const double* contexts;
  const double* actions;
  std::size_t capacity;
};

class EarlyKernel {
 public:
  // The parameters: the parts of the variance and the noise, then one rate per column of actions and of contexts.
  enum Part : std::size_t { action, context, both, noise, level, parts };

  EarlyKernel(std::size_t columns, std::size_t actions)
      : columns_(columns), actions_(actions), rates_(columns), action_rates_(actions), active_(columns) {}

  std::size_t parameters() const { return parts + actions_ + columns_; }
  std::size_t columns() const { return columns_; }
  std::size_t actions() const { return actions_; }

  // The standard deviation of the prior of a parameter, and how far from its mean it may be.
  double prior_deviation(std::size_t parameter) const {
    return parameter == level ? 1.0 : parameter < parts ? 1.5 : parameter < parts + actions_ ? 1.2 : 2.0;
  }
  double farthest(std::size_t parameter) const { return parameter < parts ? 4.0 : 6.0; }

  // Columns with scale 0 are constant so far, and left out.
  void set(const double* parameters, const double* scales) {
    static constexpr double means[parts] = {0.5, 0.2, 0.5, 0.1, 0.5};
    for (std::size_t p = 0; p < parts; ++p) variances_[p] = means[p] * exponential(parameters[p]);
    for (std::size_t k = 0; k < actions_; ++k)
      action_rates_[k] =
          exponential(parameters[parts + k]) / (usual_length * usual_length * static_cast<double>(actions_));
    active_count_ = 0;
    for (std::size_t c = 0; c < columns_; ++c)
      if (scales[c] > 0.0) active_[active_count_++] = c;
    for (std::size_t i = 0; i < active_count_; ++i)
      rates_[i] = exponential(parameters[parts + actions_ + active_[i]]) /
                  (usual_context_length * usual_context_length * static_cast<double>(active_count_));
    if (active_count_ == 0) variances_[context] = variances_[both] = 0.0;
  }

  std::size_t active() const { return active_count_; }
  std::size_t active(std::size_t i) const { return active_.data()[i]; }
  double rate(std::size_t i) const { return rates_.data()[i]; }
  double action_rate(std::size_t k) const { return action_rates_.data()[k]; }
  double variance(Part part) const { return variances_[part]; }

  // The variance of a loss without its noise, and what is added to the diagonal.
  double total() const { return variances_[level] + variances_[action] + variances_[context] + variances_[both]; }
  double diagonal() const { return variances_[noise] + jitter * total(); }

  Doubles covariance(Doubles in_context, Doubles in_action) const {
    return variances_[level] + variances_[action] * in_action +
           (variances_[context] + variances_[both] * in_action) * in_context;
  }

  // X of a context to `size` points, rounded up to a multiple of eight; it has the active columns only.
  void compare_contexts(const double* own, const EarlyPoints& points, std::size_t size, double* similar) const {
    for (std::size_t j = 0; j < size; j += double_lanes) {
      Doubles distance = {};
      for (std::size_t i = 0; i < active_count_; ++i) {
        const Doubles apart = load(points.contexts + i * points.capacity + j) - own[i];
        distance += rates_.data()[i] * (apart * apart);
      }
      store(similar + j, exponential(-0.5 * distance));
    }
  }

  // A of an action, and unless null its slopes: dA / d log l_k is -l_k (a_k - a'_k)^2 times these.
  void compare_actions(const double* own, const EarlyPoints& points, std::size_t size, double* similar,
                       double* slopes = nullptr) const {
    for (std::size_t j = 0; j < size; j += double_lanes) {
      Doubles distance = {};
      for (std::size_t k = 0; k < actions_; ++k) {
        const Doubles apart = load(points.actions + k * points.capacity + j) - own[k];
        distance += action_rates_.data()[k] * (apart * apart);
      }
      const Doubles s = root(5.0 * distance), fading = exponential(-s);
      store(similar + j, (1.0 + s + s * s * (1.0 / 3.0)) * fading);
      if (slopes != nullptr) store(slopes + j, (5.0 / 6.0) * (1.0 + s) * fading);
    }
  }

  static double matern(double s) { return (1.0 + s + s * s * (1.0 / 3.0)) * exponential(-s); }

  static constexpr double jitter = 3e-4;  // a share of the variance

 private:
  static constexpr double usual_length = 0.3;          // of actions, as a share of the range
  static constexpr double usual_context_length = 2.0;  // standard deviations

  std::size_t columns_, actions_, active_count_ = 0;
  double variances_[parts] = {};
  Buffer<double> rates_, action_rates_;
  Buffer<std::size_t> active_;
};

}  // namespace manul::MANUL_SIMD
