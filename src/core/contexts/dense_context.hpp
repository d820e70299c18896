// The input row of learners: the context, standardised or not, a constant 1, and zeros up to the stride.
#pragma once

#include <cassert>

#include "contexts/context_view.hpp"
#include "contexts/weight_tables.hpp"
#include "numerics/arithmetic.hpp"
#include "numerics/buffer.hpp"
#include "numerics/vectors.hpp"

namespace manul::MANUL_SIMD {

class DenseContext {
 public:
  DenseContext(std::size_t width, bool standardise)
      : width_(width), stride_((width + 1 + lanes - 1) / lanes * lanes), standardise_(standardise), row_(stride_),
        largest_(stride_), mean_(stride_), variance_(stride_) {
    row_[width] = 1.0f;
    largest_[width] = 1.0f;
  }

  std::size_t stride() const { return stride_; }
  const float* row() const { return row_.data(); }
  Input input() const { return {row_.data(), nullptr, stride_, retention_}; }

  void forget(double half_life) { retention_ = static_cast<float>(retention_after(half_life)); }
  float retention() const { return retention_; }

  // The largest magnitude of each feature so far, for scale-free learners.
  const float* largest() const { return largest_.data(); }

  void look(const ContextView& context) {
    assert(context.kind == ContextKind::row && context.size == width_);
    for (std::size_t i = 0; i < width_; ++i) row_[i] = context.values[i];
    if (standardise_) standardise();
  }

  // Updates the running moments (Welford); the row does not change.
  void count(const ContextView& context) {
    count_ += 1.0;
    const double rate = larger(1.0 / count_, 1.0 - retention_);
    for (std::size_t i = 0; i < width_; ++i) {
      const double before = context.values[i] - mean_[i];
      mean_[i] += rate * before;
      variance_[i] += rate * (before * (context.values[i] - mean_[i]) - variance_[i]);
    }
  }

  // Sets the row and updates the largest magnitudes.
  void measure(const ContextView& context) {
    look(context);
    groups(stride_, [&]<class V>(V, std::size_t i) {
      store(&largest_[i], MANUL_SIMD::largest(load<V>(&largest_[i]), magnitude(load<V>(&row_[i]))));
    });
  }

  static constexpr std::size_t moments_arrays = 3;

  Array moments(std::size_t index) {
    const Array all[] = {{"mean", "f8", mean_.data(), mean_.size()},
                         {"variance", "f8", variance_.data(), variance_.size()},
                         {"count", "f8", &count_, 1}};
    return all[index];
  }

  Buffer<float>& largest_array() { return largest_; }

 private:
  static constexpr float farthest = 6.0f;  // standard deviations; outliers are clipped for linear models

  // Processes the whole stride, because whole vectors are faster than a remainder of single numbers.
  void standardise() {
    float* row = row_.data();
    const double *mean = mean_.data(), *variance = variance_.data();
    for (std::size_t i = 0; i < stride_; ++i) {
      const auto deviation = static_cast<float>(__builtin_sqrt(variance[i]));
      const float z = deviation > 0.0f ? static_cast<float>(row[i] - mean[i]) / deviation : 0.0f;
      row[i] = z < -farthest ? -farthest : z > farthest ? farthest : z;
    }
    row[width_] = 1.0f;
  }

  std::size_t width_, stride_;
  bool standardise_;
  float retention_ = 1.0f;
  double count_ = 0.0;
  Buffer<float> row_, largest_;
  Buffer<double> mean_, variance_;
};

}  // namespace manul::MANUL_SIMD
