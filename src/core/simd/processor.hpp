// What an x86 processor and its operating system support. Compilers have __builtin_cpu_supports for it, but Clang on
// Windows has not.
#pragma once

#ifdef MANUL_X86

#include <cstdint>

namespace manul {

struct Registers {
  std::uint32_t a, b, c, d;
};

inline Registers cpuid(std::uint32_t leaf) {
  Registers r;
  asm volatile("cpuid" : "=a"(r.a), "=b"(r.b), "=c"(r.c), "=d"(r.d) : "a"(leaf), "c"(0));
  return r;
}

// Whether the processor has all of the features in bits `b` and `c` of a leaf.
inline bool processor_has(std::uint32_t leaf, std::uint32_t b, std::uint32_t c) {
  if (cpuid(0).a < leaf) return false;
  const Registers found = cpuid(leaf);
  return (found.b & b) == b && (found.c & c) == c;
}

// Whether the system saves these parts of the registers when it switches between processes (XCR0).
inline bool system_saves(std::uint32_t parts) {
  if (!processor_has(1, 0, 1u << 27)) return false;  // OSXSAVE
  std::uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & parts) == parts;
}

inline bool processor_has_avx2() {
  constexpr std::uint32_t avx = 1u << 28, fma = 1u << 12, avx2 = 1u << 5, sse_and_avx = 0x6;
  return processor_has(1, 0, avx | fma) && processor_has(7, avx2, 0) && system_saves(sse_and_avx);
}

inline bool processor_has_avx512() {
  constexpr std::uint32_t f = 1u << 16, dq = 1u << 17, bw = 1u << 30, vl = 1u << 31, masks_and_all = 0xe6;
  return processor_has(7, f | dq | bw | vl, 0) && system_saves(masks_and_all);
}

}  // namespace manul

#endif
