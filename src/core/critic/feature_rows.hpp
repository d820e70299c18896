// The first layer of a network for named contexts: one row of weights per feature.
//
// A step reads and changes only the rows of features that occur in its batch, so its cost depends on the features
// present and not on those known. The other rows keep their weights and the moments of Adam ("lazy Adam").
#pragma once

#include "contexts/context_view.hpp"
#include "critic/adam.hpp"
#include "numerics/buffer.hpp"
#include "numerics/random.hpp"
#include "numerics/vectors.hpp"

namespace manul::MANUL_SIMD {

constexpr std::size_t batch = 16;  // rounds per step

// A feature that occurs in a context, with its standardised value.
struct Entry {
  std::uint32_t feature;
  float value;
};

struct Entries {
  const Entry* data;
  std::size_t size;
};

// A sample in which a feature of the batch occurs, and its value there.
struct Occurrence {
  std::uint32_t sample;
  float value;
};

// The features of a batch, by sample and by feature.
class FeatureBatch {
 public:
  // `features` is the largest number of features, or 0 for contexts without names.
  explicit FeatureBatch(std::size_t features)
      : entries_(features > 0 ? most : 0), occurrences_(features > 0 ? most : 0), features_(features > 0 ? most : 0),
        ends_(features > 0 ? most : 0), places_(features) {}

  void clear() { samples_ = size_ = present_ = 0; }

  void add(Entry entry) {
    entries_[size_++] = entry;
    std::uint32_t& place = places_[entry.feature];
    if (place >= present_ || features_[place] != entry.feature) {
      place = static_cast<std::uint32_t>(present_);
      features_[present_] = entry.feature;
      ends_[present_++] = 0;
    }
    ++ends_[place];
  }

  void end_sample() { sample_ends_[samples_++] = size_; }

  // Sorts the entries by feature; those of one feature stay in the order of the samples.
  void end_batch() {
    std::uint32_t first = 0;
    for (std::size_t i = 0; i < present_; ++i) {
      const std::uint32_t count = ends_[i];
      ends_[i] = first;
      first += count;
    }
    std::size_t i = 0;
    for (std::uint32_t sample = 0; sample < batch; ++sample)
      for (; i < sample_ends_[sample]; ++i)
        occurrences_[ends_[places_[entries_[i].feature]]++] = {sample, entries_[i].value};
  }

  Entries sample(std::size_t s) const {
    const std::size_t first = s == 0 ? 0 : sample_ends_[s - 1];
    return {entries_.data() + first, sample_ends_[s] - first};
  }

  // The features that occur, in the order of their first occurrence.
  std::size_t present() const { return present_; }
  std::uint32_t feature(std::size_t i) const { return features_.data()[i]; }
  const Occurrence* begin(std::size_t i) const { return occurrences_.data() + (i == 0 ? 0 : ends_.data()[i - 1]); }
  const Occurrence* end(std::size_t i) const { return occurrences_.data() + ends_.data()[i]; }

 private:
  static constexpr std::size_t most = batch * most_features;

  std::size_t samples_ = 0, size_ = 0, present_ = 0, sample_ends_[batch] = {};
  Buffer<Entry> entries_;
  Buffer<Occurrence> occurrences_;
  Buffer<std::uint32_t> features_, ends_, places_;
};

class FeatureRows {
 public:
  FeatureRows(std::size_t most, std::size_t columns) : columns_(columns), rows_(most * 3 * columns) {}

  std::size_t size() const { return size_; }

  // Makes room for an array of `numbers` from a file; a size that is too large is ignored.
  void fit(std::size_t numbers) {
    if (numbers <= rows_.size()) size_ = numbers / row_size();
  }

  // Per feature: the weights, then the means and squares of gradients.
  float* data() { return rows_.data(); }
  std::size_t row_size() const { return 3 * columns_; }
  std::size_t most() const { return rows_.size(); }  // numbers

  // Adds the rows of a context's new features; `scale(column)` is the standard deviation of a number's weights. The
  // weights of indicators start at 0: of many levels, most are rare, and random weights would take long to unlearn.
  template <class Scale>
  void grow(const ContextView& context, std::uint64_t seed, std::uint64_t stream, Scale&& scale) {
    for (std::size_t i = 0; i < context.size; ++i) {
      if (context.features[i] < size_) continue;
      size_ = context.features[i] + 1;
      if (i >= context.numbers) continue;
      float* row = rows_.data() + context.features[i] * row_size();
      std::uint64_t next = 6 * columns_ * context.features[i];  // normal() takes six draws
      for (std::size_t c = 0; c < columns_; ++c) row[c] = scale(c) * normal(seed, next, stream);
    }
  }

  // Adds the weighted rows of the entries to `out`.
  void add(Entries entries, float* out) const {
    for (std::size_t c = 0; c < columns_; c += wide) {
      Lanes total = load<Lanes>(out + c);
      for (std::size_t i = 0; i < entries.size; ++i)
        total += entries.data[i].value * load<Lanes>(rows_.data() + entries.data[i].feature * row_size() + c);
      store(out + c, total);
    }
  }

  // One step of Adam on the features that are present, whose weights are then multiplied by `keep`; `delta` is the
  // gradient by sample and column.
  void step(const FeatureBatch& data, const float* delta, float rate, float keep) {
    for (std::size_t i = 0; i < data.present(); ++i) {
      float* row = rows_.data() + data.feature(i) * row_size();
      for (std::size_t c = 0; c < columns_; c += wide) {
        Lanes slope = {};
        for (const Occurrence* at = data.begin(i); at != data.end(i); ++at)
          slope += at->value * load<Lanes>(delta + at->sample * columns_ + c);
        adam(row + c, row + columns_ + c, row + 2 * columns_ + c, slope, rate);
        store(row + c, keep * load<Lanes>(row + c));
      }
    }
  }

 private:
  std::size_t columns_, size_ = 0;
  Buffer<float> rows_;
};

}  // namespace manul::MANUL_SIMD
