// An expert of one part of an outcome: a generalised linear model of the context and the action.
//
//   eta(z, a) = sum_j u_j(a) (theta_j . z)      u_j functions of the action, z the standardised context, after a 1
//
// theta has a Gaussian posterior with mean m and covariance S, which each observation updates at its mode. The link is
// logistic for yes/no and logarithmic for counts and amounts. A curve over the actions is a mean over eight posterior
// points; with a hint, each of the eight is made monotone first, by its running minimum or maximum.
#pragma once

#include "models/settings.hpp"
#include "numerics/buffer.hpp"
#include "numerics/vectors.hpp"
#include "parts/action_basis.hpp"

namespace manul::MANUL_SIMD {

// e^x of floats up to 87, to about 2e-7.
inline Eight exponential(Eight x) {
  using Whole = decltype(x < x);
  x = x > -87.0f ? (x < 87.0f ? x : Eight{} + 87.0f) : Eight{} - 87.0f;
  const Eight scaled = x * 1.44269504f;
  const Whole k = __builtin_convertvector(scaled + (scaled > 0.0f ? Eight{} + 0.5f : Eight{} - 0.5f), Whole);
  const Eight whole = __builtin_convertvector(k, Eight), r = (x - whole * 0.693359375f) - whole * -2.12194440e-4f;
  constexpr float inverse_factorials[] = {1.0f / 120.0f, 1.0f / 24.0f, 1.0f / 6.0f, 0.5f, 1.0f, 1.0f};
  Eight sum = Eight{} + 1.0f / 720.0f;
  for (const float coefficient : inverse_factorials) sum = sum * r + coefficient;
  return sum * reinterpret_cast<Eight>((k + 127) << 23);
}

// What an expert may depend on, and the standard deviations of its prior.
struct ExpertKind {
  // Functions of the action; products of the first columns of contexts; a level that follows a random walk, as the
  // world drifts; no belief in the hint.
  enum Trait : unsigned { linear = 1, logarithmic = 2, hats = 4, products = 8, walks = 16, unhinted = 32 };

  unsigned traits;
  double level, slope;  // of the context's effects; 0: none
  double own_slope;

  bool has(Trait trait) const { return (traits & trait) != 0; }

  // The function whose slope depends on the context.
  std::size_t sloped() const {
    return has(linear) && !has(logarithmic) ? ActionBasis::linear : ActionBasis::logarithmic;
  }
};

// The prior of a kind of part.
struct PartPrior {
  double intercept, variance, slope;  // the slope has the sign of the hint
};

class PartExpert {
 public:
  PartExpert() = default;
  static constexpr std::size_t most_columns = 32, most_multiplied = 10;  // of contexts

  // Contexts have up to `columns`. `hint` is -1 if the part falls with the action, +1 if it rises, otherwise 0.
  PartExpert(const ExpertKind& kind, const PartPrior& prior, int hint, std::size_t columns)
      : kind_(kind), prior_(prior), hint_(kind.has(ExpertKind::unhinted) ? 0 : hint),
        columns_(kind.level > 0.0 ? columns : 0), multiplied_(!kind.has(ExpertKind::products) ? 0
                                                              : columns_ < most_multiplied    ? columns_
                                                                                              : most_multiplied) {
    first_product_ = 1 + columns_;
    first_sloped_ = first_product_ + multiplied_ * (multiplied_ + 1) / 2;
    first_single_ = first_sloped_ + (kind_.slope > 0.0 ? 1 + columns_ : 0);
    size_ = first_single_;
    bases_[0] = ActionBasis::constant;
    count_ = 1;
    if (kind_.slope > 0.0) bases_[count_++] = kind_.sloped();
    for (std::size_t f = ActionBasis::linear; f < ActionBasis::size; ++f) {
      const bool has = f == ActionBasis::linear        ? kind_.has(ExpertKind::linear)
                       : f == ActionBasis::logarithmic ? kind_.has(ExpertKind::logarithmic)
                                                       : kind_.has(ExpertKind::hats);
      if (!has || (kind_.slope > 0.0 && f == kind_.sloped())) continue;
      bases_[count_++] = f;
      ++size_;
    }
    stride_ = (size_ + 7) / 8 * 8;
  }

  // The numbers of its state: the mean and the rows of the covariance.
  std::size_t numbers() const { return stride_ * (1 + size_); }
  void hold(double* state) { mean_ = state, covariance_ = state + stride_; }

  // Sets the prior, without effects of the context.
  void start() {
    const double slopes = kind_.has(ExpertKind::linear) && kind_.has(ExpertKind::logarithmic) ? 2.0 : 1.0;
    mean_[0] = prior_.intercept;
    variance(0) = prior_.variance;
    for (std::size_t j = 1; j < count_; ++j) {
      const bool hat = bases_[j] >= ActionBasis::first_hat;
      mean_[place(j)] = hat ? 0.0 : hint_ * prior_.slope / slopes;
      variance(place(j)) = hat ? hat_variance : kind_.own_slope * kind_.own_slope;
    }
  }

  void set_level(double level) { mean_[0] = level; }
  double level() const { return mean_[0]; }

  // Sets a prior with this level at a place of the grid and this slope there, per position; the slope has half of
  // itself as its standard deviation.
  void start_at(const ActionBasis& basis, ActionBasis::Place at, double level, double level_variance, double slope) {
    const double* function = basis[kind_.sloped()];
    const double own = slope / ((function[at.point + 1] - function[at.point]) * (ActionBasis::points - 1.0));
    const double value = at.value(function);
    const std::size_t sloped = first_sloped_;
    mean_[0] = level - own * value, mean_[sloped] = own;
    variance(sloped) = 0.1 * own * own;
    variance(0) = level_variance + value * value * variance(sloped);
    covariance_[sloped] = covariance_[sloped * stride_] = -value * variance(sloped);
  }

  // Takes over what a sister of the same kind has learned, less surely; `freed` leaves level and slope nearly open.
  void inherit(const PartExpert& sister, bool freed) {
    for (std::size_t i = 0; i < stride_; ++i) mean_[i] = sister.mean_[i];
    for (std::size_t i = 0; i < stride_ * size_; ++i) covariance_[i] = 4.0 * sister.covariance_[i];
    for (std::size_t j = 0; freed && j < count_; ++j)
      if (bases_[j] < ActionBasis::first_hat)
        variance(place(j)) += 0.5 * (j == 0 ? prior_.variance : kind_.own_slope * kind_.own_slope);
  }

  // Sets the prior of a column of contexts that was not used before; `columns` are used with it.
  void add_column(std::size_t column, double columns) {
    if (column >= columns_) return;
    variance(1 + column) = kind_.level * kind_.level / columns;
    if (kind_.slope > 0.0) variance(first_sloped_ + 1 + column) = kind_.slope * kind_.slope / columns;
    for (std::size_t other = 0; column < multiplied_ && other <= column; ++other)
      variance(product(column, other)) = kind_.level * kind_.level / columns;
  }

  // Sets the context, whose first `used` columns are standardised in z.
  void look(const double* z, std::size_t used, const float (*directions)[8]) {
    features(z, used);
    double mean[ActionBasis::size], factor[ActionBasis::size][ActionBasis::size];
    project(mean, factor);
    for (std::size_t j = 0; j < count_; ++j) {  // Cholesky's factor, row by row
      for (std::size_t k = 0; k <= j; ++k) {
        double rest = factor[j][k];
        for (std::size_t i = 0; i < k; ++i) rest -= factor[j][i] * factor[k][i];
        factor[j][k] = k < j ? rest / factor[k][k] : __builtin_sqrt(larger(rest, least_variance));
      }
      Eight point = Eight{} + static_cast<float>(mean[j]);
      for (std::size_t k = 0; k <= j; ++k) point += static_cast<float>(factor[j][k]) * load<Eight>(directions[k]);
      store(points_[j], point);
    }
  }

  // The expectation of the part at each action of the grid, in the context of `look`.
  void curve(const ActionBasis& basis, PartKind part, double* expectations) const {
    Eight extreme = Eight{} + (hint_ < 0 ? 1e30f : -1e30f);
    for (std::size_t g = 0; g < ActionBasis::points; ++g) {
      extreme = bounded(extreme, eta(basis, g));
      expectations[g] = expected(extreme, part);
    }
  }

  // The same at one place of the grid.
  double at(const ActionBasis& basis, PartKind part, ActionBasis::Place place) const {
    const Eight low = eta(basis, place.point), high = eta(basis, place.point + 1);
    Eight extreme = low + static_cast<float>(place.share) * (high - low);
    for (std::size_t g = 0; hint_ != 0 && g <= place.point; ++g) extreme = bounded(extreme, eta(basis, g));
    return expected(extreme, part);
  }

  // Learns what the part was at a place of the grid, in the context of `look`. `spread` is the overdispersion of counts
  // or the dispersion of amounts.
  void learn(const ActionBasis& basis, PartKind part, ActionBasis::Place place, double seen, double spread) {
    if (kind_.has(ExpertKind::walks)) variance(0) = smaller(variance(0) + walk, prior_.variance);
    double value[ActionBasis::size];
    for (std::size_t j = 0; j < count_; ++j) value[j] = place.value(basis[bases_[j]]);
    for (std::size_t f = 0; f < first_sloped_; ++f) phi_[f] = z_[f];
    for (std::size_t f = first_sloped_; f < first_single_; ++f) phi_[f] = z_[f] * value[1];
    for (std::size_t f = first_single_; f < size_; ++f) phi_[f] = value[count_ - (size_ - f)];
    for (std::size_t f = 0; f < stride_; ++f) product_[f] = 0.0;
    for (std::size_t f = 0; f < size_; ++f) add_row(f, phi_[f], product_);
    double eta = 0.0, square = 0.0;
    for (std::size_t f = 0; f < size_; ++f) eta += phi_[f] * mean_[f], square += phi_[f] * product_[f];
    square = larger(square, least_variance);
    double weight = 0.0;
    const double moved = mode(part, eta, square, seen, spread, weight);
    const double step = (moved - eta) / square, shrink = weight / (1.0 + weight * square);
    for (std::size_t f = 0; f < size_; ++f) mean_[f] += product_[f] * step;
    for (std::size_t f = 0; f < size_; ++f) {
      const double factor = product_[f] * shrink;
      if (factor == 0.0) continue;
      double* row = covariance_ + f * stride_;
      for (std::size_t g = 0; g < stride_; ++g) row[g] -= factor * product_[g];
    }
  }

 private:
  static constexpr std::size_t most_size = 2 * (1 + most_columns) + most_multiplied * (most_multiplied + 1) / 2 + 32;
  static constexpr double hat_variance = 0.16, walk = 0.005, least_variance = 1e-12;

  double& variance(std::size_t feature) { return covariance_[feature * stride_ + feature]; }
  std::size_t product(std::size_t i, std::size_t k) const { return first_product_ + i * (i + 1) / 2 + k; }

  // The feature of a function of the action alone.
  std::size_t place(std::size_t j) const {
    if (j == 0) return 0;
    return kind_.slope > 0.0 && j == 1 ? first_sloped_ : size_ - (count_ - j);
  }

  void features(const double* z, std::size_t used) {
    used = used < columns_ ? used : columns_;
    for (std::size_t f = 0; f < stride_; ++f) z_[f] = 0.0;
    z_[0] = 1.0;
    for (std::size_t i = 0; i < used; ++i) z_[1 + i] = z[i];
    for (std::size_t i = 0; i < used && i < multiplied_; ++i)
      for (std::size_t k = 0; k <= i; ++k)
        z_[product(i, k)] = k < i ? bent(z[i]) * bent(z[k]) : (z[i] * z[i] - 1.0) * 0.7071;
    if (first_sloped_ == first_single_) return;
    z_[first_sloped_] = 1.0;
    for (std::size_t i = 0; i < used; ++i) z_[first_sloped_ + 1 + i] = z[i];
  }

  // Nearly a sign: products tell segments that answer in opposite ways apart.
  static double bent(double z) { return clip(z, -0.5, 0.5) / 0.43; }

  void add_row(std::size_t feature, double weight, double* sums) const {
    if (weight == 0.0) return;
    const double* row = covariance_ + feature * stride_;
    for (std::size_t g = 0; g < stride_; ++g) sums[g] += weight * row[g];
  }

  // The mean and the covariance of the coefficients of the functions of the action, in the context.
  void project(double* mean, double (*covariance)[ActionBasis::size]) {
    const std::size_t grouped = first_sloped_ < first_single_ ? 2 : 1;  // functions that columns have effects on
    const std::size_t ends[3] = {0, first_sloped_, first_single_};
    for (std::size_t j = 0; j < count_; ++j) mean[j] = mean_[place(j)];
    for (std::size_t j = 0; j < grouped; ++j) {
      for (std::size_t f = 0; f < stride_; ++f) product_[f] = 0.0;
      for (std::size_t f = ends[j]; f < ends[j + 1]; ++f) add_row(f, z_[f], product_);
      mean[j] = 0.0;
      for (std::size_t f = ends[j]; f < ends[j + 1]; ++f) mean[j] += z_[f] * mean_[f];
      for (std::size_t k = 0; k < grouped; ++k) {
        double total = 0.0;
        for (std::size_t f = ends[k]; f < ends[k + 1]; ++f) total += z_[f] * product_[f];
        covariance[j][k] = covariance[k][j] = total;
      }
      for (std::size_t k = grouped; k < count_; ++k) covariance[j][k] = covariance[k][j] = product_[place(k)];
    }
    for (std::size_t j = grouped; j < count_; ++j)
      for (std::size_t k = j; k < count_; ++k)
        covariance[j][k] = covariance[k][j] = covariance_[place(j) * stride_ + place(k)];
  }

  Eight eta(const ActionBasis& basis, std::size_t g) const {
    Eight total = load<Eight>(points_[0]);
    for (std::size_t j = 1; j < count_; ++j) total += static_cast<float>(basis[bases_[j]][g]) * load<Eight>(points_[j]);
    return total;
  }

  Eight bounded(Eight extreme, Eight eta) const {
    if (hint_ == 0) return eta;
    return hint_ < 0 ? (eta < extreme ? eta : extreme) : (eta > extreme ? eta : extreme);
  }

  // The geometric mean over the posterior points: an arithmetic one would inflate what is improbable.
  static double expected(Eight eta, PartKind part) {
    if (part != PartKind::yes_no) return exponential(static_cast<double>(sum(eta)) * 0.125);
    const Eight near = eta > -farthest ? eta : Eight{} - farthest, odds = 1.0f + exponential(Eight{} - near);
    const float product = ((odds[0] * odds[4]) * (odds[2] * odds[6])) * ((odds[1] * odds[5]) * (odds[3] * odds[7]));
    return 1.0 / __builtin_sqrt(__builtin_sqrt(__builtin_sqrt(static_cast<double>(product))));
  }
  static constexpr float farthest = 10.75f;  // the product of eight odds is still a float

  // The most probable eta after an observation, of one with this mean and variance, by Newton's method; `weight` is the
  // curvature of the likelihood there.
  static double mode(PartKind part, double mean, double variance, double seen, double spread, double& weight) {
    double at = mean;
    for (int i = 0; i < 12; ++i) {
      double slope;
      if (part == PartKind::yes_no) {
        const double p = 1.0 / (1.0 + exponential(-at));
        slope = p - seen, weight = larger(p * (1.0 - p), 1e-6);
      } else if (part == PartKind::count) {
        const double expected = exponential(smaller(at, 30.0));
        slope = (expected - seen) / (1.0 + spread * expected),
        weight = larger(expected / (1.0 + spread * expected), 1e-6);
      } else {
        slope = (1.0 - seen * exponential(-at)) / spread, weight = 1.0 / spread;
      }
      const double step = clip((at - mean + variance * slope) / (1.0 + variance * weight), -2.0, 2.0);
      at -= step;
      if (absolute(step) < 1e-8) break;
    }
    return at;
  }

  ExpertKind kind_;
  PartPrior prior_;
  int hint_;
  std::size_t columns_, multiplied_, first_product_, first_sloped_, first_single_, size_, stride_, count_;
  std::size_t bases_[ActionBasis::size];
  double *mean_ = nullptr, *covariance_ = nullptr;
  float points_[ActionBasis::size][8];
  double z_[most_size], phi_[most_size], product_[most_size];
};

}  // namespace manul::MANUL_SIMD
