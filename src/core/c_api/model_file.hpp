// Reads and writes `.manul` files: settings in JSON and arrays, in the layout of safetensors, with a checksum of both.
// The same format as in manul/utils/model_files.py, to the byte.
#pragma once

#include <map>

#include "c_api/json.hpp"
#include "c_api/sha256.hpp"
#include "contexts/json_text.hpp"

namespace manul::api {

// The types of arrays in the order of safetensors: their names, those of NumPy, and the bytes of an item.
struct ArrayType {
  const char* name;
  const char* numpy;
  std::size_t bytes;
};
inline constexpr ArrayType array_types[] = {{"BOOL", "|b1", 1}, {"U8", "|u1", 1},  {"I8", "|i1", 1},  {"I16", "<i2", 2},
                                            {"U16", "<u2", 2},  {"F16", "<f2", 2}, {"I32", "<i4", 4}, {"U32", "<u4", 4},
                                            {"F32", "<f4", 4},  {"C64", "<c8", 8}, {"F64", "<f8", 8}, {"I64", "<i8", 8},
                                            {"U64", "<u8", 8}};

// The type of an array of a model, whose names lack the order of bytes.
inline const ArrayType* array_type(const char* numpy) {
  for (const ArrayType& type : array_types)
    if (std::strcmp(type.numpy + 1, numpy) == 0) return &type;
  return nullptr;
}

struct FileArray {
  const ArrayType* type;
  std::string shape;  // as Python writes it
  std::size_t size;   // items
  std::size_t dimensions;
  const unsigned char* data;

  std::size_t bytes() const { return size * type->bytes; }
};

using FileArrays = std::map<std::string, FileArray, std::less<>>;
using Metadata = std::map<std::string, std::string, std::less<>>;

inline std::string checksum(const Metadata& metadata, const FileArrays& arrays) {
  std::string header = "{";
  for (const auto& [name, text] : metadata) {
    if (header.size() > 1) header += ", ";
    write_json(header, name);
    header += ": ";
    write_json(header, text);
  }
  Sha256 digest;
  digest.add(header += '}');
  for (const auto& [name, array] : arrays) {
    digest.add(name + " " + array.type->numpy + " " + array.shape);
    digest.add(array.data, array.bytes());
  }
  return digest.hex();
}

// A file in memory, which must outlive it.
class ModelFile {
 public:
  ModelFile(const unsigned char* data, std::size_t size) {
    if (size < 8) fail_damaged("the header is longer than the file");
    std::uint64_t length = 0;
    for (int i = 7; i >= 0; --i) length = length << 8 | data[i];
    if (length > size - 8) fail_damaged("the header is longer than the file");
    const auto start = static_cast<std::size_t>(length);
    const Json::Value header = header_.parse({reinterpret_cast<const char*>(data) + 8, start}, "header");
    if (!header.is_object()) fail_damaged("the header is not an object");
    read_metadata(header["__metadata__"]);
    read_arrays(header, data + 8 + start, size - 8 - start);
    verify();
    settings = settings_.parse(metadata.find("parameters")->second, "parameters");
    if (!settings.is_object()) fail("bytes", "file is damaged: parameters must be an object.");
  }

  const std::string& kind() const { return metadata.find("kind")->second; }

  Metadata metadata;  // without the checksum
  FileArrays arrays;
  Json::Value settings;

 private:
  void read_metadata(Json::Value all) {
    if (!all) return;
    if (!all.is_object()) fail_damaged("the metadata must be texts");
    all.members([&](std::string_view name, Json::Value text) {
      if (!text.is_text()) fail_damaged("the metadata must be texts");
      metadata.emplace(name, text.text());
    });
  }

  void read_arrays(Json::Value header, const unsigned char* body, std::size_t size) {
    struct Place {
      std::size_t first, last;
      const FileArray* array;
    };
    std::vector<Place> places;
    header.members([&](std::string_view name, Json::Value entry) {
      if (name == "__metadata__") return;
      const Json::Value type = entry["dtype"], shape = entry["shape"], offsets = entry["data_offsets"];
      if (!type || !type.is_text() || !shape || !shape.is_list() || !offsets || offsets.size() != 2)
        fail_damaged("the description of an array is wrong");
      const auto* known = std::find_if(std::begin(array_types), std::end(array_types),
                                       [&](const ArrayType& each) { return type.text() == each.name; });
      if (known == std::end(array_types)) fail_damaged("the type of an array is not known");
      FileArray array = {known, "(", 1, 0, nullptr};
      bool fits = true;
      shape.items([&](Json::Value length) {
        const std::size_t number = whole(length);
        if (array.dimensions++ > 0) array.shape += ", ";
        array.shape += std::to_string(number);
        fits &= !__builtin_mul_overflow(array.size, number, &array.size);
      });
      array.shape += array.dimensions == 1 ? ",)" : ")";
      const std::size_t first = whole(offsets.item(0)), last = whole(offsets.item(1));
      if (!fits || first > last || last > size || array.size > size || last - first != array.bytes())
        fail_damaged("the offsets of an array do not fit");
      array.data = body + first;
      places.push_back({first, last, &arrays.emplace(name, array).first->second});
    });
    // Arrays follow each other without gaps.
    std::sort(places.begin(), places.end(), [](const Place& one, const Place& other) {
      return std::pair(one.first, one.last) < std::pair(other.first, other.last);
    });
    std::size_t end = 0;
    for (const Place& place : places) {
      if (place.first != end) fail_damaged("the offsets of an array do not fit");
      end = place.last;
    }
    if (end != size) fail_damaged("there are bytes after the arrays");
  }

  static std::size_t whole(Json::Value number) {
    std::uint64_t value = 0;
    const std::string_view digits = number.source();
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (!number.is_number() || result.ec != std::errc() || result.ptr != digits.data() + digits.size() ||
        value >= std::uint64_t{1} << 63 || value > static_cast<std::size_t>(-1))
      fail_damaged("shapes and offsets must be whole numbers");
    return static_cast<std::size_t>(value);
  }

  void verify() {
    const auto format = metadata.find("format"), kind = metadata.find("kind");
    if (format == metadata.end() || format->second != "1") {
      if (format == metadata.end() || kind == metadata.end())
        fail("bytes", "file is a safetensors file of another program, not a .manul file.");
      fail("bytes", "file has format %.20s, but this version reads format 1. Update manul.", format->second.c_str());
    }
    const auto found = metadata.find("checksum");
    const std::string said = found == metadata.end() ? "" : found->second;
    if (found != metadata.end()) metadata.erase(found);
    if (said != checksum(metadata, arrays)) fail("bytes", "file is damaged: wrong checksum. Copy or save it again.");
    if (kind == metadata.end() || metadata.find("parameters") == metadata.end())
      fail_damaged("the kind or the parameters are missing");
  }

  Json header_, settings_;
};

// The bytes of a file.
inline std::string write_file(Metadata metadata, const FileArrays& arrays) {
  metadata["checksum"] = checksum(metadata, arrays);
  std::vector<const FileArrays::value_type*> ordered;
  for (const auto& each : arrays) ordered.push_back(&each);
  // The arrays with the largest items first, so that all are aligned.
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto* one, const auto* other) { return one->second.type > other->second.type; });
  std::string head = "{\"__metadata__\":{";
  for (const auto& [name, text] : metadata) {
    if (head.back() != '{') head += ',';
    write_json(head, name);
    head += ':';
    write_json(head, text);
  }
  head += '}';
  std::size_t end = 0;
  for (const auto* each : ordered) {
    const std::size_t start = end;
    end += each->second.bytes();
    head += ',';
    write_json(head, each->first);
    head += std::string(":{\"dtype\":\"") + each->second.type->name + "\",\"shape\":[" +
            std::to_string(each->second.size) + "],\"data_offsets\":[" + std::to_string(start) + "," +
            std::to_string(end) + "]}";
  }
  head += '}';
  head.resize((head.size() + 7) / 8 * 8, ' ');
  std::string file;
  file.reserve(8 + head.size() + end);
  for (int i = 0; i < 8; ++i) file += static_cast<char>(static_cast<std::uint64_t>(head.size()) >> (8 * i) & 0xffu);
  file += head;
  for (const auto* each : ordered) file.append(reinterpret_cast<const char*>(each->second.data), each->second.bytes());
  return file;
}

}  // namespace manul::api
