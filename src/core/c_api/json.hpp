// A strict reader of JSON (RFC 8259): the header and the parameters of a file, contexts, actions and narrower ranges.
//
// A text becomes a row of nodes in the order of the text, each with the place after its last descendant, so that memory
// is reused from one context to the next. Members of an object must have different names.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "c_api/failure.hpp"

namespace manul::api {

enum class JsonType : std::uint8_t { null, flag, number, text, list, object };

class Json {
 public:
  static constexpr std::size_t deepest = 128;

  class Value;
  class Items;

  // `what` names the text in errors.
  Value parse(std::string_view source, const char* what);

 private:
  struct Node {
    JsonType type;
    bool escaped = false;   // whether the text had escapes, and is in `texts_`
    std::uint32_t end = 0;  // the node after the last descendant
    double number = 0.0;
    std::size_t start = 0, size = 0;            // of the source
    std::size_t text_start = 0, text_size = 0;  // of a text
  };

  [[noreturn]] void fail_here(const char* reason) {
    fail(what_, "%s must be JSON, but at byte %zu %s.", what_, at_ + 1, reason);
  }

  bool ends() const { return at_ == source_.size(); }
  char next() const { return ends() ? '\0' : source_[at_]; }

  void skip_space() {
    while (!ends() && (next() == ' ' || next() == '\t' || next() == '\n' || next() == '\r')) ++at_;
  }

  bool take(char wanted) {
    if (ends() || next() != wanted) return false;
    ++at_;
    return true;
  }

  void need(char wanted) {
    if (!take(wanted)) fail_here(wanted == ':' ? "a colon is missing" : "a comma or the end is missing");
  }

  std::uint32_t add(JsonType type) {
    if (nodes_.size() >= std::uint32_t{1} << 31) fail_here("there are too many values");
    nodes_.push_back({type});
    nodes_.back().start = at_;
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }

  void finish(std::uint32_t index) {
    nodes_[index].end = static_cast<std::uint32_t>(nodes_.size());
    nodes_[index].size = at_ - nodes_[index].start;
  }

  void value(std::size_t depth) {
    skip_space();
    switch (next()) {
      case '{': return object(depth);
      case '[': return list(depth);
      case '"': return text();
      case 't': return word("true", JsonType::flag, 1.0);
      case 'f': return word("false", JsonType::flag, 0.0);
      case 'n': return word("null", JsonType::null, 0.0);
      default: return number();
    }
  }

  void word(std::string_view word, JsonType type, double number) {
    if (source_.substr(at_, word.size()) != word) fail_here("a value is wrong");
    const std::uint32_t index = add(type);
    nodes_[index].number = number;
    at_ += word.size();
    finish(index);
  }

  void list(std::size_t depth) {
    if (depth >= deepest) fail_here("it is nested too deeply");
    const std::uint32_t index = add(JsonType::list);
    ++at_;
    skip_space();
    if (!take(']')) {
      do value(depth + 1), skip_space();
      while (take(','));
      need(']');
    }
    finish(index);
  }

  void object(std::size_t depth) {
    if (depth >= deepest) fail_here("it is nested too deeply");
    const std::uint32_t index = add(JsonType::object);
    ++at_;
    skip_space();
    if (!take('}')) {
      do {
        skip_space();
        if (next() != '"') fail_here("the name of a member is missing");
        text();
        skip_space();
        need(':');
        value(depth + 1);
        skip_space();
      } while (take(','));
      need('}');
    }
    finish(index);
    check_names(index);
  }

  // Few names are compared with each other, many are sorted.
  void check_names(std::uint32_t object) {
    names_.clear();
    for (std::uint32_t i = object + 1; i < nodes_[object].end; i = nodes_[i + 1].end) {
      const std::string_view name = text_of(nodes_[i]);
      if (names_.size() < 16 && std::find(names_.begin(), names_.end(), name) != names_.end()) fail_here_twice(name);
      names_.push_back(name);
    }
    if (names_.size() <= 16) return;
    std::sort(names_.begin(), names_.end());
    const auto twice = std::adjacent_find(names_.begin(), names_.end());
    if (twice != names_.end()) fail_here_twice(*twice);
  }

  [[noreturn]] void fail_here_twice(std::string_view name) {
    char shown[64];
    Failure::copy(shown, sizeof shown, name);
    fail(what_, "%s must be JSON whose members have different names, got '%s' twice.", what_, shown);
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  void number() {
    const std::size_t start = at_;
    const std::uint32_t index = add(JsonType::number);
    std::uint64_t digits = 0;
    int known = 0, exponent = 0;  // significant digits, and the power of ten of the last one
    bool exact = true;
    const auto digit = [&](int fraction) {
      if (known < 18) {
        digits = 10 * digits + static_cast<std::uint64_t>(next() - '0');
        known += digits > 0, exponent -= fraction;
      } else {
        exact = false;
      }
      ++at_;
    };
    const bool negative = take('-');
    if (!is_digit(next())) fail_here("a value is missing or wrong");
    if (next() == '0') {
      digit(0);
      if (is_digit(next())) fail_here("a number begins with 0");
    }
    while (is_digit(next())) digit(0);
    if (take('.')) {
      if (!is_digit(next())) fail_here("a number ends with a point");
      while (is_digit(next())) digit(1);
    }
    if (next() == 'e' || next() == 'E') {
      ++at_;
      const bool down = next() == '-';
      if (down || next() == '+') ++at_;
      if (!is_digit(next())) fail_here("an exponent is missing");
      int power = 0;
      for (; is_digit(next()); ++at_) power = std::min(100000, 10 * power + (next() - '0'));
      exponent += down ? -power : power;
    }
    const double magnitude = exact && digits <= std::uint64_t{1} << 53 && exponent >= -22 && exponent <= 22
                                 ? scaled(static_cast<double>(digits), exponent)
                                 : slow_number(source_.substr(start + negative, at_ - start - negative));
    nodes_[index].number = negative ? -magnitude : magnitude;
    finish(index);
  }

  // Exact, because both numbers are, and only the result is rounded.
  static double scaled(double digits, int exponent) {
    static constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    return exponent < 0 ? digits / powers[-exponent] : digits * powers[exponent];
  }

  // Independent of the locale where the standard library can.
  static double slow_number(std::string_view text) {
#if defined(__cpp_lib_to_chars) && !defined(__wasm__)
    double number = 0.0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
    if (result.ec == std::errc()) return number;
#endif
    return std::strtod(std::string(text).c_str(), nullptr);  // also what is too large or too small
  }

  void text() {
    const std::uint32_t index = add(JsonType::text);
    const std::size_t begin = ++at_;
    while (!ends() && next() != '"' && next() != '\\' && static_cast<unsigned char>(next()) >= ' ') character();
    Node& node = nodes_[index];
    if (!ends() && next() == '"') {
      node.text_start = begin, node.text_size = at_ - begin;
    } else {
      node.escaped = true;
      node.text_start = texts_.size();
      texts_.append(source_, begin, at_ - begin);
      while (!take_end()) escape_or_character();
      node.text_size = texts_.size() - node.text_start;
      --at_;
    }
    ++at_;
    finish(index);
  }

  bool take_end() {
    if (ends()) fail_here("a text does not end");
    return take('"');
  }

  // Skips one character of UTF-8 in its shortest form, which is no surrogate.
  void character() {
    const auto byte = [&](std::size_t i) {
      return at_ + i < source_.size() ? static_cast<unsigned char>(source_[at_ + i]) : 0u;
    };
    const unsigned first = byte(0);
    const std::size_t more = first < 0x80   ? 0
                             : first < 0xc2 ? 9
                             : first < 0xe0 ? 1
                             : first < 0xf0 ? 2
                             : first < 0xf5 ? 3
                                            : 9;
    bool valid = more < 9;
    for (std::size_t i = 1; valid && i <= more; ++i) valid = (byte(i) & 0xc0u) == 0x80u;
    if (first == 0xe0) valid = valid && byte(1) >= 0xa0;
    if (first == 0xed) valid = valid && byte(1) < 0xa0;
    if (first == 0xf0) valid = valid && byte(1) >= 0x90;
    if (first == 0xf4) valid = valid && byte(1) < 0x90;
    if (!valid) fail_here("a text is not UTF-8");
    at_ += 1 + more;
  }

  void escape_or_character() {
    if (static_cast<unsigned char>(next()) < ' ') fail_here("a control character is not escaped");
    if (next() != '\\') {
      const std::size_t start = at_;
      character();
      texts_.append(source_, start, at_ - start);
      return;
    }
    ++at_;
    static constexpr std::string_view letters = "bfnrt\"\\/", characters = "\b\f\n\r\t\"\\/";
    const std::size_t place = ends() ? std::string_view::npos : letters.find(next());
    if (place != std::string_view::npos) {
      texts_ += characters[place];
      ++at_;
      return;
    }
    if (!take('u')) fail_here("an escape is wrong");
    std::uint32_t point = unit();
    if (point >= 0xdc00 && point < 0xe000) fail_here("a text has a lone surrogate, which is not valid Unicode");
    if (point >= 0xd800 && point < 0xdc00) {
      const std::uint32_t second = take('\\') && take('u') ? unit() : 0;
      if (second < 0xdc00 || second >= 0xe000) fail_here("a text has a lone surrogate, which is not valid Unicode");
      point = 0x10000 + ((point - 0xd800) << 10) + (second - 0xdc00);
    }
    append(point);
  }

  std::uint32_t unit() {
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = next();
      const int digit = is_digit(c)            ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) fail_here("an escape is wrong");
      value = value << 4 | static_cast<std::uint32_t>(digit);
    }
    return value;
  }

  void append(std::uint32_t point) {
    const auto add = [&](std::uint32_t byte) { texts_ += static_cast<char>(byte); };
    const auto more = [&](int shift) { add(0x80u | (point >> shift & 0x3fu)); };
    if (point < 0x80) return add(point);
    if (point < 0x800) return add(0xc0u | point >> 6), more(0);
    if (point < 0x10000) return add(0xe0u | point >> 12), more(6), more(0);
    add(0xf0u | point >> 18), more(12), more(6), more(0);
  }

  std::string_view text_of(const Node& node) const {
    return (node.escaped ? std::string_view(texts_) : source_).substr(node.text_start, node.text_size);
  }

  std::string_view source_;
  const char* what_ = "text";
  std::size_t at_ = 0;
  std::vector<Node> nodes_;
  std::vector<std::string_view> names_;
  std::string texts_;
};

// Valid until the next text is parsed.
class Json::Value {
 public:
  Value() = default;
  Value(const Json* json, std::uint32_t index) : json_(json), index_(index) {}

  explicit operator bool() const { return json_ != nullptr; }
  JsonType type() const { return node().type; }
  bool is_null() const { return type() == JsonType::null; }
  bool is_number() const { return type() == JsonType::number; }
  bool is_text() const { return type() == JsonType::text; }
  bool is_list() const { return type() == JsonType::list; }
  bool is_object() const { return type() == JsonType::object; }

  double number() const { return node().number; }  // of a number, or 1 or 0 of a flag
  std::string_view text() const { return json_->text_of(node()); }
  std::string_view source() const { return json_->source_.substr(node().start, node().size); }

  // Calls `each(value)` for the items of a list.
  template <class Each>
  void items(Each&& each) const {
    for (std::uint32_t i = index_ + 1; i < node().end; i = json_->nodes_[i].end) each(Value(json_, i));
  }

  // Calls `each(name, value)` for the members of an object.
  template <class Each>
  void members(Each&& each) const {
    for (std::uint32_t i = index_ + 1; i < node().end; i = json_->nodes_[i + 1].end)
      each(Value(json_, i).text(), Value(json_, i + 1));
  }

  std::size_t size() const {
    std::size_t count = 0;
    if (is_list()) items([&](Value) { ++count; });
    if (is_object()) members([&](std::string_view, Value) { ++count; });
    return count;
  }

  // A member of an object, or nothing.
  Value operator[](std::string_view name) const {
    Value found;
    if (is_object())
      members([&](std::string_view each, Value value) {
        if (each == name) found = value;
      });
    return found;
  }

  // An item of a list, or nothing.
  Value item(std::size_t number) const {
    Value found;
    if (is_list())
      items([&](Value value) {
        if (number-- == 0) found = value;
      });
    return found;
  }

 private:
  const Node& node() const { return json_->nodes_[index_]; }

  const Json* json_ = nullptr;
  std::uint32_t index_ = 0;
};

inline Json::Value Json::parse(std::string_view source, const char* what) {
  source_ = source, what_ = what, at_ = 0;
  nodes_.clear();
  texts_.clear();
  value(0);
  skip_space();
  if (!ends()) fail_here("there is more after the end");
  return Value(this, 0);
}

}  // namespace manul::api
