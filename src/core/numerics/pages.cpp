// Only this file includes headers of the system.
#include "numerics/pages.hpp"

#include <new>

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <sys/mman.h>
#endif

namespace manul {

#ifdef _WIN32

void* new_pages(std::size_t bytes) {
  void* pages = VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (pages == nullptr) throw std::bad_alloc();
  return pages;
}

void delete_pages(void* pages, std::size_t) { VirtualFree(pages, 0, MEM_RELEASE); }

#else

void* new_pages(std::size_t bytes) {
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  return pages;
}

void delete_pages(void* pages, std::size_t bytes) { munmap(pages, bytes); }

#endif

}  // namespace manul
