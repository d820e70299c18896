// The memory of the critic: the latest rounds, and the standard units of contexts and losses.
#pragma once

#include "contexts/context_view.hpp"
#include "critic/network.hpp"
#include "numerics/arithmetic.hpp"

namespace manul::MANUL_SIMD {

class ReplayBuffer {
 public:
  explicit ReplayBuffer(std::size_t width)
      : width_(width), stride_((width + 1 + 15) / 16 * 16), capacity_(rows_for(stride_)),
        contexts_(capacity_ * stride_), actions_(capacity_), losses_(capacity_), predictions_(capacity_),
        mean_(stride_), variance_(stride_), shift_(stride_), scale_(stride_), raw_(stride_), row_(stride_),
        rows_(batch * stride_) {}

  std::size_t stride() const { return stride_; }
  std::size_t capacity() const { return capacity_; }
  double rounds() const { return units_.rounds; }

  // The inverse unit of losses: networks are trained on (loss - centre) gain.
  double gain() const { return units_.gain; }
  double standard(double loss) const { return (loss - units_.centre) * units_.gain; }
  double original(double standard) const { return standard / units_.gain + units_.centre; }

  // The slot of the round that is `age` rounds older than the newest.
  std::size_t slot(std::size_t age) const { return newest_slot(-static_cast<double>(age)); }
  const float* context(std::size_t slot) const { return contexts_.data() + slot * stride_; }
  float column(std::size_t slot, std::size_t column) const { return context(slot)[column]; }
  float action(std::size_t slot) const { return actions_.data()[slot]; }
  double standard_loss(std::size_t slot) const { return standard(losses_.data()[slot]); }

  // The loss that the networks predicted when they were last trained on the round, in standard units.
  float prediction(std::size_t slot) const { return predictions_.data()[slot]; }
  void set_prediction(std::size_t slot, float standard) { predictions_[slot] = standard; }

  // `action` and `density` are relative to the range [0, 1].
  void remember(const ContextView& context, double action, double density, double loss) {
    const std::size_t slot = newest_slot(1.0);
    for (std::size_t i = 0; i < width_; ++i) contexts_[slot * stride_ + i] = context.values[i];
    actions_[slot] = static_cast<float>(action);
    losses_[slot] = static_cast<float>(loss);
    units_.rounds += 1.0;
    learn_contexts(context);
    learn_losses(loss, smaller(1.0, 1.0 / density));
  }

  const float* standardise(const ContextView& context) {
    for (std::size_t i = 0; i < width_; ++i) raw_[i] = context.values[i];
    standardise(raw_.data(), row_.data());
    return row_.data();
  }

  // Draws one sample from each sixteenth of the last `memory` rounds on a square-root scale of age, so that recent
  // rounds count more, at no cost in a stationary world. With `newest_first`, the first sample is the newest round.
  void sample(Batch& data, double memory, double uniform, bool newest_first) {
    for (std::size_t i = 0; i < batch; ++i) {
      const double u = (static_cast<double>(i) + uniform) / static_cast<double>(batch);
      const double age = i == 0 && newest_first ? 0.0 : __builtin_floor(u * u * memory);
      data.slots[i] = newest_slot(-age);
      for (std::size_t c = 0; c < stride_; c += 16) __builtin_prefetch(&contexts_[data.slots[i] * stride_ + c]);
    }
    data.rows = rows_.data();
    for (std::size_t i = 0; i < batch; ++i) {
      standardise(&contexts_[data.slots[i] * stride_], &rows_[i * stride_]);
      data.action[i] = actions_[data.slots[i]];
      data.loss[i] = static_cast<float>(standard_loss(data.slots[i]));
    }
  }

  bool is_valid() const {
    bool all = is_count(units_.rounds) && finite(units_.weight) && finite(units_.centre) && finite(units_.spread) &&
               finite(units_.gain) && units_.gain > 0.0;
    for (std::size_t i = 0; i < capacity_; ++i) all = all && actions_.data()[i] >= 0.0f && actions_.data()[i] <= 1.0f;
    for (std::size_t i = 0; i < capacity_; ++i)
      all = all && finite(losses_.data()[i]) && finite(predictions_.data()[i]);
    return all;
  }

  static constexpr std::size_t arrays = 9;

  Array array(std::size_t index) {
    const Array all[arrays] = {
        {"contexts", "f4", contexts_.data(), contexts_.size()},
        {"actions", "f4", actions_.data(), actions_.size()},
        {"losses", "f4", losses_.data(), losses_.size()},
        {"predictions", "f4", predictions_.data(), predictions_.size()},
        {"mean", "f8", mean_.data(), mean_.size()},
        {"variance", "f8", variance_.data(), variance_.size()},
        {"shift", "f4", shift_.data(), shift_.size()},
        {"scale", "f4", scale_.data(), scale_.size()},
        {"units", "f8", &units_, sizeof units_ / sizeof(double)},
    };
    return all[index];
  }

 private:
  static constexpr float farthest = 5.0f;        // standard deviations; outliers are clipped
  static constexpr double usual_spread = 0.2;    // standard deviation of scaled losses; the learning rates assume it
  static constexpr double least_spread = 1e-12;  // a smaller variance is rounding error: all losses were equal
  static constexpr double least_deviation = 0x1p-127;  // the smallest whose inverse is a float

  // 32,768 rounds, or fewer so that they take at most 64 MiB.
  static std::size_t rows_for(std::size_t stride) {
    const std::size_t fit = (std::size_t{1} << 24) / stride;
    return fit > 32768 ? 32768 : fit < 1024 ? 1024 : fit;
  }

  // The slot `rounds` after the newest round.
  std::size_t newest_slot(double rounds) const {
    return static_cast<std::size_t>(units_.rounds + static_cast<double>(capacity_) + rounds - 1.0) % capacity_;
  }

  void learn_contexts(const ContextView& context) {
    constexpr double rounding = 1e-6;  // of floats, relative to the mean; a column with less variation is constant
    const double rate = 1.0 / units_.rounds;
    for (std::size_t i = 0; i < width_; ++i) {
      const double before = context.values[i] - mean_[i];
      mean_[i] += rate * before;
      variance_[i] += rate * (before * (context.values[i] - mean_[i]) - variance_[i]);
      const double deviation = __builtin_sqrt(variance_[i]);
      shift_[i] = static_cast<float>(mean_[i]);
      scale_[i] = deviation > larger(rounding * absolute(mean_[i]), least_deviation)
                      ? static_cast<float>(1.0 / deviation)
                      : 0.0f;
    }
  }

  // Explored rounds have the largest weights, so that the unit is stable while the policy improves.
  void learn_losses(double loss, double weight) {
    units_.weight += weight;
    const double rate = units_.weight > 0.0 ? weight / units_.weight : 0.0, before = loss - units_.centre;
    units_.centre += rate * before;
    units_.spread += rate * (before * (loss - units_.centre) - units_.spread);
    units_.gain = units_.spread > least_spread ? usual_spread / __builtin_sqrt(units_.spread) : 1.0;
  }

  void standardise(const float* context, float* row) const {
    for (std::size_t i = 0; i < stride_; i += wide) {
      const Lanes shift = load<Lanes>(shift_.data() + i), scale = load<Lanes>(scale_.data() + i);
      const Lanes z = (load<Lanes>(context + i) - shift) * scale;
      store(row + i, positive(z + farthest) - positive(z - farthest) - farthest);
    }
    row[width_] = 1.0f;
  }

  struct Units {
    double rounds = 0.0, weight = 0.0, centre = 0.0, spread = 0.0, gain = 1.0;
  };

  std::size_t width_, stride_, capacity_;
  Buffer<float> contexts_, actions_, losses_, predictions_;
  Buffer<double> mean_, variance_;
  Buffer<float> shift_, scale_, raw_, row_, rows_;
  Units units_;
};

}  // namespace manul::MANUL_SIMD
