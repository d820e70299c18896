// A block of zeros on a cache line, allocated once.
//
// A large block is reserved from the system, which takes memory page by page as it is first written to: a model that
// has learned little is small, and the sizes of its arrays can be compared with those of a file before anything is
// spent.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>

namespace manul {

// A part of a model's state, for saving and for comparing.
struct Array {
  const char* name;
  const char* type;  // "f4", "f8" or "u8", as in NumPy
  void* data;
  std::size_t size;
  std::size_t part = 0;  // is_count from 1 in models that consist of several
};

namespace MANUL_SIMD {

template <class T>
class Buffer {
 public:
  explicit Buffer(std::size_t size) : size_(size), data_(static_cast<T*>(zeros(bytes(size)))) {}
  ~Buffer() {
    if (reserved(bytes(size_)))
      munmap(data_, bytes(size_));
    else
      std::free(data_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t index) { return data_[index]; }

 private:
  static constexpr std::size_t line = 64;                    // of the cache, in bytes
  static constexpr std::size_t most = std::size_t{1} << 62;  // bytes: no sum of sizes can overflow

  static std::size_t bytes(std::size_t size) {
    if (size > most / sizeof(T)) throw std::bad_alloc();
    return (size * sizeof(T) + line - 1) / line * line + line;
  }

  // Blocks of this many bytes are reserved: below, whole pages would be wasted. AddressSanitizer watches the ends of
  // blocks only if they come from the heap.
#ifdef __SANITIZE_ADDRESS__
  static constexpr std::size_t large = std::size_t{1} << 24;
#else
  static constexpr std::size_t large = std::size_t{1} << 17;
#endif
  static constexpr bool reserved(std::size_t bytes) { return bytes >= large; }

  static void* zeros(std::size_t bytes) {
    if (!reserved(bytes)) {
      void* block = std::aligned_alloc(line, bytes);
      if (block == nullptr) throw std::bad_alloc();
      return __builtin_memset(block, 0, bytes);
    }
    void* block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED) throw std::bad_alloc();
    return block;
  }

  std::size_t size_;
  T* data_;
};

}  // namespace MANUL_SIMD
}  // namespace manul
