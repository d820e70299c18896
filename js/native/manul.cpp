// The core and its C interface as one translation unit, for WebAssembly (`make js`).
#include "c_api/manul.cpp"

#include "numerics/pages.cpp"
#include "simd/kernels.cpp"

// JavaScript writes and reads these structures by their offsets (js/manul.js).
static_assert(sizeof(void*) == 4 && sizeof(manul_context) == 12 && sizeof(manul_error) == 640);
static_assert(sizeof(manul_value) == 24 && offsetof(manul_value, option) == 8 && offsetof(manul_value, density) == 16);
static_assert(offsetof(manul_decision, density) == 8 && offsetof(manul_decision, floor) == 16);
static_assert(offsetof(manul_decision, low) == 24 && offsetof(manul_decision, high) == 32);
static_assert(offsetof(manul_decision, size) == 40 && offsetof(manul_decision, values) == 48);
