// What is known of the parts of an outcome: it predicts each of them, and the formula then says what an action is
// worth.
#pragma once

#include "contexts/context_view.hpp"
#include "critic/sparse_contexts.hpp"
#include "parts/outcome_part.hpp"

namespace manul::MANUL_SIMD {

class OutcomeParts {
 public:
  static constexpr std::size_t points = ActionBasis::points;

  // Contexts are rows of `width` numbers or, if `named`, have named features, of which the first 32 are columns here.
  OutcomeParts(const PartsSettings& settings, std::size_t width, bool named)
      : settings_(settings), columns_(named || width > PartExpert::most_columns ? PartExpert::most_columns : width),
        basis_(settings.count > 0 ? new ActionBasis(settings.actions) : nullptr),
        parts_(settings.count > 0 ? new OutcomePart[settings.count] : nullptr),
        scales_(settings.count > 0 ? 4 * columns_ : 0), state_(prepare()) {
    hold();
    draw_directions();
    for (std::size_t p = 0; p < settings_.count; ++p) parts_[p].start();
    if (has_start()) start_at(settings_.start);
  }
  ~OutcomeParts() {
    delete[] parts_;
    delete basis_;
  }
  OutcomeParts(const OutcomeParts&) = delete;
  OutcomeParts& operator=(const OutcomeParts&) = delete;

  std::size_t count() const { return settings_.count; }
  bool empty() const { return settings_.count == 0; }
  double rounds() const { return about_.rounds; }

  // Whether all parts can be predicted.
  bool is_known() const {
    bool all = true;
    for (std::size_t p = 0; p < settings_.count; ++p) all = all && parts_[p].is_known();
    return all;
  }

  // Predicts the outcome of each action of the grid, as a value that is better if higher, and what the action spends
  // and keeps if there are formulas of that; returns false if it cannot.
  bool predict(const ContextView& context, double* values, double* spent, double* kept) {
    if (!is_known()) return false;
    double z[PartExpert::most_columns], expectations[PartsSettings::most * points];
    standardise(context, z);
    for (std::size_t p = 0; p < settings_.count; ++p)
      parts_[p].curve(*basis_, z, used(), directions_, expectations + p * points);
    settings_.formula->expect(settings_.actions, points, expectations, context.fields, values);
    expect(settings_.spent, expectations, context, spent);
    expect(settings_.kept, expectations, context, kept);
    double least = __builtin_inf(), most = -__builtin_inf();
    for (std::size_t g = 0; g < points; ++g) {
      values[g] = settings_.higher ? values[g] : -values[g];
      if (values[g] == values[g]) least = smaller(least, values[g]), most = larger(most, values[g]);
    }
    for (std::size_t g = 0; g < points; ++g)  // an action without a value is worse than all others
      values[g] = values[g] == values[g] ? values[g] : least - (most - least);
    return least <= most;
  }

  // Learns the parts of an action at a position, NaN where they were not seen; returns the outcome that was expected,
  // or NaN.
  double learn(const ContextView& context, double position, const double* seen) {
    double z[PartExpert::most_columns], expectations[PartsSettings::most], value = __builtin_nan("");
    bool known = true;
    learn_columns(context);
    standardise(context, z);
    const ActionBasis::Place place(position);
    for (std::size_t p = 0; p < settings_.count; ++p) {
      known = known && parts_[p].is_known();
      expectations[p] = seen[p] == seen[p] ? parts_[p].learn(*basis_, z, used(), directions_, place, seen[p])
                        : known            ? parts_[p].expect(*basis_, z, used(), directions_, place)
                                           : 0.0;
    }
    about_.rounds += 1.0, about_.scaled += 1.0;
    const double action = place.value(settings_.actions);
    if (known) settings_.formula->expect(&action, 1, expectations, context.fields, &value);
    return settings_.higher ? value : -value;
  }

  // What the formula says of the parts of an action, better if higher, or NaN.
  double value(const ContextView& context, double position, const double* seen) const {
    const double action = ActionBasis::Place(position).value(settings_.actions);
    double value;
    settings_.formula->expect(&action, 1, seen, context.fields, &value);
    return settings_.higher ? value : -value;
  }

  // The best centre of a window with this half-width among positions: where the mean value is highest.
  static double best(const double* values, Range range, double half) {
    constexpr std::size_t parts = 2 * points;
    double sums[parts + 1] = {};
    const double step = (range.high - range.low) / parts;
    const auto position = [&](std::size_t i) { return range.low + (static_cast<double>(i) + 0.5) * step; };
    for (std::size_t i = 0; i < parts; ++i) sums[i + 1] = sums[i] + ActionBasis::Place(position(i)).value(values);
    const double reach = half / step + 0.5;  // NaN if the range is too narrow for its parts to differ
    const std::size_t radius = reach < parts ? static_cast<std::size_t>(reach) : parts;
    double best = 0.5 * (range.low + range.high), highest = -__builtin_inf();
    for (std::size_t i = 0; i < parts; ++i) {
      const std::size_t first = i > radius ? i - radius : 0, last = i + radius < parts ? i + radius + 1 : parts;
      const double mean = (sums[last] - sums[first]) / static_cast<double>(last - first);
      if (mean > highest) highest = mean, best = position(i);
    }
    return clip(best, range.low + half, range.high - half);
  }

  bool has_start() const { return settings_.start == settings_.start; }
  double start() const { return settings_.start; }

  // Takes over what a sister has learned; false if her contexts or parts are others.
  bool inherit(const OutcomeParts& sister) {
    bool same = settings_.inherits && settings_.count == sister.settings_.count && columns_ == sister.columns_;
    for (std::size_t p = 0; same && p < settings_.count; ++p)
      same = settings_.parts[p].kind == sister.settings_.parts[p].kind &&
             settings_.parts[p].hint == sister.settings_.parts[p].hint;
    if (!same) return false;
    const double share = smaller(1.0, most_inherited / larger(sister.about_.scaled, 1.0));
    for (std::size_t i = 0; i < scales_.size(); ++i) scales_[i] = sister.scales_.data()[i];
    for (std::size_t i = 0; i < columns_; ++i) column(i).count *= share;
    about_.scaled = share * sister.about_.scaled, about_.used = sister.about_.used;
    for (std::size_t p = 0; p < settings_.count; ++p) {
      for (std::size_t i = 0; i < used(); ++i)
        if (column(i).count > 0.0) parts_[p].add_column(i, about_.used);
      parts_[p].inherit(sister.parts_[p]);
    }
    return true;
  }

  void resume() {
    for (std::size_t p = 0; p < settings_.count; ++p) parts_[p].resume();
  }

  const OutcomePart& part(std::size_t index) const { return parts_[index]; }

  static constexpr std::size_t arrays = 3;
  Array array(std::size_t index) {
    const Array all[arrays] = {{"part_scales", "f8", scales_.data(), scales_.size()},
                               {"part_experts", "f8", state_.data(), state_.size()},
                               {"parts", "f8", &about_, sizeof about_ / sizeof(double)}};
    return all[index];
  }

  bool is_valid() const {
    bool all = is_count(about_.rounds) && about_.scaled >= 0.0 && finite(about_.scaled) && about_.used >= 0.0 &&
               about_.used <= static_cast<double>(columns_);
    for (std::size_t i = 0; i < scales_.size(); ++i) all = all && finite(scales_.data()[i]);
    for (std::size_t p = 0; p < settings_.count; ++p) all = all && parts_[p].is_valid();
    return all;
  }

 private:
  // The values of a second formula on the grid; 0 without one, and for actions without a value.
  void expect(const OutcomeFormula* formula, const double* expectations, const ContextView& context,
              double* values) const {
    if (formula != nullptr) formula->expect(settings_.actions, points, expectations, context.fields, values);
    for (std::size_t g = 0; g < points; ++g) values[g] = formula != nullptr && values[g] == values[g] ? values[g] : 0.0;
  }

  static constexpr std::uint64_t directions_stream = 96;
  static constexpr double farthest = 4.0;          // standard deviations; outliers are clipped
  static constexpr double most_inherited = 200.0;  // rounds of a sister's scales
  static constexpr double unsure = 5.0;            // rounds after which a standard deviation is known

  // A column of contexts: how often it was there, its moments, and whether it is a number, which is at its mean where a
  // context lacks it.
  struct Column {
    double count, mean, variance, number;
  };

  struct About {
    double rounds = 0.0, used = 0.0, scaled = 0.0;  // rounds, columns, and rounds that the scales know
  };

  // How fast the logarithm of what a part adds to the value rises at a position, per position; 0 if it is not known. If
  // it depends on fields of contexts, nothing is earned at the low end, as by a price that is the cost.
  double slope_at(std::size_t part, double position) const {
    const double step = 0.5 / (points - 1.0),
                 ends[2] = {clip(position - step, 0.0, 1.0), clip(position + step, 0.0, 1.0)};
    double margins[2];
    for (std::size_t i = 0; i < 2; ++i) {
      double parts[PartsSettings::most], values[2];
      const double action = ActionBasis::Place(ends[i]).value(settings_.actions);
      for (std::size_t yes = 0; yes < 2; ++yes) {
        for (std::size_t p = 0; p < settings_.count; ++p) parts[p] = p == part ? static_cast<double>(yes) : 1.0;
        settings_.formula->expect(&action, 1, parts, nullptr, &values[yes]);
      }
      margins[i] = settings_.higher ? values[1] - values[0] : values[0] - values[1];
      if (!(margins[i] == margins[i])) margins[i] = action - settings_.actions[0];
    }
    const double mean = 0.5 * (margins[0] + margins[1]), rise = (margins[1] - margins[0]) / (ends[1] - ends[0]);
    return settings_.count == 1 && mean > 0.0 && rise > 0.0 ? rise / mean : 0.0;
  }

  void start_at(double position) {
    for (std::size_t p = 0; p < settings_.count; ++p) parts_[p].start_at(*basis_, position, slope_at(p, position));
  }

  std::size_t used() const { return static_cast<std::size_t>(about_.used); }
  Column& column(std::size_t index) { return reinterpret_cast<Column*>(scales_.data())[index]; }

  std::size_t prepare() {
    std::size_t total = 0;
    for (std::size_t p = 0; p < settings_.count; ++p) {
      parts_[p] = OutcomePart(settings_.parts[p], columns_, *basis_, has_start() && slope_at(p, settings_.start) != 0.0,
                              settings_.inherits);
      total += parts_[p].numbers();
    }
    return total;
  }

  void hold() {
    double* state = state_.data();
    for (std::size_t p = 0; p < settings_.count; ++p) {
      parts_[p].hold(state);
      state += parts_[p].numbers();
    }
  }

  // Eight points with mean 0; those of any seven neighbouring functions are uncorrelated with variance 1.
  void draw_directions() {
    std::uint64_t next = 0;
    for (std::size_t j = 0; j < ActionBasis::size; ++j) {
      double direction[8], mean = 0.0, square = 0.0;
      for (double& each : direction) each = normal(0, next, directions_stream);
      for (const double each : direction) mean += 0.125 * each;
      for (double& each : direction) each -= mean;
      for (std::size_t other = j / 7 * 7; other < j; ++other) {
        double along = 0.0;
        for (std::size_t i = 0; i < 8; ++i) along += 0.125 * direction[i] * directions_[other][i];
        for (std::size_t i = 0; i < 8; ++i) direction[i] -= along * directions_[other][i];
      }
      for (const double each : direction) square += 0.125 * each * each;
      for (std::size_t i = 0; i < 8; ++i) directions_[j][i] = static_cast<float>(direction[i] / __builtin_sqrt(square));
    }
  }

  // Calls `each(column, value, is_number)` for the columns that a context has.
  template <class Each>
  void visit(const ContextView& context, Each&& each) const {
    for (std::size_t i = 0; i < context.size; ++i) {
      const bool hashed = context.kind == ContextKind::hashed;
      const std::size_t index = hashed ? context.features[i] : i;
      if (index < columns_) each(index, static_cast<double>(context.values[i]), !hashed || i < context.numbers);
    }
  }

  void learn_columns(const ContextView& context) {
    visit(context, [&](std::size_t index, double, bool) {
      if (static_cast<double>(index) >= about_.used) about_.used = static_cast<double>(index + 1);
    });
    visit(context, [&](std::size_t index, double value, bool number) {
      Column& own = column(index);
      if (own.count == 0.0) {
        own.number = number ? 1.0 : 0.0;
        for (std::size_t p = 0; p < settings_.count; ++p) parts_[p].add_column(index, about_.used);
      }
      own.count += 1.0;
      if (!number) return;
      const double rate = 1.0 / own.count, before = value - own.mean;
      own.mean += rate * before;
      own.variance += rate * (before * (value - own.mean) - own.variance);
    });
  }

  void standardise(const ContextView& context, double* z) {
    for (std::size_t i = 0; i < used(); ++i) {
      Column& own = column(i);
      const double share = own.count / (about_.scaled + 1.0);
      z[i] = own.number != 0.0 || own.count == 0.0 ? 0.0 : scaled_indicator(0.0, share);
    }
    visit(context, [&](std::size_t index, double value, bool) {
      Column& own = column(index);
      if (own.count == 0.0) return;
      const double scale = inverse_deviation(own.mean, own.variance) * own.count / (own.count + unsure);
      z[index] = own.number != 0.0 ? clip((value - own.mean) * scale, -farthest, farthest)
                                   : scaled_indicator(value, own.count / (about_.scaled + 1.0));
    });
  }

  static double scaled_indicator(double value, double share) {
    share = clip(share, 0.01, 0.99);
    return clip((value - share) / __builtin_sqrt(share * (1.0 - share)), -farthest, farthest);
  }

  PartsSettings settings_;
  std::size_t columns_;
  const ActionBasis* basis_;  // null without parts, whose agents stay small
  OutcomePart* parts_;
  Buffer<double> scales_, state_;
  About about_;
  float directions_[ActionBasis::size][8];
};

}  // namespace manul::MANUL_SIMD
