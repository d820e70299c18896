// Selects the widest instruction set of this machine, or the narrower one in the environment variable MANUL_SIMD.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "simd/kernels.hpp"
#include "simd/processor.hpp"

namespace manul {

struct InstructionSet {
  std::string name;
  Kernels kernels;
};

inline bool available(const std::string& name) {
  if (name == "baseline") return true;
#ifdef MANUL_X86
  if (name == "avx2") return processor_has_avx2();
  if (name == "avx512") return processor_has_avx2() && processor_has_avx512();
#endif
  return false;
}

inline InstructionSet instruction_set([[maybe_unused]] const std::string& name) {
#ifdef MANUL_X86
  if (name == "avx512") return {name, avx512::kernels()};
  if (name == "avx2") return {name, avx2::kernels()};
#endif
  return {"baseline", manul::baseline::kernels()};
}

inline InstructionSet instruction_set() {
  const char* asked = std::getenv("MANUL_SIMD");
  if (asked != nullptr && *asked != '\0') {
    if (!available(asked))
      throw std::invalid_argument("MANUL_SIMD must be baseline, avx2 or avx512 and supported here, got " +
                                  std::string(asked) + ". Unset it to use the widest.");
    return instruction_set(asked);
  }
  for (const char* name : {"avx512", "avx2"})
    if (available(name)) return instruction_set(name);
  return instruction_set("baseline");
}

}  // namespace manul
