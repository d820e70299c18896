// The named contexts that the critic remembers, and the standard units of their features.
//
// Contexts have any number of features, so they are stored one after another in a ring of entries. A round is forgotten
// when its entries are overwritten: with room for 65,536 features, contexts of up to 128 features are remembered for
// 32,768 rounds, and contexts of 4,096 features for 1,024.
#pragma once

#include "critic/feature_rows.hpp"
#include "numerics/arithmetic.hpp"

namespace manul::MANUL_SIMD {

// 1 / standard deviation, or 0 for a constant column.
inline double inverse_deviation(double mean, double variance) {
  constexpr double rounding = 1e-6;             // of floats, relative to the mean; less variation is none
  constexpr double least_deviation = 0x1p-127;  // the smallest whose inverse is a float
  const double deviation = __builtin_sqrt(variance);
  return deviation > larger(rounding * absolute(mean), least_deviation) ? 1.0 / deviation : 0.0;
}

class SparseContexts {
 public:
  // `most` is the largest number of features, or 0 for contexts without names; rounds are numbered from 0, and round r
  // is in slot r modulo `slots`.
  SparseContexts(std::size_t most, std::size_t slots)
      : entries_(ring_size(most)), spans_(most > 0 ? slots : 0), features_(most),
        standard_(most > 0 ? most_features : 0), columns_(most > 0 ? most_columns : 0), batch_(most) {}

  static constexpr std::size_t most_columns = 128;  // for learners of rows

  double oldest() const { return state_.oldest; }

  // How many of the `rounds` so far are remembered.
  double remembered(double rounds) const { return rounds - state_.oldest; }

  // Remembers the context of the last of `rounds` rounds.
  void remember(const ContextView& context, double rounds) {
    const std::size_t ring = entries_.size(), slot = slot_of(rounds - 1.0);
    auto start = static_cast<std::uint64_t>(state_.written);
    if (start % ring + context.size > ring) start += ring - start % ring;
    const std::uint64_t end = start + context.size;
    spans_[slot] = {start, static_cast<std::uint32_t>(context.size), static_cast<std::uint32_t>(context.numbers)};
    for (std::size_t i = 0; i < context.size; ++i) {
      entries_[start % ring + i] = {context.features[i], context.values[i]};
      learn(context.features[i], context.values[i], i < context.numbers);
    }
    state_.written = static_cast<double>(end);
    state_.oldest = larger(state_.oldest, rounds - static_cast<double>(spans_.size()));
    while (spans_[slot_of(state_.oldest)].start + ring < end) state_.oldest += 1.0;
    used_slots_ = used_slots_ > slot ? used_slots_ : slot + 1;
    const std::size_t last = start % ring + context.size;
    used_entries_ = used_entries_ > last ? used_entries_ : last;
  }

  Entries standardise(const ContextView& context, double rounds) {
    for (std::size_t i = 0; i < context.size; ++i)
      standard_[i] = standardise({context.features[i], context.values[i]}, i < context.numbers, rounds);
    return {standard_.data(), context.size};
  }

  const FeatureBatch& sample(const std::size_t* slots, double rounds) {
    for (std::size_t s = 0; s < batch; ++s) __builtin_prefetch(entries(spans_[slots[s]]));
    batch_.clear();
    for (std::size_t s = 0; s < batch; ++s) {
      const Span span = spans_[slots[s]];
      for (std::size_t i = 0; i < span.size; ++i) batch_.add(standardise(entries(span)[i], i < span.numbers, rounds));
      batch_.end_sample();
    }
    batch_.end_batch();
    return batch_;
  }

  // The raw values of the first features in the context of a slot, 0 if absent; valid until the next call.
  const float* columns(std::size_t slot) {
    for (std::size_t i = 0; i < most_columns; ++i) columns_[i] = 0.0f;
    const Span span = spans_[slot];
    for (std::size_t i = 0; i < span.size; ++i)
      if (entries(span)[i].feature < most_columns) columns_[entries(span)[i].feature] += entries(span)[i].value;
    return columns_.data();
  }

  // One of these values.
  float column(std::size_t slot, std::size_t column) const {
    const Span span = spans_.data()[slot];
    float total = 0.0f;
    for (std::size_t i = 0; i < span.size; ++i)
      if (entries(span)[i].feature == column) total += entries(span)[i].value;
    return total;
  }

  // The first values of a context that is not remembered; valid until the next call.
  const float* columns(const ContextView& context) {
    for (std::size_t i = 0; i < most_columns; ++i) columns_[i] = 0.0f;
    for (std::size_t i = 0; i < context.size; ++i)
      if (context.features[i] < most_columns) columns_[context.features[i]] += context.values[i];
    return columns_.data();
  }

  // How many features have been learned from.
  std::size_t features() const { return known_; }

  // Knows the features of another one, in their order; calls `each(context)` with each of them.
  template <class Each>
  void adopt_features(const SparseContexts& other, Each&& each) {
    for (std::uint32_t feature = 0; feature < other.known_; ++feature) {
      const float value = 1.0f;
      const std::size_t numbers = other.features_.data()[feature].variance > 0.0 ? 1 : 0;
      each(ContextView{ContextKind::hashed, &value, 1, &feature, numbers});
    }
    known_ = other.known_;
  }

  bool is_valid(double rounds) const {
    bool all = is_count(state_.written) && is_count(state_.oldest) && state_.oldest <= rounds &&
               remembered(rounds) <= static_cast<double>(spans_.size()) &&
               (state_.written > static_cast<double>(entries_.size()) ||
                state_.written == static_cast<double>(used_entries_)) &&
               static_cast<double>(used_slots_) == smaller(rounds, static_cast<double>(spans_.size()));
    for (std::size_t i = 0; i < used_slots_; ++i) {
      const Span span = spans_.data()[i];
      all = all && span.size <= most_features && span.start % entries_.size() + span.size <= used_entries_;
    }
    for (std::size_t i = 0; i < used_entries_; ++i) all = all && entries_.data()[i].feature < known_;
    for (std::size_t i = 0; i < known_; ++i) {
      const Feature& each = features_.data()[i];
      all = all && finite(each.count) && finite(each.mean) && finite(each.variance) && finite(each.scale);
    }
    return all;
  }

  static constexpr std::size_t arrays = 4;

  // Arrays have the size that is in use.
  Array array(std::size_t index) {
    const Array all[arrays] = {{"entries", "u8", entries_.data(), used_entries_, 0, entries_.size()},
                               {"spans", "u8", spans_.data(), 2 * used_slots_, 0, 2 * spans_.size()},
                               {"features", "f8", features_.data(), 4 * known_, 0, 4 * features_.size()},
                               {"ring", "f8", &state_, sizeof state_ / sizeof(double)}};
    return all[index];
  }

  // Makes room for an array of a file; a size that is too large is ignored.
  void fit(std::size_t index, std::size_t size) {
    if (size > array(index).most) return;
    if (index == 0) used_entries_ = size;
    if (index == 1) used_slots_ = size / 2;
    if (index == 2) known_ = size / 4;
  }

 private:
  static constexpr double farthest = 5.0;  // standard deviations; outliers are clipped

  struct Span {
    std::uint64_t start;  // counted in entries since the first round
    std::uint32_t size, numbers;
  };

  // A number has moments of the rounds in which it is present; of an indicator, only the count is used.
  struct Feature {
    double count, mean, variance, scale;
  };

  struct State {
    double written = 0.0, oldest = 0.0;  // entries since the first round, and the oldest remembered round
  };

  // 32 MiB for 65,536 features; a whole context always fits.
  static std::size_t ring_size(std::size_t most) {
    return most == 0 ? 0 : most * 64 > most_features ? most * 64 : most_features;
  }

  std::size_t slot_of(double round) const { return static_cast<std::size_t>(round) % spans_.size(); }
  const Entry* entries(const Span& span) const { return entries_.data() + span.start % entries_.size(); }

  void learn(std::uint32_t index, double value, bool number) {
    if (index >= known_) known_ = index + 1;
    Feature& feature = features_[index];
    feature.count += 1.0;
    if (!number) return;
    const double rate = 1.0 / feature.count, before = value - feature.mean;
    feature.mean += rate * before;
    feature.variance += rate * (before * (value - feature.mean) - feature.variance);
    feature.scale = inverse_deviation(feature.mean, feature.variance);
  }

  // An absent feature counts as 0: of a number, that is the mean. A present indicator has root mean square 1 over all
  // rounds, up to the limit.
  Entry standardise(Entry raw, bool number, double rounds) const {
    const Feature& feature = features_.data()[raw.feature];
    if (feature.count == 0.0) return {raw.feature, 0.0f};  // of a prior, and not learned from yet
    const double z =
        number ? (raw.value - feature.mean) * feature.scale : raw.value * __builtin_sqrt(rounds / feature.count);
    return {raw.feature, static_cast<float>(clip(z, -farthest, farthest))};
  }

  std::size_t used_entries_ = 0, used_slots_ = 0, known_ = 0;
  Buffer<Entry> entries_;
  Buffer<Span> spans_;
  Buffer<Feature> features_;
  Buffer<Entry> standard_;
  Buffer<float> columns_;
  FeatureBatch batch_;
  State state_;
};

}  // namespace manul::MANUL_SIMD
