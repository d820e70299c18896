// Writes JSON as Python's json module does: in ASCII.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace manul {

// A text of valid UTF-8.
inline void write_json(std::string& json, std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  const auto escape = [&](std::uint32_t unit) {
    json += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) json += digits[unit >> shift & 15u];
  };
  static constexpr std::string_view controls = "\b\t\n\f\r\"\\", letters = "btnfr\"\\";
  json += '"';
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i++]);
    if (const std::size_t place = controls.find(static_cast<char>(first)); place != std::string_view::npos) {
      json += '\\', json += letters[place];
    } else if (first >= ' ' && first < 0x7f) {
      json += static_cast<char>(first);
    } else {
      const int more = first < 0x80 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;  // bytes of UTF-8 that follow
      std::uint32_t point = more == 0 ? first : first & (0x3fu >> more);
      for (int k = 0; k < more; ++k) point = point << 6 | (static_cast<unsigned char>(text[i++]) & 0x3fu);
      if (point >= 0x10000) escape(0xd800 + ((point - 0x10000) >> 10)), point = 0xdc00 + ((point - 0x10000) & 0x3ffu);
      escape(point);
    }
  }
  json += '"';
}

inline void write_json(std::string& json, std::uint32_t number) { json += std::to_string(number); }

// A map from numbers as JSON, in the order of its keys as texts.
template <class Map>
std::string json_of(const Map& map) {
  std::vector<std::pair<std::string, const typename Map::mapped_type*>> entries;
  for (const auto& [key, value] : map) entries.emplace_back(std::to_string(key), &value);
  std::sort(entries.begin(), entries.end());
  std::string json = "{";
  for (const auto& [key, value] : entries) {
    if (json.size() > 1) json += ", ";
    json += '"' + key + "\": ";
    write_json(json, *value);
  }
  return json += '}';
}

}  // namespace manul
