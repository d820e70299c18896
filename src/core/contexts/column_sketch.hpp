// Named contexts for models that take rows: a feature gets a column when it is first learned from, in order, and
// features share columns when there are no more.
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

  // Whether `columns` can have come from here; only then are they taken over.
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

  // Writes a hashed context as a row. Only learning gives columns away; deciding leaves out what it does not know.
  void write(const ContextView& hashed, bool learning, float* row) {
    for (std::size_t i = 0; i < width_; ++i) row[i] = 0.0f;
    for (std::size_t i = 0; i < hashed.size; ++i) add(hashed.features[i], hashed.values[i], learning, row);
  }

 private:
  void add(std::uint32_t feature, float value, bool learning, float* row) {
    const auto known = columns_.find(feature);
    if (known != columns_.end()) {
      row[known->second] += value;
    } else if (columns_.size() == width_) {
      row[feature % width_] += value;
    } else if (learning) {
      const auto column = static_cast<std::uint32_t>(columns_.size());
      columns_.emplace(feature, column);
      row[column] = value;
    }
  }

  std::size_t width_;
  Columns columns_;
};

}  // namespace manul
