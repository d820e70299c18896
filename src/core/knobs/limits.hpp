// Limits between knobs: each bounds one knob by formulas of the knobs that are set before it and of context fields.
#pragma once

#include "knobs/formulas.hpp"
#include "knobs/knob.hpp"

namespace manul {

// The values of a knob: from `low` to `high`, or `count` steps of length `step`, or the numbers of its options. A value
// may be off by `rounding` of a step. A bent scale has a formula of the position, which is loaded as field 0.
struct Scale {
  Knob knob;
  double low, high, step, rounding;
  std::vector<double> options;
  Program bent;

  double value(double position) const {
    if (knob.kind == KnobKind::choice)
      return options[static_cast<std::size_t>(MANUL_SIMD::clip(position, 0.0, static_cast<double>(knob.count - 1)))];
    if (knob.kind == KnobKind::steps) {
      const double last = static_cast<double>(knob.count - 1);
      const double place = MANUL_SIMD::clip(__builtin_floor(position * knob.count), 0.0, last);
      return place == last ? high : low + place * step;
    }
    if (position >= 1.0) return high;
    const double inside = bent.empty() ? low + position * (high - low) : bent.run([&](auto) { return position; });
    return MANUL_SIMD::clip(inside, low, high);
  }
};

// `least` and `most` include the bound, `above` and `below` do not; `only` has the bits of options as its number.
enum class Side : std::uint8_t { least, most, above, below, only };

struct Limit {
  std::size_t knob;
  Side side;
  std::uint32_t allowed;
  Program bound;
  Program where;  // always, if empty
};

class DeclaredLimits final : public KnobLimits {
 public:
  // `order` has all knobs; a formula may only load those that come before the knob that it bounds.
  DeclaredLimits(std::vector<Scale> scales, std::vector<Limit> limits, std::vector<std::size_t> order,
                 std::size_t fields)
      : scales_(std::move(scales)), limits_(scales_.size()), order_(std::move(order)), fields_(fields) {
    for (Limit& limit : limits) limits_[limit.knob].push_back(std::move(limit));
  }

  std::size_t size() const override { return scales_.size(); }
  std::size_t fields() const override { return fields_; }
  bool is_choice(std::size_t k) const override { return scales_[k].knob.kind == KnobKind::choice; }
  const std::size_t* order() const override { return order_.data(); }

  bool narrow(std::size_t k, const double* positions, const double* fields, KnobRange& range) const override {
    const auto load = [&](const Instruction& step) {
      const auto number = static_cast<std::size_t>(step.number);
      if (step.operation == Operation::field) return fields[number];
      return step.operation == Operation::option ? positions[number] : scales_[number].value(positions[number]);
    };
    for (const Limit& limit : limits_[k]) {
      const double holds = limit.where.empty() ? 1.0 : limit.where.run(load);
      if (std::isnan(holds)) return false;
      if (holds == 0.0) continue;
      if (limit.side == Side::only)
        range.allowed &= limit.allowed;
      else if (!narrow(scales_[k], limit.side, limit.bound.run(load), range))
        return false;
    }
    return is_choice(k) ? range.allowed != 0 : range.low <= range.high;
  }

 private:
  // Narrows the positions to those whose values, as computed with rounding, are inside the bound; false if none is.
  static bool narrow(const Scale& scale, Side side, double bound, KnobRange& range) {
    const bool upper = side == Side::most || side == Side::below, strict = side == Side::above || side == Side::below;
    const double end = upper ? scale.high : scale.low, other = upper ? scale.low : scale.high;
    const auto inside = [&](double value, double slack) {
      const double over = upper ? value - bound : bound - value;
      return strict ? over < -slack : over <= slack;
    };
    if (std::isnan(bound)) return false;
    if (scale.knob.kind == KnobKind::steps) return narrow_steps(scale, upper, inside, bound, range);
    if (inside(end, 0.0)) return true;
    if (!inside(other, 0.0)) return false;
    double position =
        scale.bent.empty() ? (bound - scale.low) / (scale.high - scale.low) : bisect(scale, upper, inside);
    for (double by = 1e-17; !inside(scale.value(position), 0.0); by *= 2.0)
      position = MANUL_SIMD::clip(upper ? position - by : position + by, 0.0, 1.0);
    if (upper)
      range.high = MANUL_SIMD::smaller(range.high, position);
    else
      range.low = MANUL_SIMD::larger(range.low, position);
    return true;
  }

  template <class Inside>
  static double bisect(const Scale& scale, bool upper, Inside&& inside) {
    double low = 0.0, high = 1.0;
    for (int i = 0; i < 60; ++i) {
      const double middle = 0.5 * (low + high);
      (inside(scale.value(middle), 0.0) == upper ? low : high) = middle;
    }
    return upper ? low : high;
  }

  // The cells of the steps inside the bound; a division may be off by one step.
  template <class Inside>
  static bool narrow_steps(const Scale& scale, bool upper, Inside&& inside, double bound, KnobRange& range) {
    const double count = scale.knob.count, slack = scale.rounding * scale.step, by = upper ? 1.0 : -1.0;
    double place = MANUL_SIMD::clip(__builtin_floor((bound - scale.low) / scale.step), -2.0, count + 1.0) + 2.0 * by;
    for (int i = 0; i < 5; ++i, place -= by) {
      if (place < 0.0 || place >= count || !inside(scale.value((place + 0.5) / count), slack)) continue;
      if (upper)
        range.high = MANUL_SIMD::smaller(range.high, (place + 1.0) / count);
      else
        range.low = MANUL_SIMD::larger(range.low, place / count);
      return range.high - range.low > 0.5 / count;
    }
    return upper ? inside(scale.high, slack) : inside(scale.low, slack);
  }

  std::vector<Scale> scales_;
  std::vector<std::vector<Limit>> limits_;  // by knob
  std::vector<std::size_t> order_;
  std::size_t fields_;
};

// Thrown before anything has changed: limits leave no value of a knob, given the positions of those before it.
struct NothingLeft {
  std::size_t knob;
  std::vector<double> positions;
};

// The positions at these shares of what the limits leave of each knob.
inline std::vector<double> place_inside(const Limited& limited, const KnobRange* ranges, const double* shares) {
  std::vector<double> positions(limited.limits->size());
  for (std::size_t at = 0; at < positions.size(); ++at) {
    const std::size_t k = limited.knob(at);
    KnobRange range = ranges[k];
    if (!limited.narrow(k, positions.data(), range)) throw NothingLeft{k, positions};
    if (limited.limits->is_choice(k)) {
      auto left = static_cast<int>(shares[k] * __builtin_popcount(range.allowed));
      for (; left > 0; --left) range.allowed &= range.allowed - 1;  // without its lowest bit
      positions[k] = __builtin_ctz(range.allowed);
    } else {
      positions[k] = range.low + shares[k] * (range.high - range.low);
    }
  }
  return positions;
}

}  // namespace manul
