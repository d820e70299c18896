// A context on its way into a model. It owns nothing: the values stay where they are until the call is over.
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
  std::size_t numbers = 0;                  // hashed: the first so many values are numbers, the others indicators
};

// The most features that one hashed context can have; models reserve room for them.
constexpr std::size_t most_features = 4096;

}  // namespace manul
