// Tables of weights: one row per node (or cell), one weight per feature.
//
// A dense table has a weight for every pair of row and feature. A hashed table has 2^bits weights for any number of
// rows and features; the hash of a pair selects its weight, which pairs may share.
#pragma once

#include "numerics/buffer.hpp"
#include "numerics/vectors.hpp"

namespace manul::MANUL_SIMD {

// A context as learners take it: values, padded with zeros to a multiple of eight, and the features that they belong to
// in hashed contexts.
struct Input {
  const float* values;
  const std::uint32_t* features;
  std::size_t size;
  float retention;  // the share of old evidence that remains after one round
};

struct DenseShape {
  std::size_t stride;
};

class DenseTable {
 public:
  DenseTable(DenseShape shape, std::size_t rows) : stride_(shape.stride), weights_(rows * shape.stride) {}

  void look(const Input&) {}
  const float* read(std::size_t row) const { return weights_.data() + stride_ * row; }
  float* open(std::size_t row) { return weights_.data() + stride_ * row; }
  void close(std::size_t) {}
  float at(std::size_t row, std::uint32_t feature) const { return read(row)[feature]; }

  Buffer<float>& all() { return weights_; }

 private:
  std::size_t stride_;
  Buffer<float> weights_;
};

struct HashedShape {
  std::uint32_t bits;
  std::size_t most;  // features of one context
};

class HashedTable {
 public:
  HashedTable(HashedShape shape, std::size_t)
      : shift_(64 - shape.bits), weights_(std::size_t{1} << shape.bits), row_(shape.most) {}

  void look(const Input& input) { input_ = input; }

  // Valid until the next call.
  const float* read(std::size_t row) {
    for (std::size_t i = 0; i < input_.size; ++i) row_[i] = weights_[place(row, input_.features[i])];
    return row_.data();
  }

  float* open(std::size_t row) {
    read(row);
    return row_.data();
  }

  void close(std::size_t row) {
    for (std::size_t i = 0; i < input_.size; ++i)
      if (input_.values[i] != 0.0f) weights_[place(row, input_.features[i])] = row_[i];
  }

  float at(std::size_t row, std::uint32_t feature) const { return weights_.data()[place(row, feature)]; }

  Buffer<float>& all() { return weights_; }

 private:
  // 2^64 divided by the golden ratio; its multiples are evenly spread (Knuth's multiplicative hashing).
  static constexpr std::uint64_t golden_ratio = 0x9E3779B97F4A7C15ULL;

  // The rows of one feature are adjacent, so the nodes of a path are in few cache lines.
  std::size_t place(std::size_t row, std::uint32_t feature) const {
    const std::uint64_t first = feature * golden_ratio >> shift_;
    return (static_cast<std::size_t>(first) + row) & (weights_.size() - 1);
  }

  std::uint32_t shift_;
  Buffer<float> weights_, row_;
  Input input_ = {};
};

}  // namespace manul::MANUL_SIMD
