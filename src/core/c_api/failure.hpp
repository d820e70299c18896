// The one error of this folder: a sentence, and the name of what is wrong.
//
// It owns no memory, because WebAssembly has no exceptions: there, what throws ends the call without destructors.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "c_api/manul.h"
#include "play/base_player.hpp"

namespace manul::api {

struct Failure : manul_error {
  Failure(std::string_view what, std::string_view text) : manul_error{} {
    copy(field, sizeof field, what);
    copy(sentence, sizeof sentence, text);
  }

  // Cuts a text that is too long between characters of UTF-8.
  static void copy(char* to, std::size_t size, std::string_view text) {
    std::size_t length = text.size() < size ? text.size() : size - 1;
    while (length < text.size() && length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0u) == 0x80u) --length;
    std::memcpy(to, text.data(), length);
    to[length] = '\0';
  }
};

[[noreturn]] [[gnu::format(printf, 2, 3)]] inline void fail(std::string_view field, const char* format, ...) {
  char text[sizeof(manul_error::sentence)];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  throw Failure(field, text);
}

[[noreturn]] inline void fail_damaged(const char* reason) {
  fail("bytes", "file is damaged or not a .manul file (%s).", reason);
}

[[noreturn]] inline void fail_mismatch() { fail("bytes", "file is damaged: the arrays do not match the settings."); }

// The first characters of a text, in quotes, as errors show them.
inline std::string quoted(std::string_view text, std::size_t most = 60) {
  const char quote = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string shown = quote + std::string(text) + quote;
  if (shown.size() > most) {
    std::size_t length = most - 3;
    while (length > 0 && (static_cast<unsigned char>(shown[length]) & 0xc0u) == 0x80u) --length;
    shown = shown.substr(0, length) + "...";
  }
  return shown;
}

}  // namespace manul::api
