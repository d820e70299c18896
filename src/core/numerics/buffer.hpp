// A zeroed array, aligned to cache lines and allocated once.
//
// The system allocates the pages of a large block when they are first written. A new model is therefore small, and the
// sizes of its arrays can be compared with those of a file before memory is used.
#pragma once

#include <cstddef>
#include <new>

#include "numerics/pages.hpp"

namespace manul {

// An array of a model's state, for saving and restoring.
struct Array {
  const char* name;
  const char* type;  // "f4", "f8", "i4" or "u8", as in NumPy
  void* data;
  std::size_t size;
  std::size_t part = 0;  // counted from 1 in models that consist of several parts
  std::size_t most = 0;  // the largest size of an array that grows
};

namespace MANUL_SIMD {

template <class T>
class Buffer {
 public:
  explicit Buffer(std::size_t size) : size_(size), data_(static_cast<T*>(zeros(bytes(size)))) {}
  ~Buffer() { release(); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t index) { return data_[index]; }

  // Replaces the array by a zeroed one of another size.
  void resize(std::size_t size) {
    T* data = static_cast<T*>(zeros(bytes(size)));
    release();
    size_ = size, data_ = data;
  }

 private:
  void release() {
    if (reserved(bytes(size_)))
      delete_pages(data_, bytes(size_));
    else
      ::operator delete(data_, std::align_val_t{line});
  }

  static constexpr std::size_t line = 64;                                // bytes of a cache line
  static constexpr std::size_t most = static_cast<std::size_t>(-1) / 4;  // bytes; no sum of sizes can overflow

  static std::size_t bytes(std::size_t size) {
    if (size > most / sizeof(T)) throw std::bad_alloc();
    return (size * sizeof(T) + line - 1) / line * line + line;
  }

  // Smaller blocks come from the heap, because whole pages would waste memory. With AddressSanitizer larger ones do
  // too, because it checks the ends of heap blocks only.
#ifdef __SANITIZE_ADDRESS__
  static constexpr std::size_t large = std::size_t{1} << 24;
#else
  static constexpr std::size_t large = std::size_t{1} << 17;
#endif
  static constexpr bool reserved(std::size_t bytes) { return bytes >= large; }

  static void* zeros(std::size_t bytes) {
    if (reserved(bytes)) return new_pages(bytes);
    return __builtin_memset(::operator new(bytes, std::align_val_t{line}), 0, bytes);
  }

  std::size_t size_;
  T* data_;
};

}  // namespace MANUL_SIMD
}  // namespace manul
