// Dates and times of day, as fields of a context.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

namespace manul {

// Either part may be absent: a date has no clock, a time of day no date.
struct Timestamp {
  bool has_date, has_clock;
  int year;
  unsigned month, day, hour;
  double second_of_day;
  double utc_offset;  // seconds ahead of UTC

  void set_clock(unsigned hours, unsigned minute, unsigned second, unsigned microsecond) {
    has_clock = true;
    hour = hours;
    second_of_day = 3600.0 * hours + 60.0 * minute + second + 1e-6 * microsecond;
  }

  std::chrono::year_month_day calendar_date() const {
    return {std::chrono::year(year), std::chrono::month(month), std::chrono::day(day)};
  }

  // Days since 1970-01-01 in UTC; for a time of day, the share of the day.
  double days() const {
    const double date = has_date ? static_cast<double>(calendar_day().time_since_epoch().count()) : 0.0;
    return date + (second_of_day - (has_date ? utc_offset : 0.0)) / 86400.0;
  }

  // In the time zone of the value.
  std::string_view month_name() const {
    return std::string_view("JanFebMarAprMayJunJulAugSepOctNovDec").substr(3 * (month - 1), 3);
  }

  std::string_view weekday_name() const {
    return std::string_view("SunMonTueWedThuFriSat").substr(3 * std::chrono::weekday(calendar_day()).c_encoding(), 3);
  }

  std::string_view hour_name() const {
    return std::string_view("000102030405060708091011121314151617181920212223").substr(2 * hour, 2);
  }

  // As in ISO 8601, with microseconds only if there are any.
  std::string clock_text() const {
    const auto microseconds = static_cast<long long>(1e6 * second_of_day + 0.5);
    const long long seconds = microseconds / 1'000'000, fraction = microseconds % 1'000'000;
    char text[32];
    int length =
        std::snprintf(text, sizeof text, "%02lld:%02lld:%02lld", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if (fraction != 0) length += std::snprintf(text + length, sizeof text - 16, ".%06lld", fraction);
    return {text, static_cast<std::size_t>(length)};
  }

 private:
  std::chrono::sys_days calendar_day() const { return calendar_date(); }
};

}  // namespace manul
