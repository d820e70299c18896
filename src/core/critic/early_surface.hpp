// The predictions of the Gaussian process of the first rounds in one context, as a function of several knobs.
#pragma once

#include "critic/early_factor.hpp"

namespace manul::MANUL_SIMD {

// Points of one group; column k of point i is at [k * points + i].
constexpr std::size_t points = 16;

class EarlySurface {
 public:
  explicit EarlySurface(std::size_t columns) : columns_(columns), places_(0), weights_(0) {}

  // Leaves everything to the others.
  void clear() { share_ = 0.0f; }

  // Takes the predictions of a process that looks at a context, with a share in the prediction; `centre` and `gain` are
  // the standard units of losses.
  void look(EarlyFactor& factor, double share, double centre, double gain) {
    if (places_.size() == 0) places_.resize(EarlyFactor::most * columns_), weights_.resize(EarlyFactor::most);
    size_ = factor.rows();
    share_ = static_cast<float>(share);
    const double unit = factor.loss_unit() * gain;
    level_ = static_cast<float>((factor.to_loss(factor.constant()) - centre) * gain);
    least_ = static_cast<float>((factor.to_loss(factor.bound(-__builtin_inf())) - centre) * gain);
    most_ = static_cast<float>((factor.to_loss(factor.bound(__builtin_inf())) - centre) * gain);
    for (std::size_t k = 0; k < columns_; ++k) rates_[k] = __builtin_sqrt(5.0 * factor.kernel().action_rate(k));
    for (std::size_t j = 0; j < size_; ++j) {
      weights_[j] = static_cast<float>(unit * factor.weight(j));
      for (std::size_t k = 0; k < columns_; ++k)
        places_[j * columns_ + k] = static_cast<float>(rates_[k] * factor.action(j, k));
    }
  }

  // Mixes the predictions for a group of points, and unless null their slopes, into those of the others.
  void mix(const float* actions, float* losses, float* slopes) const {
    if (share_ == 0.0f) return;
    for (std::size_t i = 0; i < points; i += wide) {
      Lanes own[most_action_columns], slope[most_action_columns], total = Lanes{} + level_;
      for (std::size_t k = 0; k < columns_; ++k) {
        own[k] = static_cast<float>(rates_[k]) * load<Lanes>(actions + k * points + i);
        slope[k] = Lanes{};
      }
      for (std::size_t j = 0; j < size_; ++j) {
        const float* place = places_.data() + j * columns_;
        Lanes square = Lanes{} + 1e-12f;
        for (std::size_t k = 0; k < columns_; ++k) square += (own[k] - place[k]) * (own[k] - place[k]);
        const Lanes s = square * inverse_root(square), near = s < 60.0f ? s : Lanes{} + 60.0f;
        const Lanes fading = weights_.data()[j] * exponential(-near);
        total += (1.0f + near + square * (1.0f / 3.0f)) * fading;
        if (slopes == nullptr) continue;
        for (std::size_t k = 0; k < columns_; ++k)
          slope[k] -= (own[k] - place[k]) * ((1.0f / 3.0f) * (1.0f + near) * fading);
      }
      total = total > least_ ? (total < most_ ? total : Lanes{} + most_) : Lanes{} + least_;
      store(losses + i, (1.0f - share_) * load<Lanes>(losses + i) + share_ * total);
      for (std::size_t k = 0; slopes != nullptr && k < columns_; ++k) {
        float* at = slopes + k * points + i;
        store(at, (1.0f - share_) * load<Lanes>(at) + share_ * static_cast<float>(rates_[k]) * slope[k]);
      }
    }
  }

 private:
  std::size_t columns_, size_ = 0;
  float share_ = 0.0f, level_ = 0.0f, least_ = 0.0f, most_ = 0.0f;
  double rates_[most_action_columns] = {};
  Buffer<float> places_, weights_;
};

}  // namespace manul::MANUL_SIMD
