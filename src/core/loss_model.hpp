// A small model of the loss around the action that the policy plays. Actions are scaled to [0, 1].
//
//   q(x, a) = b + H(u) + d[c] + s(u) beta[c].x + alpha(a).x        u = a - c,  s(u) = clip(u / h, -1, 1)
//
//   c  centre of the played window                  b      running mean of the loss
//   d, beta  by the cell of c, eight equal ones     alpha  linear in a between the ends of the cells
//   H  a curve in u, the same for all contexts
//
// H is linear between its knots at u = 0, h, 2h, 4h, ... and their mirror images. A knot at h keeps what is learned
// inside the window, where nearly all actions fall, from changing what is believed outside.
//
// Means of q over windows are exact: a rule of few points prefers the leaves that put its points on good spots of q,
// and between neighbouring leaves that decides.
#pragma once

#include "arithmetic.hpp"
#include "tables.hpp"

namespace manul::MANUL_SIMD {

template <class Table>
class LossModel {
 public:
  template <class Shape>
  LossModel(Shape shape, double bandwidth)
      : h_(bandwidth), scalars_(count), scalar_squares_(count), vectors_(shape, first_slope + cells),
        vector_squares_(shape, first_slope + cells), history_(2) {
    while (reach_ < knots_per_side && h_ * stretch(reach_) < 1.0) ++reach_;
  }

  // What depends on the context and the played centre alone; the values must stay in place.
  void look(const Input& input, double centre) {
    x_ = input;
    vectors_.look(x_), vector_squares_.look(x_);
    vector_rate_ = static_cast<float>(0.1 / __builtin_sqrt(static_cast<double>(x_.size)));
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

  // One step of AdaGrad on (q - loss)^2 / 2.
  void learn(double action, double loss) {
    const double error = at(action) - loss;
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
    mean += (loss - mean) / smaller(rounds, smaller(memory, 1.0 / (1.0 - x_.kept)));
  }

  Buffer<double>& scalars() { return scalars_; }
  Buffer<double>& scalar_squares() { return scalar_squares_; }
  Buffer<float>& vectors() { return vectors_.all(); }
  Buffer<float>& vector_squares() { return vector_squares_.all(); }
  Buffer<double>& history() { return history_; }

 private:
  static constexpr double scalar_rate = 0.05, first_square = 0.1, memory = 10000.0;
  static constexpr std::size_t cells = 8, first_slope = cells + 1, knots_per_side = 40;
  static constexpr std::size_t first_level = 2 * knots_per_side + 1, count = first_level + cells;

  // Two neighbouring knots of a broken line, and how far a point is on the way from one to the other.
  struct Between {
    std::size_t near, far;
    double way;

    double value(const double* values) const { return (1.0 - way) * values[near] + way * values[far]; }

    // Of the line from the near knot to the point, for knots that lie 1 apart.
    double area(const double* values) const {
      return way * (values[near] + 0.5 * way * (values[far] - values[near]));
    }
  };

  static std::size_t cell(double action) { return static_cast<std::size_t>(clip(action * cells, 0.0, cells - 1.0)); }

  static Between among(double action) {
    const std::size_t near = cell(action);
    return {near, near + 1, clip(action * cells - static_cast<double>(near), 0.0, 1.0)};
  }

  double side(double action) const { return clip((action - centre_) * per_h_, -1.0, 1.0); }

  // How far apart two neighbouring knots of H are, in bandwidths.
  static double stretch(std::size_t knot) { return knot == 0 ? 1.0 : power_of_two(static_cast<std::int64_t>(knot) - 1); }

  // Knot 0 is in the middle of its array. From 1 on, the exponent of |u| / h is the knot, the mantissa the way.
  Between around(double u) const {
    const double distance = smaller(absolute(u) * per_h_, 0x1p38);
    std::uint64_t bits;
    __builtin_memcpy(&bits, &distance, sizeof bits);
    const std::size_t knot = distance < 1.0 ? 0 : (bits >> 52) - 1022;
    const double way = distance < 1.0 ? distance : distance * power_of_two(1 - static_cast<std::int64_t>(knot)) - 1.0;
    if (u < 0.0) return {knots_per_side - knot, knots_per_side - knot - 1, way};
    return {knots_per_side + knot, knots_per_side + knot + 1, way};
  }

  void step_scalar(std::size_t index, double gradient) {
    scalar_squares_[index] = x_.kept * scalar_squares_[index] + gradient * gradient;
    scalars_[index] -= scalar_rate * gradient / __builtin_sqrt(scalar_squares_[index] + first_square);
  }

  void step_vector(std::size_t index, double gradient) {
    float *weights = vectors_.open(index), *squares = vector_squares_.open(index);
    groups(x_.size, [&]<class V>(V, std::size_t i) {
      const V slope = static_cast<float>(gradient) * load<V>(x_.values + i), square = x_.kept * load<V>(squares + i) + slope * slope;
      store(squares + i, square);
      store(weights + i, load<V>(weights + i) - vector_rate_ * slope / root(square + static_cast<float>(first_square)));
    });
    vectors_.close(index), vector_squares_.close(index);
  }

  // The integrals of H / h from 0 to its knots, and of alpha(a).x from 0 to the ends of the cells, times their number.
  void integrate() {
    for (std::size_t knot = 0; knot <= reach_; ++knot) {
      const double half = 0.5 * stretch(knot);
      const std::size_t right = knots_per_side + knot, left = knots_per_side - knot;
      curve_areas_[right + 1] = curve_areas_[right] + half * (scalars_[right] + scalars_[right + 1]);
      curve_areas_[left - 1] = curve_areas_[left] - half * (scalars_[left] + scalars_[left - 1]);
    }
    for (std::size_t a = 0; a < cells; ++a) alpha_areas_[a + 1] = alpha_areas_[a] + 0.5 * (alpha_[a] + alpha_[a + 1]);
  }

  // The integral of q without its level from some point on that is the same for all actions.
  double integral(double action) const {
    const double u = action - centre_, distance = absolute(u) * per_h_;
    const Between curve = around(u), ends = among(action);
    const std::size_t knot = curve.near > knots_per_side ? curve.near - knots_per_side : knots_per_side - curve.near;
    const double outwards = stretch(knot) * curve.area(scalars_.data());
    const double sided = distance < 1.0 ? 0.5 * distance * distance : distance - 0.5;
    return h_ * (curve_areas_[curve.near] + (u < 0.0 ? -outwards : outwards) + slope_ * sided) +
           1.0 / cells * (alpha_areas_[ends.near] + ends.area(alpha_));
  }

  double h_, per_h_ = 1.0 / h_;
  std::size_t reach_ = 0;  // the first knot of H from which on the next is out of the range of actions
  Buffer<double> scalars_, scalar_squares_;
  Table vectors_, vector_squares_;
  Buffer<double> history_;
  Input x_ = {};
  float vector_rate_ = 0.0f;
  double centre_ = 0.0, level_ = 0.0, slope_ = 0.0, alpha_[cells + 1] = {}, alpha_areas_[cells + 1] = {};
  double curve_areas_[2 * knots_per_side + 1] = {};
};

}  // namespace manul::MANUL_SIMD
