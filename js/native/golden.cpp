// The golden program of the core for WebAssembly, compiled like manul.wasm.
#include "numerics/pages.cpp"
#include "simd/kernels.cpp"
// After the kernels.
#include "../../tests/golden.cpp"
#include "c_api/wasm_runtime.hpp"

namespace manul::api {
void thrown(const void*, const std::type_info& type) { std::fprintf(stderr, "thrown: %s\n", type.name()); }
}  // namespace manul::api
