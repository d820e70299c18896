// The knobs of an agent: values become positions of the core and back; as manul/actions/kinds does.
#pragma once

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "c_api/json.hpp"
#include "contexts/json_text.hpp"
#include "knobs/limits.hpp"

namespace manul::api {

// An option of a choice: a text, a number, or true or false, which are not 1 and 0.
struct Option {
  bool is_text = false, is_flag = false;
  double number = std::numeric_limits<double>::quiet_NaN();  // not one of texts
  std::string text = {};
  std::string json = {};

  bool is(Json::Value value) const {
    if (is_text) return value.is_text() && value.text() == text;
    return (is_flag ? value.type() == JsonType::flag : value.is_number()) && value.number() == number;
  }
};

// A finite number of an argument or knob.
inline double finite_number(Json::Value value, const std::string& name) {
  if (value.is_number() && !std::isfinite(value.number()))
    fail(name, "%s must be a finite number, got %s.", name.c_str(), value.number() < 0 ? "-inf" : "inf");
  if (!value.is_number())
    fail(name, "%s must be a number, got %s.", name.c_str(),
         value.is_text() ? quoted(value.text()).c_str() : std::string(value.source().substr(0, 60)).c_str());
  return value.number();
}

struct SpaceKnob {
  std::string name;  // empty for one without a name
  Knob core = {};
  double low = 0.0, high = 0.0, step = 0.0;
  std::vector<Option> options = {};

  bool is_choice() const { return core.kind == KnobKind::choice; }
  bool is_number() const { return core.kind == KnobKind::number; }
  const std::string& title() const {
    static const std::string action = "action";
    return name.empty() ? action : name;
  }

  // The length of the range, or the number of steps or options.
  double volume() const { return is_number() ? high - low : core.count; }

  // What the density of a position is divided by.
  double unit() const { return is_number() ? high - low : 1.0; }

  Scale scale() const {
    Scale scale = {core, low, high, step, 1e-6, {}, {}};  // values of steps, such as 3 * 0.1, are rounded
    for (const Option& option : options) scale.options.push_back(option.number);
    return scale;
  }

  std::string rule() const {
    char text[200];
    if (is_number()) {
      std::snprintf(text, sizeof text, "in [%g, %g]", low, high);
      return text;
    }
    if (!is_choice()) {
      std::snprintf(text, sizeof text, "one of %g, %g, …, %g", low, low + step, high);
      return text;
    }
    std::string all = "one of ";
    for (const Option& option : options) {
      if (all.size() > 7) all += ", ";
      all += option.is_text           ? quoted(option.text)
             : option.json == "true"  ? "True"
             : option.json == "false" ? "False"
                                      : option.json;
    }
    return all;
  }

  double value(double position) const {
    if (is_choice()) return position;
    if (is_number()) {
      if (position >= 1.0) return high;
      const double inside = low + position * (high - low);
      return inside < low ? low : inside > high ? high : inside;
    }
    const double last = core.count - 1.0, cell = std::floor(position * core.count);
    const double place = cell < 0.0 ? 0.0 : cell > last ? last : cell;
    return place == last ? high : low + place * step;
  }

  // The position of a value in JSON.
  double position(Json::Value value) const {
    if (!is_choice()) return position(finite_number(value, title()));
    for (std::size_t i = 0; i < options.size(); ++i)
      if (options[i].is(value)) return static_cast<double>(i);
    fail(title(), "%s must be %s, got %s.", title().c_str(), rule().c_str(), shown(value).c_str());
  }

  // The position of a number, or of the number of an option.
  double position(double number) const {
    if (is_number()) {
      if (!(number >= low && number <= high)) fail_outside(number);
      const double share = (number - low) / (high - low);
      return share < 0.0 ? 0.0 : share > 1.0 ? 1.0 : share;
    }
    if (is_choice()) {
      if (!(number >= 0.0 && number < core.count && number == std::floor(number)))
        fail(title(), "%s must be the number of an option below %u, got %g.", title().c_str(), core.count, number);
      return number;
    }
    if (!std::isfinite(number)) fail_outside(number);
    const double limited = std::min(std::max(number, low - step), high + step);
    const double place = (limited - low) / step, nearest = std::nearbyint(place);
    if (!(nearest >= 0.0 && nearest < core.count && std::abs(place - nearest) <= rounding())) fail_outside(number);
    return (nearest + 0.5) / core.count;
  }

  // The narrower range of a decision.
  KnobRange narrow(Json::Value within) const {
    if (!within || within.is_null()) return whole();
    if (is_choice()) return narrow_options(within);
    if (!within.is_list() || within.size() != 2)
      fail("within", "within of %s must be (low, high), got %s.", title().c_str(), shown(within).c_str());
    const double first = finite_number(within.item(0), title()), last = finite_number(within.item(1), title());
    if (is_number()) {
      if (!(low <= first && first < last && last <= high) || (last - first) / (high - low) < narrowest)
        fail("within", "within of %s must be a range inside [%g, %g], got (%g, %g).", title().c_str(), low, high, first,
             last);
      return {position(first), position(last), 0};
    }
    const double begin = std::ceil((std::min(std::max(first, low), high + step) - low) / step - rounding());
    const double end = std::floor((std::max(std::min(last, high), low - step) - low) / step + rounding());
    if (begin > end || begin >= core.count || end < 0.0)
      fail("within", "within of %s must contain one of its steps, got (%g, %g).", title().c_str(), first, last);
    return {std::max(begin, 0.0) / core.count, std::min(end + 1.0, static_cast<double>(core.count)) / core.count, 0};
  }

  KnobRange whole() const {
    const auto all = core.count >= 32 ? 0xffffffffu : (1u << core.count) - 1;
    return is_choice() ? KnobRange{static_cast<double>(all), 0.0, all} : KnobRange{0.0, 1.0, 0};
  }

  static constexpr double narrowest = 1e-9;  // as NARROWEST in manul/actions/kinds/knob.py

  // How far, in steps, a value may be off by rounding.
  double rounding() const {
    const double largest = std::max(std::abs(low), std::abs(high));
    return 1e-9 * core.count +
           4.0 * (std::nextafter(largest, std::numeric_limits<double>::infinity()) - largest) / step;
  }

 private:
  static std::string shown(Json::Value value) {
    return value.is_text() ? quoted(value.text()) : std::string(value.source().substr(0, 60));
  }

  [[noreturn]] void fail_outside(double number) const {
    fail(title(), "%s must be %s, got %g.", title().c_str(), rule().c_str(), number);
  }

  KnobRange narrow_options(Json::Value within) const {
    std::uint32_t allowed = 0;
    const auto allow = [&](Json::Value option) { allowed |= 1u << static_cast<unsigned>(position(option)); };
    if (within.is_object())
      fail("within", "within of %s must be a list of its options, got %s.", title().c_str(), shown(within).c_str());
    if (within.is_list())
      within.items(allow);
    else
      allow(within);
    if (allowed == 0) fail("within", "within of %s must have at least one option, got none.", title().c_str());
    return {static_cast<double>(allowed), 0.0, allowed};
  }
};

// The knobs in the settings of a file.
class SpaceReader {
 public:
  static std::vector<SpaceKnob> read(Json::Value actions) {
    std::vector<SpaceKnob> knobs;
    if (actions && actions.is_list() && actions.size() > 0 && !actions.item(0).is_number()) {
      actions.items([&](Json::Value pair) {
        if (!pair.is_list() || pair.size() != 2 || !pair.item(0).is_text() || pair.item(0).text().empty()) wrong();
        knobs.push_back(knob(pair.item(1), std::string(pair.item(0).text())));
        for (std::size_t k = 0; k + 1 < knobs.size(); ++k)
          if (knobs[k].name == knobs.back().name) wrong();
      });
    } else {
      knobs.push_back(knob(actions, {}));
    }
    std::size_t columns = 0;
    for (const SpaceKnob& each : knobs) columns += each.core.columns();
    if (knobs.size() > most_knobs || columns > most_columns) wrong();
    return knobs;
  }

 private:
  [[noreturn]] static void wrong() { fail("actions", "file is damaged: its actions are wrong."); }

  static SpaceKnob knob(Json::Value description, std::string name) {
    if (!description) wrong();
    if (description.is_list()) return span(description, std::move(name));
    const Json::Value options = description["options"], low = description["low"], high = description["high"],
                      step = description["step"];
    if (options && description.size() == 1) return choice(options, std::move(name));
    if (low && high && step && description.size() == 3) return steps(low, high, step, std::move(name));
    if (!description.is_object()) wrong();
    fail("actions", "%s is a kind of knob that only Python has; use ranges, Stepped and Choice.",
         name.empty() ? "action" : name.c_str());
  }

  static SpaceKnob span(Json::Value ends, std::string name) {
    if (ends.size() != 2) wrong();
    SpaceKnob knob{std::move(name)};
    knob.core = {KnobKind::number, 0};
    set_ends(knob, ends.item(0), ends.item(1));
    return knob;
  }

  static void set_ends(SpaceKnob& knob, Json::Value low, Json::Value high) {
    if (!low.is_number() || !high.is_number()) wrong();
    knob.low = low.number(), knob.high = high.number();
    if (!(std::isfinite(knob.low) && std::isfinite(knob.high - knob.low) && knob.low < knob.high)) wrong();
  }

  static SpaceKnob steps(Json::Value low, Json::Value high, Json::Value step, std::string name) {
    SpaceKnob knob{std::move(name)};
    set_ends(knob, low, high);
    if (!step.is_number() || !(step.number() > 0.0) || !std::isfinite(step.number())) wrong();
    knob.step = step.number();
    const double steps = (knob.high - knob.low) / knob.step, count = std::nearbyint(steps) + 1.0;
    if (!(steps < most_steps) || count < 2.0) wrong();
    knob.core = {KnobKind::steps, static_cast<std::uint32_t>(count)};
    if (knob.rounding() > 0.1 || std::abs(steps - (count - 1.0)) > knob.rounding()) wrong();
    return knob;
  }

  static SpaceKnob choice(Json::Value options, std::string name) {
    SpaceKnob knob{std::move(name)};
    if (!options.is_list() || options.size() < 2 || options.size() > most_categories) wrong();
    options.items([&](Json::Value value) {
      Option option;
      option.is_text = value.is_text(), option.is_flag = value.type() == JsonType::flag;
      if (value.is_text()) {
        option.text = value.text();
        write_json(option.json, option.text);
      } else if (value.is_number() || option.is_flag) {
        option.number = value.number();
        option.json = value.source();
      } else {
        wrong();
      }
      for (const Option& other : knob.options)
        if (other.is(value)) wrong();
      knob.options.push_back(std::move(option));
    });
    knob.core = {KnobKind::choice, static_cast<std::uint32_t>(knob.options.size())};
    return knob;
  }

  static constexpr double most_steps = 1e6;
};

}  // namespace manul::api
