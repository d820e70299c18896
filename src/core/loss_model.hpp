// A small model of the loss around the action that the policy plays. Actions are scaled to [0, 1].
//
//   q(x, a) = b + H(u) + d[c] + s(u) beta[c].x + alpha[a].x        u = a - c,  s(u) = clip(u / h, -1, 1)
//
//   c  centre of the played window     b  running mean of the loss       H  a curve in u, the same for all contexts
//   d, beta  by the cell of c          alpha  by the cell of a           (eight equal cells of [0, 1])
//
// H is linear between its knots at u = 0, h, 2h, 4h, ... and their mirror images. A knot at h keeps what is learned
// inside the window, where nearly all actions fall, from changing what is believed outside.
#pragma once

#include "arithmetic.hpp"
#include "tables.hpp"

namespace manul::MANUL_SIMD {

template <class Table>
class LossModel {
 public:
  template <class Shape>
  LossModel(Shape shape, double bandwidth)
      : h_(bandwidth), scalars_(count), scalar_squares_(count), vectors_(shape, 2 * cells),
        vector_squares_(shape, 2 * cells), history_(2) {}

  // What depends on the context and the played centre alone; the values must stay in place.
  void look(const Input& input, double centre) {
    x_ = input;
    vectors_.look(x_), vector_squares_.look(x_);
    vector_rate_ = static_cast<float>(0.1 / __builtin_sqrt(static_cast<double>(x_.size)));
    centre_ = centre;
    const std::size_t c = cell(centre);
    level_ = history_[0] + scalars_[first_level + c];
    slope_ = dot(vectors_.read(cells + c), x_.values, x_.size);
    for (std::size_t a = 0; a < cells; ++a) alpha_[a] = dot(vectors_.read(a), x_.values, x_.size);
  }

  double at(double action) {
    const Between knots = between(action - centre_);
    return level_ + (1.0 - knots.way) * scalars_[knots.near] + knots.way * scalars_[knots.far] +
           slope_ * side(action) + alpha_[cell(action)];
  }

  // The mean over a window, by Gauss's rule of two points.
  double smoothed(double centre) {
    constexpr double gauss = 0.5773502691896258;
    return 0.5 * (at(centre - gauss * h_) + at(centre + gauss * h_));
  }

  // One step of AdaGrad on (q - loss)^2 / 2.
  void learn(double action, double loss) {
    const double error = at(action) - loss;
    const Between knots = between(action - centre_);
    const std::size_t c = cell(centre_);
    step_scalar(knots.near, error * (1.0 - knots.way));
    step_scalar(knots.far, error * knots.way);
    step_scalar(first_level + c, error);
    step_vector(cells + c, error * side(action));
    step_vector(cell(action), error);
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
  static constexpr std::size_t cells = 8, knots_per_side = 40;
  static constexpr std::size_t first_level = 2 * knots_per_side + 1, count = first_level + cells;

  // Two neighbouring knots and how far a point is on the way from one to the other.
  struct Between {
    std::size_t near, far;
    double way;
  };

  static std::size_t cell(double action) { return static_cast<std::size_t>(clip(action * cells, 0.0, cells - 1.0)); }

  double side(double action) const { return clip((action - centre_) * per_h_, -1.0, 1.0); }

  // Knot 0 is in the middle of its array. From 1 on, the exponent of |u| / h is the knot, the mantissa the way.
  Between between(double u) const {
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

  double h_, per_h_ = 1.0 / h_;
  Buffer<double> scalars_, scalar_squares_;
  Table vectors_, vector_squares_;
  Buffer<double> history_;
  Input x_ = {};
  float vector_rate_ = 0.0f;
  double centre_ = 0.0, level_ = 0.0, slope_ = 0.0, alpha_[cells] = {};
};

}  // namespace manul::MANUL_SIMD
