// A context of named fields as learners see it: numbers standardised field by field, everything else as it is, then 1.
#pragma once

#include "contexts/weight_tables.hpp"
#include "models/policy_model.hpp"
#include "numerics/arithmetic.hpp"

namespace manul::MANUL_SIMD {

class HashedContext {
 public:
  HashedContext()
      : values_(most_features + lanes), features_(most_features + lanes), counts_(fields), means_(fields),
        variances_(fields) {}

  // Which features the values of the next context belong to; numbers come first.
  void select(const std::uint32_t* features, std::size_t count, std::size_t numbers) {
    count_ = count, numbers_ = numbers;
    size_ = (count + 1 + lanes - 1) / lanes * lanes;
    for (std::size_t i = 0; i < count; ++i) features_[i] = features[i];
    for (std::size_t i = count; i < size_; ++i) values_[i] = 0.0f, features_[i] = 0;
    values_[count] = 1.0f;
  }

  void look(const float* values) {
    for (std::size_t i = 0; i < numbers_; ++i) values_[i] = standardised(field(i), values[i]);
    for (std::size_t i = numbers_; i < count_; ++i) values_[i] = values[i];
  }

  // Takes the numbers into the running moments (Welford); the values stay as they are.
  void count(const float* values) {
    for (std::size_t i = 0; i < numbers_; ++i) {
      const std::size_t f = field(i);
      const double rate = larger(1.0 / (counts_[f] += 1.0), 1.0 - kept_), before = values[i] - means_[f];
      means_[f] += rate * before;
      variances_[f] += rate * (before * (values[i] - means_[f]) - variances_[f]);
    }
  }

  Input input() const { return {values_.data(), features_.data(), size_, kept_}; }
  void forget(double half_life) { kept_ = static_cast<float>(kept_after(half_life)); }

  static constexpr std::size_t moments_arrays = 3;

  Array moments(std::size_t index) {
    const Array all[] = {{"mean", "f8", means_.data(), means_.size()},
                         {"variance", "f8", variances_.data(), variances_.size()},
                         {"count", "f8", counts_.data(), counts_.size()}};
    return all[index];
  }

 private:
  static constexpr std::size_t fields = 4096;
  static constexpr double farthest = 6.0;

  std::size_t field(std::size_t i) { return features_[i] % fields; }

  float standardised(std::size_t f, double value) {
    const double deviation = __builtin_sqrt(variances_[f]);
    return static_cast<float>(deviation > 0.0 ? clip((value - means_[f]) / deviation, -farthest, farthest) : 0.0);
  }

  std::size_t count_ = 0, numbers_ = 0, size_ = 0;
  float kept_ = 1.0f;
  Buffer<float> values_;
  Buffer<std::uint32_t> features_;
  Buffer<double> counts_, means_, variances_;
};

}  // namespace manul::MANUL_SIMD
