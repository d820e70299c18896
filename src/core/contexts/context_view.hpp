// A context as models take it. It does not own its values, which must stay in place during the call.
#pragma once

#include <cstddef>
#include <cstdint>

namespace manul {

// A row has one value per column. Hashed contexts come from named fields and have one value per feature that occurs.
enum class ContextKind : std::uint8_t { row, hashed };

struct ContextView {
  ContextKind kind;
  const float* values;
  std::size_t size;
  const std::uint32_t* features = nullptr;  // hashed: the feature that each value belongs to
  std::size_t numbers = 0;         // hashed: how many of the first values are numbers; the others are indicators
  const double* fields = nullptr;  // what the formula of an outcome loads, NaN where the context lacks it
};

// The largest number of features of a hashed context; models reserve room for them.
constexpr std::size_t most_features = 4096;

}  // namespace manul
