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
      : shift_(64 - shape.bits), weights_(std::size_t{1} << shape.bits), row_(shape.most), first_(shape.most) {}

  void look(const Input& input) {
    input_ = input;
    for (std::size_t i = 0; i < input.size; ++i) first_[i] = static_cast<std::int32_t>(first(input.features[i]));
  }

  // Valid until the next call. The inner loop has a fixed length, so that compilers unroll it.
  const float* read(std::size_t row) {
    const float* __restrict weights = weights_.data();
    const std::int32_t* __restrict first = first_.data();
    float* __restrict values = row_.data();
    const auto added = static_cast<std::int32_t>(row), mask = static_cast<std::int32_t>(weights_.size() - 1);
    for (std::size_t i = 0; i < input_.size; i += lanes)
      for (std::size_t j = i; j < i + lanes; ++j) values[j] = weights[(first[j] + added) & mask];
    return values;
  }

  float* open(std::size_t row) {
    read(row);
    return row_.data();
  }

  void close(std::size_t row) {
    for (std::size_t i = 0; i < input_.size; ++i)
      if (input_.values[i] != 0.0f)
        weights_[(static_cast<std::size_t>(first_[i]) + row) & (weights_.size() - 1)] = row_[i];
  }

  float at(std::size_t row, std::uint32_t feature) const { return weights_.data()[place(row, feature)]; }

  Buffer<float>& all() { return weights_; }

 private:
  // 2^64 divided by the golden ratio; its multiples are evenly spread (Knuth's multiplicative hashing).
  static constexpr std::uint64_t golden_ratio = 0x9E3779B97F4A7C15ULL;

  // The rows of one feature are adjacent, so the nodes of a path are in few cache lines.
  std::size_t place(std::size_t row, std::uint32_t feature) const {
    return (first(feature) + row) & (weights_.size() - 1);
  }

  std::size_t first(std::uint32_t feature) const { return feature * golden_ratio >> shift_; }

  std::uint32_t shift_;
  Buffer<float> weights_, row_;
  Buffer<std::int32_t> first_;  // the places of the features of this context in row 0; tables have at most 2^28 weights
  Input input_ = {};
};

}  // namespace manul::MANUL_SIMD
