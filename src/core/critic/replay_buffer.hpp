// The memory of the critic: the latest rounds, and the standard units of contexts and losses.
#pragma once

#include "contexts/context_view.hpp"
#include "critic/loss_bounds.hpp"
#include "critic/network.hpp"
#include "critic/sparse_contexts.hpp"
#include "numerics/arithmetic.hpp"

namespace manul::MANUL_SIMD {

// Losses are bounded, and standardised: (loss - centre) gain.
struct LossUnits {
  double centre, gain, low, high;
};

class ReplayBuffer {
 public:
  // Contexts are rows of `width` numbers or, if `features` is not 0, have up to this number of named features. With
  // `unknown_losses`, losses are any finite numbers, otherwise numbers from 0 to 1. Actions have `action_columns`.
  ReplayBuffer(std::size_t width, std::size_t features, std::size_t action_columns, bool unknown_losses)
      : width_(width), action_columns_(action_columns), stride_((width + 1 + 15) / 16 * 16),
        capacity_(rows_for(stride_)), named_(features > 0), unknown_(unknown_losses),
        contexts_(named_ ? 0 : capacity_ * stride_), actions_(capacity_ * action_columns),
        losses_(unknown_ ? 0 : capacity_), predictions_(capacity_), raw_losses_(unknown_ ? capacity_ : 0),
        loss_weights_(unknown_ ? early : 0), mean_(stride_), variance_(stride_), shift_(stride_), scale_(stride_),
        raw_(stride_), row_(stride_), rows_(batch * stride_), sparse_(features, capacity_) {
    for (std::size_t i = 0; i < batch; ++i) rows_[i * stride_ + width_] = 1.0f;
  }

  static constexpr std::size_t early = 512;  // rounds in which the unit of losses is computed anew with their bounds;
                                             // the drift detector is silent for nearly as long

  std::size_t stride() const { return stride_; }

  std::size_t capacity() const { return capacity_; }

  std::size_t action_columns() const { return action_columns_; }

  // How many rounds can be sampled; fewer than the capacity if named contexts have very many features.
  double remembered() const { return units_.rounds - oldest(); }

  double rounds() const { return units_.rounds; }

  // How many named features are known.
  std::size_t features() const { return sparse_.features(); }

  // The raw numbers of a context, for learners of rows: the context itself or, if it is named, its first 128 features,
  // which are 0 if absent; features keep their columns. The row is valid until the next call.
  std::size_t column_count() const { return named_ ? SparseContexts::most_columns : width_; }
  const float* columns(std::size_t slot) { return named_ ? sparse_.columns(slot) : &contexts_[slot * stride_]; }
  float column(std::size_t slot, std::size_t column) const {
    return named_ ? sparse_.column(slot, column) : contexts_.data()[slot * stride_ + column];
  }
  const float* columns(const ContextView& context) { return named_ ? sparse_.columns(context) : context.values; }

  // The inverse unit of losses: networks are trained on (loss - centre) gain.
  double gain() const { return units_.gain; }
  double standard(double loss) const { return (bounds_.bound(loss) - units_.centre) * units_.gain; }
  double original(double standard) const { return standard / units_.gain + units_.centre; }

  LossUnits loss_units() const { return {units_.centre, units_.gain, bounds_.least(), bounds_.most()}; }

  double clipped() const { return bounds_.count(); }

  // The slot of the round that is `age` rounds older than the newest.
  std::size_t slot(std::size_t age) const { return newest_slot(-static_cast<double>(age)); }
  const float* action(std::size_t slot) const { return actions_.data() + slot * action_columns_; }
  double loss(std::size_t slot) const { return unknown_ ? raw_losses_.data()[slot] : losses_.data()[slot]; }
  double bounded_loss(std::size_t slot) const { return bounds_.bound(loss(slot)); }
  double standard_loss(std::size_t slot) const { return standard(loss(slot)); }

  // The first round that is still remembered, counted from 0.
  double oldest() const {
    return named_ ? sparse_.oldest() : larger(0.0, units_.rounds - static_cast<double>(capacity_));
  }

  // The loss that the networks predicted when they were last trained on the round, in standard units.
  float prediction(std::size_t slot) const { return predictions_.data()[slot]; }
  void set_prediction(std::size_t slot, float standard) { predictions_[slot] = standard; }

  // The columns of the action and the density are relative to the range [0, 1].
  void remember(const ContextView& context, const double* action, double density, double loss) {
    const std::size_t slot = newest_slot(1.0);
    for (std::size_t k = 0; k < action_columns_; ++k)
      actions_[slot * action_columns_ + k] = static_cast<float>(action[k]);
    const double weight = smaller(1.0, 1.0 / density);
    if (unknown_) {
      loss = clip(loss, -LossBounds::largest, LossBounds::largest);
      raw_losses_[slot] = loss;
      if (units_.rounds < early) loss_weights_[slot] = static_cast<float>(weight);
    } else {
      losses_[slot] = static_cast<float>(loss);
    }
    units_.rounds += 1.0;
    remember_context(context, slot);
    learn_losses(bounds_.bound(loss), weight);
    if (unknown_ && bounds_.is_due(loss, units_.rounds)) update_bounds();
  }

  StandardContext standardise(const ContextView& context) {
    if (named_) return {constant, sparse_.standardise(context, units_.rounds)};
    for (std::size_t i = 0; i < width_; ++i) raw_[i] = context.values[i];
    standardise(raw_.data(), row_.data());
    return {row_.data(), {}};
  }

  // Draws one sample from each sixteenth of the last `memory` rounds on a square-root scale of age, so that recent
  // rounds count more, at no cost in a stationary world. With `newest_first`, the first sample is the newest round.
  void sample(Batch& data, double memory, double uniform, bool newest_first) {
    for (std::size_t i = 0; i < batch; ++i) {
      const double u = (static_cast<double>(i) + uniform) / static_cast<double>(batch);
      const double age = i == 0 && newest_first ? 0.0 : __builtin_floor(u * u * memory);
      data.slots[i] = newest_slot(-age);
    }
    data.rows = rows_.data();
    data.features = named_ ? &sparse_.sample(data.slots, units_.rounds) : nullptr;
    if (!named_) sample_rows(data.slots);
    for (std::size_t i = 0; i < batch; ++i) {
      for (std::size_t k = 0; k < action_columns_; ++k)
        data.actions[i * action_columns_ + k] = action(data.slots[i])[k];
      data.loss[i] = static_cast<float>(standard_loss(data.slots[i]));
    }
  }

  bool is_valid() const {
    bool all = is_count(units_.rounds) && finite(units_.weight) && finite(units_.centre) && finite(units_.spread) &&
               finite(units_.gain) && units_.gain > 0.0 && bounds_.is_valid();
    for (std::size_t i = 0; i < actions_.size(); ++i)
      all = all && actions_.data()[i] >= 0.0f && actions_.data()[i] <= 1.0f;
    for (std::size_t i = 0; i < capacity_; ++i)
      all = all && finite(unknown_ ? raw_losses_.data()[i] : losses_.data()[i]) && finite(predictions_.data()[i]);
    return all && (!named_ || sparse_.is_valid(units_.rounds));
  }

  std::size_t arrays() const { return own_arrays() + (named_ ? SparseContexts::arrays : 0); }

  Array array(std::size_t index) {
    if (index >= own_arrays()) return sparse_.array(index - own_arrays());
    const Array all[] = {
        {"contexts", "f4", contexts_.data(), contexts_.size()},
        {"actions", "f4", actions_.data(), actions_.size()},
        unknown_ ? Array{"losses", "f8", raw_losses_.data(), raw_losses_.size()}
                 : Array{"losses", "f4", losses_.data(), losses_.size()},
        {"predictions", "f4", predictions_.data(), predictions_.size()},
        {"mean", "f8", mean_.data(), mean_.size()},
        {"variance", "f8", variance_.data(), variance_.size()},
        {"shift", "f4", shift_.data(), shift_.size()},
        {"scale", "f4", scale_.data(), scale_.size()},
        {"units", "f8", &units_, sizeof units_ / sizeof(double)},
        {"loss_weights", "f4", loss_weights_.data(), loss_weights_.size()},
        {"loss_bounds", "f8", &bounds_, sizeof bounds_ / sizeof(double)},
    };
    return all[index];
  }

  void fit(std::size_t index, std::size_t size) {
    if (index >= own_arrays()) sparse_.fit(index - own_arrays(), size);
  }

 private:
  std::size_t own_arrays() const { return unknown_ ? 11 : 9; }
  static constexpr float constant[1] = {1.0f};   // the only number in the row of a named context
  static constexpr float farthest = 5.0f;        // standard deviations; outliers are clipped
  static constexpr double usual_spread = 0.2;    // standard deviation of scaled losses; the learning rates assume it
  static constexpr double least_spread = 1e-12;  // a smaller variance is rounding error: all losses were equal
  static constexpr double least_share = 1e-13;   // the same for losses of any size, relative to their mean

  // 32,768 rounds, or fewer so that they take at most 64 MiB.
  static std::size_t rows_for(std::size_t stride) {
    const std::size_t fit = (std::size_t{1} << 24) / stride;
    return fit > 32768 ? 32768 : fit < 1024 ? 1024 : fit;
  }

  // The slot `rounds` after the newest round.
  std::size_t newest_slot(double rounds) const {
    return static_cast<std::size_t>(units_.rounds + static_cast<double>(capacity_) + rounds - 1.0) % capacity_;
  }

  void remember_context(const ContextView& context, std::size_t slot) {
    if (named_) return sparse_.remember(context, units_.rounds);
    for (std::size_t i = 0; i < width_; ++i) contexts_[slot * stride_ + i] = context.values[i];
    learn_contexts(context);
  }

  void learn_contexts(const ContextView& context) {
    const double rate = 1.0 / units_.rounds;
    for (std::size_t i = 0; i < width_; ++i) {
      const double before = context.values[i] - mean_[i];
      mean_[i] += rate * before;
      variance_[i] += rate * (before * (context.values[i] - mean_[i]) - variance_[i]);
      shift_[i] = static_cast<float>(mean_[i]);
      scale_[i] = static_cast<float>(inverse_deviation(mean_[i], variance_[i]));
    }
  }

  // Explored rounds have the largest weights, so that the unit is stable while the policy improves.
  void learn_losses(double loss, double weight) {
    units_.weight += weight;
    const double rate = units_.weight > 0.0 ? weight / units_.weight : 0.0, before = loss - units_.centre;
    units_.centre += rate * before;
    units_.spread += rate * (before * (loss - units_.centre) - units_.spread);
    const double rounding = least_share * units_.centre, least = unknown_ ? rounding * rounding : least_spread;
    units_.gain = units_.spread > least ? usual_spread / __builtin_sqrt(units_.spread) : 1.0;
  }

  // Takes evenly spaced rounds of the whole memory. The unit of losses is computed anew in the early rounds; later it
  // moves only as slowly as with a stated range, because sudden moves look like changes of the world.
  void update_bounds() {
    const double memory = smaller(units_.rounds, static_cast<double>(capacity_));
    const double count = smaller(memory, static_cast<double>(LossBounds::most_samples));
    double samples[LossBounds::most_samples];
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
      samples[i] = raw_losses_[newest_slot(-__builtin_floor(static_cast<double>(i) * memory / count))];
    bounds_.update(samples, static_cast<std::size_t>(count), units_.rounds, 0.25 * static_cast<double>(capacity_));
    if (units_.rounds > early) return;
    units_ = {units_.rounds};
    for (std::size_t i = 0; i < static_cast<std::size_t>(units_.rounds); ++i)
      learn_losses(bounds_.bound(raw_losses_[i]), loss_weights_[i]);
  }

  void sample_rows(const std::size_t* slots) {
    for (std::size_t i = 0; i < batch; ++i)
      for (std::size_t c = 0; c < stride_; c += 16) __builtin_prefetch(&contexts_[slots[i] * stride_ + c]);
    for (std::size_t i = 0; i < batch; ++i) standardise(&contexts_[slots[i] * stride_], &rows_[i * stride_]);
  }

  void standardise(const float* context, float* row) const {
    for (std::size_t i = 0; i < stride_; i += wide) {
      const Lanes shift = load<Lanes>(shift_.data() + i), scale = load<Lanes>(scale_.data() + i);
      const Lanes z = (load<Lanes>(context + i) - shift) * scale;
      const Lanes bounded = largest(z, Lanes{} - farthest);  // also if z is not a number, after an overflow
      store(row + i, bounded < farthest ? bounded : Lanes{} + farthest);
    }
    row[width_] = 1.0f;
  }

  struct Units {
    double rounds = 0.0, weight = 0.0, centre = 0.0, spread = 0.0, gain = 1.0;
  };

  std::size_t width_, action_columns_, stride_, capacity_;
  bool named_, unknown_;
  Buffer<float> contexts_, actions_, losses_, predictions_;
  Buffer<double> raw_losses_;
  Buffer<float> loss_weights_;
  Buffer<double> mean_, variance_;
  Buffer<float> shift_, scale_, raw_, row_, rows_;
  SparseContexts sparse_;
  Units units_;
  LossBounds bounds_;
};

}  // namespace manul::MANUL_SIMD
