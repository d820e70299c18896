// The learners' input for a named context: standardised numbers, unchanged indicators, and a constant 1.
#pragma once

#include <cassert>

#include "contexts/context_view.hpp"
#include "contexts/weight_tables.hpp"
#include "numerics/arithmetic.hpp"

namespace manul::MANUL_SIMD {

class HashedContext {
 public:
  HashedContext()
      : values_(most_features + lanes), features_(most_features + lanes), counts_(fields), means_(fields),
        variances_(fields) {}

  void look(const ContextView& context) {
    assert(context.kind == ContextKind::hashed && context.size <= most_features);
    numbers_ = context.numbers;
    size_ = (context.size + 1 + lanes - 1) / lanes * lanes;
    for (std::size_t i = 0; i < context.size; ++i) features_[i] = context.features[i];
    for (std::size_t i = context.size; i < size_; ++i) values_[i] = 0.0f, features_[i] = 0;
    for (std::size_t i = 0; i < numbers_; ++i) values_[i] = standardise(field(i), context.values[i]);
    for (std::size_t i = numbers_; i < context.size; ++i) values_[i] = context.values[i];
    values_[context.size] = 1.0f;
  }

  // Updates the running moments (Welford) with the numbers of the last context; the values do not change.
  void count(const ContextView& context) {
    for (std::size_t i = 0; i < numbers_; ++i) {
      const std::size_t f = field(i);
      const double rate = larger(1.0 / (counts_[f] += 1.0), 1.0 - retention_), before = context.values[i] - means_[f];
      means_[f] += rate * before;
      variances_[f] += rate * (before * (context.values[i] - means_[f]) - variances_[f]);
    }
  }

  Input input() const { return {values_.data(), features_.data(), size_, retention_}; }
  void forget(double half_life) { retention_ = static_cast<float>(retention_after(half_life)); }

  static constexpr std::size_t moments_arrays = 3;

  Array moments(std::size_t index) {
    const Array all[] = {{"mean", "f8", means_.data(), means_.size()},
                         {"variance", "f8", variances_.data(), variances_.size()},
                         {"count", "f8", counts_.data(), counts_.size()}};
    return all[index];
  }

 private:
  static constexpr std::size_t fields = 4096;  // with moments of their own; further fields share them
  static constexpr double farthest = 6.0;      // as in DenseContext

  std::size_t field(std::size_t i) { return features_[i] % fields; }

  float standardise(std::size_t f, double value) {
    const double deviation = __builtin_sqrt(variances_[f]);
    return static_cast<float>(deviation > 0.0 ? clip((value - means_[f]) / deviation, -farthest, farthest) : 0.0);
  }

  std::size_t numbers_ = 0, size_ = 0;
  float retention_ = 1.0f;
  Buffer<float> values_;
  Buffer<std::uint32_t> features_;
  Buffer<double> counts_, means_, variances_;
};

}  // namespace manul::MANUL_SIMD
