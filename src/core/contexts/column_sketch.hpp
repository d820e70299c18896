// Named contexts for models of rows: a feature is assigned the next column when it is first learned from, and shares a
// column if none is free.
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

 private:
  void add(std::uint32_t feature, float value, float* row) const {
    const auto known = columns_.find(feature);
    if (known != columns_.end()) {
      row[known->second] += value;
    } else if (columns_.size() == width_) {
      row[feature % width_] += value;
    }
  }

  std::size_t width_;
  Columns columns_;
};

}  // namespace manul
