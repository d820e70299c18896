// Memory by the page, from the system: zeroed, and allocated when it is first written.
#pragma once

#include <cstddef>

namespace manul {

// Throws std::bad_alloc.
void* new_pages(std::size_t bytes);
void delete_pages(void* pages, std::size_t bytes);

}  // namespace manul
