// What C++ needs of its runtime in WebAssembly, which has neither exceptions nor threads here.
#pragma once

#include <cstddef>
#include <typeinfo>

namespace manul::api {

// Writes the error of the current call for what was thrown.
void thrown(const void* what, const std::type_info& type);

}  // namespace manul::api

extern "C" {

// One at a time: what throws never returns, but what reports it may throw a `Failure` instead.
inline void* __cxa_allocate_exception(std::size_t size) noexcept {
  alignas(16) static char memory[2][2048];
  static std::size_t next = 0;
  if (size > sizeof memory[0]) __builtin_trap();
  return memory[next++ % 2];
}

[[noreturn]] inline void __cxa_throw(void* what, std::type_info* type, void (*)(void*)) {
  manul::api::thrown(what, *type);
  __builtin_trap();
}

inline int __cxa_thread_atexit(void (*)(void*), void*, void*) noexcept { return 0; }

}  // extern "C"
