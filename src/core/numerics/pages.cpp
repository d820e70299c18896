// Only this file includes headers of the system.
#include "numerics/pages.hpp"

#include <new>

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#elif !defined(__wasm__)
#include <sys/mman.h>
#endif

namespace manul {

#if defined(_WIN32)

void* new_pages(std::size_t bytes) {
  void* pages = VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (pages == nullptr) throw std::bad_alloc();
  return pages;
}

void delete_pages(void* pages, std::size_t) { VirtualFree(pages, 0, MEM_RELEASE); }

#elif defined(__wasm__)

// Memory that WebAssembly grows by is zero. It cannot shrink, so blocks that were deleted wait for one of their size.
struct FreeBlock {
  std::size_t bytes;
  FreeBlock* next;
};
static FreeBlock* free_blocks = nullptr;

void* new_pages(std::size_t bytes) {
  for (FreeBlock** block = &free_blocks; *block != nullptr; block = &(*block)->next) {
    if ((*block)->bytes != bytes) continue;
    void* pages = *block;
    *block = (*block)->next;
    return __builtin_memset(pages, 0, bytes);
  }
  constexpr std::size_t page = 65536;
  const std::size_t first = __builtin_wasm_memory_grow(0, bytes / page + (bytes % page != 0));
  if (first == static_cast<std::size_t>(-1)) throw std::bad_alloc();
  return reinterpret_cast<void*>(first * page);
}

void delete_pages(void* pages, std::size_t bytes) {
  auto* block = static_cast<FreeBlock*>(pages);
  *block = {bytes, free_blocks};
  free_blocks = block;
}

#else

void* new_pages(std::size_t bytes) {
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  return pages;
}

void delete_pages(void* pages, std::size_t bytes) { munmap(pages, bytes); }

#endif

}  // namespace manul
