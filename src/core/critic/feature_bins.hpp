// The columns of the remembered contexts, each cut into at most 128 bins, as the trees of the forest see them.
//
// The edges of a column are quantiles of a sample of the remembered rounds, or the middles between its values if there
// are few. The last column is the action, in 256 equal bins.
#pragma once

#include "critic/replay_buffer.hpp"
#include "numerics/sorting.hpp"

namespace manul::MANUL_SIMD {

constexpr std::size_t action_bins = 256;

inline std::size_t action_bin(double action) {
  return static_cast<std::size_t>(clip(action * static_cast<double>(action_bins), 0.0, action_bins - 1.0));
}

class FeatureBins {
 public:
  static constexpr std::size_t most = 128;  // bins of a column

  FeatureBins(std::size_t width, std::size_t capacity)
      : width_(width), edges_(width * most), counts_(width), bins_(capacity * (width + 1)) {}

  std::size_t width() const { return width_; }

  // A column with one bin cannot be split.
  std::size_t count(std::size_t column) const {
    return column == width_ ? action_bins : static_cast<std::size_t>(counts_.data()[column]) + 1;
  }

  // Values up to this edge belong to the bin or to lower ones.
  float edge(std::size_t column, std::size_t bin) const { return edges_.data()[column * most + bin]; }

  // One bin per column, and that of the action.
  const std::uint8_t* row(std::size_t slot) const { return bins_.data() + slot * (width_ + 1); }

  void write(ReplayBuffer& replay, std::size_t slot) {
    const float* columns = replay.columns(slot);
    for (std::size_t column = 0; column < width_; ++column) write(slot, column, columns[column]);
    bins_[slot * (width_ + 1) + width_] = static_cast<std::uint8_t>(action_bin(replay.action(slot)[0]));
  }

  // Computes the edges of a column anew, from at most 2,048 of the last `rounds` rounds. Their bins must follow.
  void place_edges(const ReplayBuffer& replay, std::size_t column, std::size_t rounds) {
    float sample[sampled];
    const std::size_t size = rounds < sampled ? rounds : sampled;
    for (std::size_t i = 0; i < size; ++i) sample[i] = replay.column(replay.slot(i * rounds / size), column);
    sort(sample, size);
    place_edges(column, sample, size);
  }

  void write(std::size_t slot, std::size_t column, float value) {
    const float* edges = edges_.data() + column * most;
    std::size_t low = 0;  // a binary search without branches, which the processor would often mispredict
    for (std::size_t left = static_cast<std::size_t>(counts_[column]); left > 0;) {
      const std::size_t half = (left + 1) / 2;
      low += value > edges[low + half - 1] ? half : 0;
      left -= half;
    }
    bins_[slot * (width_ + 1) + column] = static_cast<std::uint8_t>(low);
  }

  void clear() {
    for (std::size_t column = 0; column < width_; ++column) counts_[column] = 0;
  }

  bool is_valid() const {
    for (std::size_t column = 0; column < width_; ++column)
      if (counts_.data()[column] < 0 || counts_.data()[column] >= static_cast<std::int32_t>(most)) return false;
    return true;
  }

  std::size_t unsaved_bytes() const { return bins_.size(); }

  static constexpr std::size_t arrays = 2;

  Array array(std::size_t index) {
    if (index == 0) return {"edges", "f4", edges_.data(), edges_.size()};
    return {"edge_counts", "i4", counts_.data(), counts_.size()};
  }

 private:
  static constexpr std::size_t sampled = 2048;

  void place_edges(std::size_t column, const float* sample, std::size_t size) {
    std::size_t distinct = 1, count = 0;
    for (std::size_t i = 1; i < size; ++i) distinct += sample[i] != sample[i - 1];
    float* edges = edges_.data() + column * most;
    for (std::size_t i = 1; i < size; ++i) {
      const bool first_of_bin = distinct <= most || i * most / size != (i - 1) * most / size;
      const float before = sample[i - 1], after = sample[i];
      if (!first_of_bin || before == after || count + 1 == most) continue;
      const float middle = 0.5f * before + 0.5f * after;
      edges[count++] = middle < after ? middle : before;
    }
    counts_[column] = static_cast<std::int32_t>(count);
  }

  std::size_t width_;
  Buffer<float> edges_;
  Buffer<std::int32_t> counts_;
  Buffer<std::uint8_t> bins_;
};

}  // namespace manul::MANUL_SIMD
