// Reads the fields of a context in JSON into an encoder; as bindings/contexts.cpp reads dictionaries of Python.
#pragma once

#include "c_api/json.hpp"
#include "contexts/field_hashing.hpp"
#include "contexts/iso_dates.hpp"

namespace manul::api {

class ContextReader {
 public:
  // Reads one context between `start` and `finish` of the encoder.
  void read(Encoder& encoder, Json::Value context) {
    path_.clear();
    encoder.next();
    walk_members(encoder, context, 0);
    encoder.add_missing_members();
  }

 private:
  void walk_members(Encoder& encoder, Json::Value members, std::size_t depth) {
    if (depth > Encoder::most_depth) encoder.fail(Fault::too_deep, path_);
    const std::size_t length = path_.size();
    members.members([&](std::string_view name, Json::Value value) {
      if (length > 0) path_ += '.';
      path_ += name;
      walk(encoder, value, depth);
      path_.resize(length);
    });
  }

  void walk_items(Encoder& encoder, Json::Value items, std::size_t depth) {
    if (depth > Encoder::most_depth) encoder.fail(Fault::too_deep, path_);
    const std::size_t length = path_.size();
    std::size_t i = 0;
    items.items([&](Json::Value item) {
      if (item.is_text()) {
        encoder.text(path_, item.text());
      } else {
        path_ += '[' + std::to_string(i) + ']';
        walk(encoder, item, depth);
        path_.resize(length);
      }
      ++i;
    });
  }

  // A date is {"$date": "2024-02-29"}, a time of day {"$time": "12:30"}. Returns false for other objects.
  bool walk_time(Encoder& encoder, Json::Value object) {
    if (object.size() != 1) return false;
    bool found = false;
    object.members([&](std::string_view name, Json::Value value) {
      const bool is_clock = name == "$time";
      if (!is_clock && name != "$date") return;
      const auto read = is_clock ? &IsoDate::read_clock : &IsoDate::read;
      const auto time = value.is_text() ? read(value.text()) : std::nullopt;
      if (!time)
        encoder.fail(is_clock ? Fault::bad_clock : Fault::bad_date, path_,
                     value.is_text() ? quoted(value.text()) : std::string(value.source().substr(0, 60)));
      encoder.time(path_, *time);
      found = true;
    });
    return found;
  }

  void walk(Encoder& encoder, Json::Value value, std::size_t depth) {
    switch (value.type()) {
      case JsonType::null: return encoder.missing(path_);
      case JsonType::flag: return encoder.flag(path_, value.number() != 0.0);
      case JsonType::number: return encoder.number(path_, value.number());
      case JsonType::text: return encoder.text(path_, value.text());
      case JsonType::list: encoder.present(path_); return walk_items(encoder, value, depth + 1);
      case JsonType::object: break;
    }
    if (walk_time(encoder, value)) return;
    encoder.present(path_);
    walk_members(encoder, value, depth + 1);
  }

  std::string path_;
};

// The error for a field that the encoder has rejected.
[[noreturn]] inline void fail_field(const Encoder& encoder) {
  const std::string name = quoted(encoder.fault_field);
  const char* field = name.c_str();
  static constexpr const char* kinds[] = {"a number", "text", "true or false", "a date or time"};
  const auto known = encoder.fields().find(encoder.fault_field);
  switch (encoder.fault) {
    case Fault::infinite:
      fail("context", "field %s must be a finite number, got infinity. Omit fields with missing values.", field);
    case Fault::changed_kind:
      fail("context",
           "field %s must be %s, like the first time, got another type. Pass that type, or use another name.", field,
           known == encoder.fields().end() ? "of one type" : kinds[static_cast<std::size_t>(known->second.kind)]);
    case Fault::too_many:
      fail("context", "context must have at most 4096 features; field %s exceeds the limit.", field);
    case Fault::too_deep:
      fail("context", "context must be nested at most 32 levels deep; field %s exceeds the limit.", field);
    case Fault::bad_date:
      fail("context", "field %s must have a $date such as '2024-02-29' or '2024-02-29T12:30:00+01:00', got %.60s.",
           field, encoder.fault_value.c_str());
    case Fault::bad_clock:
      fail("context", "field %s must have a $time such as '12:30' or '12:30:59.5', got %.60s.", field,
           encoder.fault_value.c_str());
    default: fail("context", "field %s is wrong.", field);
  }
}

}  // namespace manul::api
