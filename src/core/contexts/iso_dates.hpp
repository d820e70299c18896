// Reads dates of ISO 8601: 2024-02-29, or 2024-02-29T12:30 with optional seconds, their fraction, and Z or +01:00; and
// times of day: 12:30, with optional seconds and their fraction.
#pragma once

#include <optional>

#include "contexts/timestamps.hpp"

namespace manul {

class IsoDate {
 public:
  // Nothing unless the whole text is a date of the calendar, or such a date and a time of day.
  static std::optional<Timestamp> read(std::string_view text) {
    IsoDate reader(text);
    Timestamp time = {};
    if (!reader.date(time)) return {};
    if (!reader.rest_.empty() && !reader.clock_and_offset(time)) return {};
    return reader.rest_.empty() ? std::optional(time) : std::nullopt;
  }

  static std::optional<Timestamp> read_clock(std::string_view text) {
    IsoDate reader(text);
    Timestamp time = {};
    return reader.clock(time) && reader.rest_.empty() ? std::optional(time) : std::nullopt;
  }

 private:
  explicit IsoDate(std::string_view text) : rest_(text) {}

  bool skip(char expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // A number below `end`, of exactly so many digits.
  bool number(std::size_t digits, unsigned end, unsigned& value) {
    if (rest_.size() < digits) return false;
    value = 0;
    for (const char digit : rest_.substr(0, digits)) {
      if (digit < '0' || digit > '9') return false;
      value = 10 * value + static_cast<unsigned>(digit - '0');
    }
    rest_.remove_prefix(digits);
    return value < end;
  }

  bool date(Timestamp& time) {
    unsigned year = 0;
    if (!(number(4, 10000, year) && skip('-') && number(2, 13, time.month) && skip('-') && number(2, 32, time.day)))
      return false;
    time.has_date = true;
    time.year = static_cast<int>(year);
    return year > 0 && time.calendar_date().ok();
  }

  bool clock(Timestamp& time) {
    unsigned hour = 0, minute = 0, second = 0, microsecond = 0;
    if (!(number(2, 24, hour) && skip(':') && number(2, 60, minute))) return false;
    if (skip(':') && !(number(2, 60, second) && (!skip('.') || fraction(microsecond)))) return false;
    time.set_clock(hour, minute, second, microsecond);
    return true;
  }

  bool clock_and_offset(Timestamp& time) {
    return (skip('T') || skip(' ')) && clock(time) && (rest_.empty() || skip('Z') || offset(time));
  }

  // Digits beyond microseconds are dropped, as in Python.
  bool fraction(unsigned& microsecond) {
    std::size_t digits = 0;
    for (unsigned digit = 0; number(1, 10, digit); ++digits)
      if (digits < 6) microsecond = 10 * microsecond + digit;
    for (std::size_t absent = digits; absent < 6; ++absent) microsecond *= 10;
    return digits > 0;
  }

  bool offset(Timestamp& time) {
    const bool behind = skip('-');
    unsigned hour = 0, minute = 0;
    if (!((behind || skip('+')) && number(2, 24, hour) && skip(':') && number(2, 60, minute))) return false;
    time.utc_offset = (behind ? -1.0 : 1.0) * (3600.0 * hour + 60.0 * minute);
    return true;
  }

  std::string_view rest_;
};

}  // namespace manul
