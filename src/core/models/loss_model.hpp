// A small model of the loss around the greedy action. Actions are scaled to [0, 1].
//
//   q(x, a) = b + H(u) + d[c] + s(u) beta[c].x + alpha(a).x        u = a - c,  s(u) = clip(u / h, -1, 1)
//
//   c  centre of the greedy window                  b      running mean of the loss
//   d, beta  by the cell of c, eight equal ones     alpha  linear in a between the ends of the cells
//   H  a curve in u, the same for all contexts
//
// H is linear between its knots at u = 0, h, 3h, 7h, ... and their mirror images. Because of the knot at h, learning
// inside the window, which contains nearly all actions, does not change the predictions outside.
//
// Means of q over windows are exact: the error of a quadrature rule would exceed the differences between neighbouring
// leaves.
#pragma once

#include "contexts/weight_tables.hpp"
#include "numerics/arithmetic.hpp"

namespace manul::MANUL_SIMD {

template <class Table>
class LossModel {
 public:
  template <class Shape>
  LossModel(Shape shape, double bandwidth)
      : h_(bandwidth), scalars_(count), scalar_squares_(count), vectors_(shape, first_slope + cells),
        vector_squares_(shape, first_slope + cells), history_(2) {
    while (reach_ + 2 < std::int64_t{knots_per_side} && h_ * (power_of_two(reach_) - 1.0) < 1.0) ++reach_;
  }

  // Computes the parts that depend on the context and the greedy centre only; the values must stay in place.
  void look(const Input& input, double centre) {
    x_ = input;
    vectors_.look(x_), vector_squares_.look(x_);
    vector_rate_ = static_cast<float>(vector_rate / __builtin_sqrt(static_cast<double>(x_.size)));
    centre_ = centre;
    const std::size_t c = cell(centre);
    level_ = history_[0] + scalars_[first_level + c];
    slope_ = dot(vectors_.read(first_slope + c), x_.values, x_.size);
    for (std::size_t a = 0; a <= cells; ++a) alpha_[a] = dot(vectors_.read(a), x_.values, x_.size);
    integrate();
  }

  double at(double action) {
    const Between curve = around(action - centre_), cells = among(action);
    return level_ + curve.value(scalars_.data()) + slope_ * side(action) + cells.value(alpha_);
  }

  // The mean over a window.
  double smoothed(double centre) { return level_ + (integral(centre + h_) - integral(centre - h_)) * (0.5 * per_h_); }

  // One step of AdaGrad on (q - loss)^2 / 2, given the error q - loss.
  void learn(double action, double loss, double error) {
    const Between curve = around(action - centre_), ends = among(action);
    const std::size_t c = cell(centre_);
    step_scalar(curve.near, error * (1.0 - curve.way));
    step_scalar(curve.far, error * curve.way);
    step_scalar(first_level + c, error);
    step_vector(first_slope + c, error * side(action));
    step_vector(ends.near, error * (1.0 - ends.way));
    step_vector(ends.far, error * ends.way);
    double &mean = history_[0], &rounds = history_[1];
    rounds += 1.0;
    mean += (loss - mean) / smaller(rounds, smaller(memory, 1.0 / (1.0 - x_.retention)));
  }

  Buffer<double>& scalars() { return scalars_; }
  Buffer<double>& scalar_squares() { return scalar_squares_; }
  Buffer<float>& vectors() { return vectors_.all(); }
  Buffer<float>& vector_squares() { return vector_squares_.all(); }
  Buffer<double>& history() { return history_; }

 private:
  // Rates of AdaGrad, chosen by experiment (docs/ablation-cats.md), and the rounds in the running mean of the loss.
  static constexpr double scalar_rate = 0.05, vector_rate = 0.1, first_square = 0.1, memory = 10000.0;
  // 40 knots at doubling distances cover any range.
  static constexpr std::size_t cells = 8, first_slope = cells + 1, knots_per_side = 40;
  static constexpr std::size_t first_level = 2 * knots_per_side + 1, count = first_level + cells;

  // A point between two neighbouring knots of a piecewise linear function.
  struct Between {
    std::size_t near, far;
    double way, span;  // position and distance from the near knot to the far one, which may be to the left

    double value(const double* values) const { return (1.0 - way) * values[near] + way * values[far]; }

    // The integral up to the point, given the integrals up to the knots.
    double integral(const double* values, const double* up_to) const {
      return up_to[near] + span * way * (values[near] + 0.5 * way * (values[far] - values[near]));
    }
  };

  static std::size_t cell(double action) { return static_cast<std::size_t>(clip(action * cells, 0.0, cells - 1.0)); }

  static Between among(double action) {
    const std::size_t near = cell(action);
    return {near, near + 1, clip(action * cells - static_cast<double>(near), 0.0, 1.0), 1.0};
  }

  double side(double action) const { return clip((action - centre_) * per_h_, -1.0, 1.0); }

  // Knot 0 is in the middle of its array. |u| / h + 1 is 2^knot (1 + way), so its bits give both without branches.
  Between around(double u) const {
    const double distance = smaller(absolute(u) * per_h_, 0x1p38) + 1.0;
    const std::int64_t knot = static_cast<std::int64_t>(bits(distance) >> 52) - 1023;
    const std::int64_t outwards = 1 - 2 * static_cast<std::int64_t>(bits(u) >> 63),
                       near = knots_per_side + outwards * knot;
    return {static_cast<std::size_t>(near), static_cast<std::size_t>(near + outwards),
            distance * power_of_two(-knot) - 1.0, static_cast<double>(outwards) * power_of_two(knot)};
  }

  void step_scalar(std::size_t index, double gradient) {
    scalar_squares_[index] = x_.retention * scalar_squares_[index] + gradient * gradient;
    scalars_[index] -= scalar_rate * gradient / __builtin_sqrt(scalar_squares_[index] + first_square);
  }

  [[gnu::flatten]] void step_vector(std::size_t index, double gradient) {
    float *weights = vectors_.open(index), *squares = vector_squares_.open(index);
    groups(x_.size, [&]<class V>(V, std::size_t i) {
      const V slope = static_cast<float>(gradient) * load<V>(x_.values + i),
              square = x_.retention * load<V>(squares + i) + slope * slope;
      store(squares + i, square);
      store(weights + i, load<V>(weights + i) - vector_rate_ * slope / root(square + static_cast<float>(first_square)));
    });
    vectors_.close(index), vector_squares_.close(index);
  }

  // The integrals of H from 0 to its knots and of alpha(a).x to the ends of the cells, in units of h and of a cell.
  void integrate() {
    double width = 0.5;
    for (std::int64_t knot = 0; knot <= reach_; ++knot, width *= 2.0) {
      const std::int64_t right = knots_per_side + knot, left = knots_per_side - knot;
      curve_areas_[right + 1] = curve_areas_[right] + width * (scalars_[right] + scalars_[right + 1]);
      curve_areas_[left - 1] = curve_areas_[left] - width * (scalars_[left] + scalars_[left - 1]);
    }
    for (std::size_t a = 0; a < cells; ++a) alpha_areas_[a + 1] = alpha_areas_[a] + 0.5 * (alpha_[a] + alpha_[a + 1]);
  }

  // The integral of q without its constant terms up to an action, from an arbitrary origin.
  double integral(double action) const {
    const double u = action - centre_, right = u * per_h_ + 1.0, left = u * per_h_ - 1.0;
    const double sided = 0.25 * (right * absolute(right) - left * absolute(left));
    return h_ * (around(u).integral(scalars_.data(), curve_areas_) + slope_ * sided) +
           1.0 / cells * among(action).integral(alpha_, alpha_areas_);
  }

  double h_, per_h_ = 1.0 / h_;
  std::int64_t reach_ = 0;  // the first knot of H at a distance of the whole range of actions
  Buffer<double> scalars_, scalar_squares_;
  Table vectors_, vector_squares_;
  Buffer<double> history_;
  Input x_ = {};
  float vector_rate_ = 0.0f;
  double centre_ = 0.0, level_ = 0.0, slope_ = 0.0, alpha_[cells + 1] = {}, alpha_areas_[cells + 1] = {};
  double curve_areas_[2 * knots_per_side + 1] = {};
};

}  // namespace manul::MANUL_SIMD
