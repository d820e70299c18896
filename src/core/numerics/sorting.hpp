// Sorting without templates of the standard library (see models/policy_model.hpp).
#pragma once

#include <cstddef>

namespace manul::MANUL_SIMD {

// Shell sort with the gaps of Ciura (2001), for up to a few thousand numbers.
template <class T>
void sort(T* values, std::size_t count) {
  constexpr std::size_t gaps[] = {701, 301, 132, 57, 23, 10, 4, 1};
  for (const std::size_t gap : gaps)
    for (std::size_t i = gap; i < count; ++i) {
      const T value = values[i];
      std::size_t j = i;
      for (; j >= gap && values[j - gap] > value; j -= gap) values[j] = values[j - gap];
      values[j] = value;
    }
}

}  // namespace manul::MANUL_SIMD
