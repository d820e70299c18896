// Named contexts for models that count features: a feature is assigned the next column when it is first learned from,
// and shares a column if none is free. Models of rows get all columns, the others only those of the features present.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "contexts/context_view.hpp"

namespace manul {

class ColumnSketch {
 public:
  using Columns = std::unordered_map<std::uint32_t, std::uint32_t>;

  explicit ColumnSketch(std::size_t width) : width_(width) {}

  const Columns& columns() const { return columns_; }

  // Adopts `columns` and returns true if they are valid.
  bool restore(const Columns& columns) {
    if (columns.size() > width_) return false;
    std::vector<bool> taken(columns.size());
    for (const auto& [feature, column] : columns) {
      if (column >= columns.size() || taken[column]) return false;
      taken[column] = true;
    }
    columns_ = columns;
    return true;
  }

  // Assigns columns to the features of a context that is learned from.
  void assign(const ContextView& hashed) {
    for (std::size_t i = 0; i < hashed.size && columns_.size() < width_; ++i)
      columns_.emplace(hashed.features[i], static_cast<std::uint32_t>(columns_.size()));
  }

  // Writes a hashed context as a row; features that were never learned from are ignored.
  void write(const ContextView& hashed, float* row) const {
    for (std::size_t i = 0; i < width_; ++i) row[i] = 0.0f;
    for (std::size_t i = 0; i < hashed.size; ++i) add(hashed.features[i], hashed.values[i], row);
  }

  // Replaces the features of a hashed context by their columns, for models with weights per feature; features that were
  // never learned from are ignored. Valid until the next call.
  ContextView number(const ContextView& hashed) {
    features_.clear();
    values_.clear();
    std::size_t numbers = 0;
    for (std::size_t i = 0; i < hashed.size; ++i) {
      const std::uint32_t column = find(hashed.features[i]);
      if (column == unknown) continue;
      features_.push_back(column);
      values_.push_back(hashed.values[i]);
      if (i < hashed.numbers) ++numbers;
    }
    return {ContextKind::hashed, values_.data(), values_.size(), features_.data(), numbers};
  }

 private:
  static constexpr std::uint32_t unknown = ~std::uint32_t{0};

  void add(std::uint32_t feature, float value, float* row) const {
    const std::uint32_t column = find(feature);
    if (column != unknown) row[column] += value;
  }

  std::uint32_t find(std::uint32_t feature) const {
    const auto known = columns_.find(feature);
    if (known != columns_.end()) return known->second;
    return columns_.size() == width_ ? static_cast<std::uint32_t>(feature % width_) : unknown;
  }

  std::size_t width_;
  Columns columns_;
  std::vector<std::uint32_t> features_;
  std::vector<float> values_;
};

}  // namespace manul
