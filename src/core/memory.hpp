// A block of zeros on a cache line, allocated once.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace manul::MANUL_SIMD {

template <class T>
class Buffer {
 public:
  explicit Buffer(std::size_t size) : size_(size), data_(static_cast<T*>(std::aligned_alloc(64, bytes(size)))) {
    if (data_ == nullptr) throw std::bad_alloc();
    __builtin_memset(data_, 0, bytes(size));
  }
  ~Buffer() { std::free(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t index) { return data_[index]; }

 private:
  static std::size_t bytes(std::size_t size) { return (size * sizeof(T) + 63) / 64 * 64 + 64; }

  std::size_t size_;
  T* data_;
};

}  // namespace manul::MANUL_SIMD
