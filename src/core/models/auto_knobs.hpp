// Auto for several knobs: the critic of `auto.hpp` with one column of actions per knob (a choice: one per category),
// whose minimum is sought by descent from many points.
//
// The search starts from a low-discrepancy sequence (Roberts' R-sequence) and from the latest actions, and depends on
// what was learned only, so a decision can be repeated. With limits, it starts inside them, each step is projected into
// them, and the minimum is moved along them.
#pragma once

#include "critic/loss_learner.hpp"
#include "critic/surface.hpp"
#include "models/settings.hpp"
#include "models/start.hpp"
#include "parts/formula_play.hpp"

namespace manul::MANUL_SIMD {

class AutoKnobsModel final : public LossLearnerModel<KnobsModel> {
 public:
  explicit AutoKnobsModel(const AutoKnobsSettings& settings)
      : LossLearnerModel(settings.width, settings.features, columns_of(settings), false, settings.unknown_losses,
                         settings.seed, settings.early),
        seed_(settings.seed), count_(settings.count), columns_(0), moving_(0), surface_(columns_of(settings)),
        formula_(settings.parts, settings.width, settings.features > 0) {
    for (std::size_t k = 0; k < count_; ++k) {
      knobs_[k] = settings.knobs[k];
      first_column_[k] = columns_;
      columns_ += knobs_[k].columns();
      moving_ += knobs_[k].kind != KnobKind::choice;
      starts_[k] = settings.starts == nullptr ? none : settings.starts[k];
      if (starts_[k] >= 0.0) learner_.take_start();
    }
    place_steps();
  }

  void windows(const ContextView& context, const KnobRange* ranges, const Limited& limited,
               KnobWindow* windows) override {
    double values[FormulaPlay::points];
    if (predict(context, values)) {
      const Window found = formula_.window(values, {ranges[0].low, ranges[0].high});
      windows[0] = {found.centre, found.bandwidth, 0, false, found.most_exploring};
      return;
    }
    if (formula_.starts()) {
      const double half = smaller(formula_.start_width, 0.5 * (ranges[0].high - ranges[0].low));
      windows[0] = {clip(formula_.start(), ranges[0].low + half, ranges[0].high - half), half, 0, false};
      return;
    }
    KnobRange near[most_knobs];
    if (!learner_.is_warm() || formula_.explores()) return start_windows(ranges, windows);
    learner_.look(context, surface_.early());
    if (is_near_start(ranges, near) && find_windows(near, limited, windows)) return;
    if (!find_windows(ranges, limited, windows)) start_windows(ranges, windows);
  }

  bool minimum(const ContextView& context, const KnobRange* ranges, const Limited& limited,
               double* positions) override {
    double values[FormulaPlay::points];
    if (predict(context, values)) {
      KnobRange left = ranges[0];
      if (!limited.narrow(0, positions, left)) return false;
      positions[0] = formula_.window(values, {left.low, left.high}).centre;
      return true;
    }
    KnobRange near[most_knobs];
    if (!learner_.is_warm()) return false;
    learner_.look(context, surface_.early());
    return (is_near_start(ranges, near) && find_positions(near, limited, positions)) ||
           find_positions(ranges, limited, positions);
  }

  void learn(const ContextView& context, const double* positions, const Outcome& outcome) override {
    double columns[most_action_columns];
    if (!formula_.empty()) learn_parts(context, positions[0], outcome);
    for (std::size_t k = 0; k < count_; ++k) write_columns(k, positions[k], columns);
    learner_.learn(context, columns, outcome.density, outcome.loss);
  }

  void predict(const ContextView& context, const double* positions, std::size_t count, double* losses) override {
    double values[FormulaPlay::points];
    if (!predict(context, values)) return predict_losses(context, positions, count, losses);
    for (std::size_t i = 0; i < count; ++i)
      losses[i] = formula_.scaled_loss(ActionBasis::Place(positions[i]).value(values));
  }

  FormulaReport formula_report() const override { return formula_.report(); }

  CriticReport report() const override {
    CriticReport all = learner_.report();
    if (formula_.leads()) all.bandwidth = formula_.bandwidth();
    return all;
  }

  double age(double rounds) const override { return formula_.age(LossLearnerModel::age(rounds)); }
  double exploring() const override { return formula_.leads() ? 1.0 : LossLearnerModel::exploring(); }
  bool inherit(const KnobsModel& sister) override {
    return formula_.inherit(static_cast<const AutoKnobsModel&>(sister).formula_);
  }

  void resume() override {
    LossLearnerModel::resume();
    formula_.resume();
  }

  bool is_valid() const override { return LossLearnerModel::is_valid() && formula_.is_valid(); }
  std::size_t arrays() const override { return LossLearnerModel::arrays() + formula_.arrays(); }
  Array array(std::size_t index) override {
    const std::size_t own = LossLearnerModel::arrays();
    return index < own ? LossLearnerModel::array(index) : formula_.array(index - own);
  }
  void fit(std::size_t index, std::size_t size) override {
    if (index < LossLearnerModel::arrays()) LossLearnerModel::fit(index, size);
  }

 private:
  // The values of the formula on its grid; false if there are none.
  bool predict(const ContextView& context, double* values) {
    const auto critic = [&](const double* positions, double* losses) {
      if (learner_.is_warm()) predict_losses(context, positions, FormulaPlay::points, losses);
      return learner_.is_warm();
    };
    return formula_.leads() && formula_.predict(context, critic, values);
  }

  void learn_parts(const ContextView& context, double position, const Outcome& outcome) {
    double critic = __builtin_nan("");
    if (outcome.parts != nullptr && learner_.is_warm()) predict_losses(context, &position, 1, &critic);
    formula_.learn(context, position, outcome, critic);
  }

  // The losses that the critic predicts.
  void predict_losses(const ContextView& context, const double* positions, std::size_t count, double* losses) {
    learner_.look(context, surface_.early());
    SearchBox box;
    for (std::size_t c = 0; c < columns_; ++c) box.low[c] = 0.0f, box.high[c] = 1.0f, box.fixed[c] = false;
    surface_.look(learner_.critic().ensemble(), box, 0.0f);
    surface_.smooth(nullptr);
    for (std::size_t first = 0; first < count; first += points) {
      float group[most_action_columns * points] = {}, predicted[points];
      for (std::size_t i = 0; i < points && first + i < count; ++i) {
        double columns[most_action_columns];
        for (std::size_t k = 0; k < count_; ++k) write_columns(k, positions[(first + i) * count_ + k], columns);
        for (std::size_t c = 0; c < columns_; ++c) group[c * points + i] = static_cast<float>(columns[c]);
      }
      surface_.evaluate(group, predicted, nullptr);
      for (std::size_t i = 0; i < points && first + i < count; ++i)
        losses[first + i] = learner_.replay().original(predicted[i]);
    }
  }

  static constexpr std::size_t groups = 3, recent = 8;  // of starting points: the latest actions are among them
  static constexpr std::size_t steps = 16, fine_steps = 8;
  static constexpr std::size_t attempts = 4;  // from other points, for the one action that is not explored around
  static constexpr std::size_t rounds_along_limits = 8;  // each tries steps of several lengths
  static constexpr std::uint64_t search_stream = 64;     // of random numbers, one per knob

  static std::size_t columns_of(const AutoKnobsSettings& settings) {
    std::size_t total = 0;
    for (std::size_t k = 0; k < settings.count; ++k) total += settings.knobs[k].columns();
    return total;
  }

  // The steps of the R-sequence are the powers of 1 / x, where x^(n + 1) = x + 1 for n knobs. The first step of a
  // descent is half the distance between 32 points that fill the space evenly.
  void place_steps() {
    double x = 2.0;
    for (int i = 0; i < 64; ++i) {
      double power = x;
      for (std::size_t k = 0; k < count_; ++k) power *= x;
      x -= (power - x - 1.0) / (static_cast<double>(count_ + 1) * power / x - 1.0);
    }
    double step = 1.0;
    for (std::size_t k = 0; k < count_; ++k) sequence_[k] = step /= x;
    double distance = 0.5;  // 32^(-1/n): the n-th root of 1 / 32 by bisection
    double low = 0.0, high = 1.0;
    for (int i = 0; i < 60; ++i) {
      distance = 0.5 * (low + high);
      double power = 1.0;
      for (std::size_t k = 0; k < moving_; ++k) power *= distance;
      (power < 1.0 / 32.0 ? low : high) = distance;
    }
    first_step_ = static_cast<float>(smaller(0.25, 0.5 * distance));
  }

  // The windows inside the ranges in the context of `look`; returns false if limits leave nothing.
  bool find_windows(const KnobRange* ranges, const Limited& limited, KnobWindow* windows) {
    const SearchBox box = search_box(ranges);
    const double h = learner_.bandwidth(__builtin_sqrt(__builtin_sqrt(static_cast<double>(moving_))));
    float widths[most_action_columns], centre[most_action_columns];
    set_widths(ranges, h, widths);
    surface_.look(learner_.critic().ensemble(), box, static_cast<float>(h));
    surface_.smooth(widths);
    if (!find_minimum(ranges, box, limited, centre)) return false;
    if (narrow(box, widths, centre)) refine(ranges, box, limited, h, widths, centre);
    for (std::size_t k = 0; k < count_; ++k) windows[k] = window(k, ranges[k], centre, widths);
    return true;
  }

  bool find_positions(const KnobRange* ranges, const Limited& limited, double* positions) {
    const SearchBox box = search_box(ranges);
    float centre[most_action_columns], group[most_action_columns * points] = {};
    surface_.look(learner_.critic().ensemble(), box, 0.0f);
    surface_.smooth(nullptr);
    float lowest = __builtin_inff();
    for (std::size_t attempt = 0; attempt < attempts; ++attempt) {
      float losses[points];
      if (!find_minimum(ranges, box, limited, centre, attempt * groups * points)) continue;
      refine(ranges, box, limited, learner_.bandwidth(), nullptr, centre);
      for (std::size_t c = 0; c < columns_; ++c)
        for (std::size_t i = 1; i < points; ++i) group[c * points + i] = centre[c];
      surface_.evaluate(group, losses, nullptr);
      if (!(losses[1] < lowest)) continue;
      lowest = losses[1];
      for (std::size_t c = 0; c < columns_; ++c) group[c * points] = centre[c];
    }
    if (!(lowest < __builtin_inff())) return false;
    for (std::size_t k = 0; k < count_; ++k) positions[k] = position(k, group, 0);
    return true;
  }

  static std::uint32_t first_allowed(const KnobRange& range) {
    return static_cast<std::uint32_t>(__builtin_ctz(range.allowed));
  }

  void start_windows(const KnobRange* ranges, KnobWindow* windows) const {
    for (std::size_t k = 0; k < count_; ++k) {
      const KnobRange range = near_start(k, ranges[k]);
      const bool starts = starts_[k] >= 0.0;
      if (knobs_[k].kind == KnobKind::choice) {
        const auto category = static_cast<std::uint32_t>(starts ? starts_[k] : 0.0);
        const bool allowed = starts && (range.allowed >> category & 1u) != 0;
        windows[k] = {0.0, 0.0, allowed ? category : first_allowed(range), !allowed};
      } else {
        windows[k] = {0.5 * (range.low + range.high), 0.5 * (range.high - range.low), 0, !starts};
      }
    }
  }

  // What windows may use of a knob in the rounds after a start: whole cells of steps, and any category.
  KnobRange near_start(std::size_t k, const KnobRange& range) const {
    if (!(starts_[k] >= 0.0) || knobs_[k].kind == KnobKind::choice) return range;
    Range part = MANUL_SIMD::near_start({range.low, range.high}, starts_[k], learner_.reach());
    if (knobs_[k].kind == KnobKind::steps) {
      const double count = knobs_[k].count;
      part.low = larger(range.low, __builtin_floor(part.low * count) / count);
      part.high = smaller(range.high, __builtin_ceil(part.high * count) / count);
    }
    return {part.low, part.high, range.allowed};
  }

  // Narrows the ranges so; returns whether any is narrower.
  bool is_near_start(const KnobRange* ranges, KnobRange* near) const {
    bool narrower = false;
    for (std::size_t k = 0; k < count_; ++k) {
      near[k] = near_start(k, ranges[k]);
      narrower = narrower || near[k].low > ranges[k].low || near[k].high < ranges[k].high;
    }
    return narrower;
  }

  void write_columns(std::size_t k, double position, double* columns) const {
    if (knobs_[k].kind != KnobKind::choice) {
      columns[first_column_[k]] = position;
      return;
    }
    for (std::size_t category = 0; category < knobs_[k].count; ++category)
      columns[first_column_[k] + category] = static_cast<double>(category) == position ? 1.0 : 0.0;
  }

  SearchBox search_box(const KnobRange* ranges) const {
    SearchBox box;
    for (std::size_t k = 0; k < count_; ++k) set_ends(k, ranges[k], box);
    return box;
  }

  // Steps are sought between the middles of the first and the last cell.
  void set_ends(std::size_t k, const KnobRange& range, SearchBox& box) const {
    const bool choice = knobs_[k].kind == KnobKind::choice;
    const double inset = knobs_[k].kind == KnobKind::steps ? 0.5 / knobs_[k].count : 0.0;
    for (std::size_t c = first_column_[k]; c < first_column_[k] + knobs_[k].columns(); ++c) {
      box.low[c] = choice ? 0.0f : static_cast<float>(range.low + inset);
      box.high[c] = choice ? 1.0f : static_cast<float>(range.high - inset);
      box.fixed[c] = choice;
    }
  }

  // The half-widths of the windows, by columns; 0 for categories.
  void set_widths(const KnobRange* ranges, double h, float* widths) const {
    for (std::size_t c = 0; c < columns_; ++c) widths[c] = 0.0f;
    for (std::size_t k = 0; k < count_; ++k)
      if (knobs_[k].kind != KnobKind::choice)
        widths[first_column_[k]] = static_cast<float>(smaller(h, 0.5 * (ranges[k].high - ranges[k].low)));
  }

  // Where the sequence starts in this round.
  void draw_shifts(double* shifts) const {
    const auto round = static_cast<std::uint64_t>(learner_.replay().rounds());
    for (std::size_t k = 0; k < count_; ++k) shifts[k] = draw(seed_, round, search_stream + k).first;
  }

  // Puts point `n` of the sequence into place `i` of a group; returns false if limits leave nothing there.
  bool place(std::size_t n, const double* shifts, const KnobRange* ranges, const SearchBox& box, const Limited& limited,
             float* group, std::size_t i) const {
    double shares[most_knobs];
    for (std::size_t k = 0; k < count_; ++k) {
      const double turned = shifts[k] + static_cast<double>(n) * sequence_[k];
      shares[k] = turned - __builtin_floor(turned);
      if (limited.limits == nullptr) place(k, shares[k], ranges[k], box, group, i);
    }
    return visit_inside(ranges, limited, group, i, [&](std::size_t k, const KnobRange& range, const SearchBox& left) {
      place(k, shares[k], range, left, group, i);
    });
  }

  // Sets each knob of point `i` of a group, in the order of the limits, by `set(k, range, box)`, given what the limits
  // leave of it; returns false if they leave nothing, or not the category that is set. Does nothing without limits.
  template <class Set>
  bool visit_inside(const KnobRange* ranges, const Limited& limited, const float* group, std::size_t i,
                    Set&& set) const {
    double positions[most_knobs] = {};
    SearchBox left;
    for (std::size_t at = 0; limited.limits != nullptr && at < count_; ++at) {
      const std::size_t k = limited.knob(at);
      KnobRange range = ranges[k];
      if (!limited.narrow(k, positions, range)) return false;
      set_ends(k, range, left);
      set(k, range, left);
      positions[k] = position(k, group, i);
      if (knobs_[k].kind == KnobKind::choice && (range.allowed >> static_cast<unsigned>(positions[k]) & 1u) == 0)
        return false;
    }
    return true;
  }

  // The position of a knob of point `i` of a group, or the number of its category.
  double position(std::size_t k, const float* group, std::size_t i) const {
    if (knobs_[k].kind != KnobKind::choice) return group[first_column_[k] * points + i];
    std::size_t category = 0;
    while (category + 1 < knobs_[k].count && group[(first_column_[k] + category) * points + i] != 1.0f) ++category;
    return static_cast<double>(category);
  }

  // Moves the numbers of point `i` of a group into the limits, which must allow its categories.
  bool project(const KnobRange* ranges, const Limited& limited, float* group, std::size_t i) const {
    return visit_inside(ranges, limited, group, i, [&](std::size_t k, const KnobRange&, const SearchBox& left) {
      const std::size_t c = first_column_[k];
      float& moved = group[c * points + i];
      if (!left.fixed[c]) moved = static_cast<float>(clip(moved, left.low[c], left.high[c]));
    });
  }

  struct InsideLimits {
    static constexpr bool is_whole = false;
    const AutoKnobsModel& model;
    const KnobRange* ranges;
    const Limited& limited;
    bool operator()(float* actions, std::size_t i) const { return model.project(ranges, limited, actions, i); }
  };

  // As `Surface::descend`, inside the limits.
  float descend(const KnobRange* ranges, const SearchBox& box, const Limited& limited, float first, std::size_t count,
                float* group, float* centre) const {
    if (limited.limits == nullptr) return surface_.descend(group, box, first, count, centre);
    const float lowest = surface_.descend(group, box, first, count, centre, InsideLimits{*this, ranges, limited});
    follow_limits(ranges, limited, first, centre);
    return lowest;
  }

  // The middle of the cell of a position.
  double middle(std::size_t k, double position) const {
    const double count = knobs_[k].count;
    return (clip(__builtin_floor(position * count), 0.0, count - 1.0) + 0.5) / count;
  }

  // Moves the minimum along limits, and to a step. A descent cannot: if one knob moves, the limit of another one moves
  // with it, which slopes do not know. So knobs are tried one by one, while the others keep their shares of what is
  // left of them.
  void follow_limits(const KnobRange* ranges, const Limited& limited, float length, float* centre) const {
    const std::size_t ways = 2 * moving_;
    double shares[most_knobs] = {};
    float group[most_action_columns * points], losses[points], lowest = __builtin_inff();
    for (std::size_t round = 0; ways > 0 && round < rounds_along_limits * (1 + ways / points); ++round) {
      for (std::size_t c = 0; c < columns_; ++c)
        for (std::size_t i = 0; i < points; ++i) group[c * points + i] = centre[c];
      visit_inside(ranges, limited, group, 0, [&](std::size_t k, const KnobRange&, const SearchBox& left) {
        const std::size_t c = first_column_[k];
        const double size = left.high[c] - left.low[c];
        if (!left.fixed[c]) shares[k] = size > 0.0 ? (centre[c] - left.low[c]) / size : 0.5;
      });
      bool inside[points];
      for (std::size_t i = 0; i < points; ++i) {
        const std::size_t way = (i + round * points) % ways;
        const bool stays = round == 0 && i == 0;
        const double by = stays ? 0.0 : (way % 2 == 0 ? length : -length) / static_cast<double>(1u << 2 * (i / ways));
        std::size_t turn = 0;
        inside[i] =
            visit_inside(ranges, limited, group, i, [&](std::size_t k, const KnobRange&, const SearchBox& left) {
              const std::size_t c = first_column_[k];
              if (left.fixed[c]) return;
              const double share = clip(shares[k] + (turn++ == way / 2 ? by : 0.0), 0.0, 1.0);
              const double moved = left.low[c] + share * (left.high[c] - left.low[c]);
              group[c * points + i] = static_cast<float>(knobs_[k].kind == KnobKind::steps ? middle(k, moved) : moved);
            });
      }
      surface_.evaluate(group, losses, nullptr);
      std::size_t best = points;
      for (std::size_t i = 0; i < points; ++i)
        if (inside[i] && losses[i] < lowest) lowest = losses[i], best = i;
      if (best == points) length *= 0.25f;
      for (std::size_t c = 0; best < points && c < columns_; ++c) centre[c] = group[c * points + best];
    }
  }

  void place(std::size_t k, double share, const KnobRange& range, const SearchBox& box, float* group,
             std::size_t i) const {
    const std::size_t c = first_column_[k];
    if (knobs_[k].kind != KnobKind::choice) {
      group[c * points + i] = box.low[c] + static_cast<float>(share) * (box.high[c] - box.low[c]);
      return;
    }
    const auto allowed = static_cast<std::size_t>(__builtin_popcount(range.allowed));
    auto left = static_cast<std::size_t>(share * static_cast<double>(allowed));
    for (std::size_t category = 0; category < knobs_[k].count; ++category) {
      const bool possible = (range.allowed >> category & 1u) != 0;
      group[(c + category) * points + i] = possible && left == 0 ? 1.0f : 0.0f;
      left -= possible;
    }
  }

  // Puts an action of the past into a group, moved into the box; returns whether it has one allowed category per
  // choice, as all actions have unless a file was forged.
  bool place_past(std::size_t age, const KnobRange* ranges, const SearchBox& box, float* group, std::size_t i) const {
    const float* action = learner_.replay().action(learner_.replay().slot(age));
    for (std::size_t k = 0; k < count_; ++k) {
      std::size_t categories = 0;
      for (std::size_t j = 0; j < knobs_[k].columns(); ++j) {
        const std::size_t c = first_column_[k] + j;
        categories += box.fixed[c] && action[c] == 1.0f && (ranges[k].allowed >> j & 1u) != 0;
        group[c * points + i] = static_cast<float>(clip(action[c], box.low[c], box.high[c]));
      }
      if (knobs_[k].kind == KnobKind::choice && categories != 1) return false;
    }
    return true;
  }

  // Seeks from the points of the sequence after the `first`; returns false if none is inside the limits.
  bool find_minimum(const KnobRange* ranges, const SearchBox& box, const Limited& limited, float* centre,
                    std::size_t first = 0) const {
    struct Start {
      float loss;
      std::uint16_t place;
      bool operator>(const Start& other) const {
        return loss > other.loss || (loss == other.loss && place > other.place);
      }
    };
    float starts[groups][most_action_columns * points], chosen[most_action_columns * points];
    Start order[groups * points];
    bool inside[groups * points];
    std::size_t possible = 0;
    double shifts[most_knobs];
    draw_shifts(shifts);
    for (std::size_t n = 0; n < groups * points; ++n) {
      float* group = starts[n / points];
      const std::size_t i = n % points;
      const bool past = n < recent && n < learner_.replay().rounds();
      inside[n] = past && place_past(n, ranges, box, group, i) && project(ranges, limited, group, i);
      if (!inside[n]) inside[n] = place(first + n, shifts, ranges, box, limited, group, i);
      for (std::size_t c = 0; !inside[n] && c < columns_; ++c) group[c * points + i] = 0.0f;
      possible += inside[n];
    }
    if (possible == 0) return false;
    for (std::size_t g = 0; g < groups; ++g) {
      float losses[points];
      surface_.evaluate(starts[g], losses, nullptr);
      for (std::size_t i = 0; i < points; ++i)
        order[g * points + i] = {inside[g * points + i] ? losses[i] : __builtin_inff(),
                                 static_cast<std::uint16_t>(g * points + i)};
    }
    sort(order, groups * points);
    for (std::size_t i = 0; i < points; ++i) {
      const std::size_t from = order[i < possible ? i : 0].place;
      for (std::size_t c = 0; c < columns_; ++c)
        chosen[c * points + i] = starts[from / points][c * points + from % points];
    }
    descend(ranges, box, limited, first_step_, steps, chosen, centre);
    return true;
  }

  // Narrows the windows of knobs in which the predicted loss is steep: on steeper sides the same noise corresponds to a
  // smaller distance, so a narrower window is as informative. Returns whether any was narrowed.
  bool narrow(const SearchBox& box, float* widths, const float* centre) {
    static constexpr float offsets[] = {-0.75f, -0.25f, 0.25f, 0.75f};
    constexpr std::size_t per_group = points / 4;
    surface_.smooth(nullptr);
    std::size_t moving[most_knobs], count = 0;
    for (std::size_t c = 0; c < columns_; ++c)
      if (!box.fixed[c] && widths[c] > 0.0f) moving[count++] = c;
    bool narrowed = false;
    for (std::size_t first = 0; first < count; first += per_group) {
      float group[most_action_columns * points], losses[points];
      const std::size_t size = count - first < per_group ? count - first : per_group;
      for (std::size_t c = 0; c < columns_; ++c)
        for (std::size_t i = 0; i < points; ++i) group[c * points + i] = centre[c];
      for (std::size_t i = 0; i < 4 * size; ++i) {
        const std::size_t c = moving[first + i / 4];
        group[c * points + i] =
            static_cast<float>(clip(centre[c] + offsets[i % 4] * widths[c], box.low[c], box.high[c]));
      }
      surface_.evaluate(group, losses, nullptr);
      for (std::size_t n = 0; n < size; ++n) {
        const float* around = losses + 4 * n;
        float& width = widths[moving[first + n]];
        const double rise = (around[0] + around[3] - around[1] - around[2]) / width;
        const double narrow = larger(LossLearner::narrowest, width / larger(1.0, rise));
        narrowed = narrowed || narrow < width;
        width = static_cast<float>(smaller(width, narrow));
      }
    }
    return narrowed;
  }

  // Seeks the minimum again near the centre, averaged over narrower windows.
  void refine(const KnobRange* ranges, const SearchBox& whole, const Limited& limited, double h, const float* widths,
              float* centre) {
    SearchBox box = whole;
    float group[most_action_columns * points];
    for (std::size_t c = 0; c < columns_; ++c) {
      if (whole.fixed[c]) continue;
      box.low[c] = static_cast<float>(larger(whole.low[c], centre[c] - h));
      box.high[c] = static_cast<float>(smaller(whole.high[c], centre[c] + h));
    }
    for (std::size_t i = 0; i < points; ++i) {
      for (std::size_t k = 0; k < count_; ++k)
        if (knobs_[k].kind != KnobKind::choice && i > 0) {
          const double turned = 0.5 + static_cast<double>(i) * sequence_[k];
          place(k, turned - __builtin_floor(turned), {}, box, group, i);
        } else {
          for (std::size_t c = first_column_[k]; c < first_column_[k] + knobs_[k].columns(); ++c)
            group[c * points + i] = centre[c];
        }
      if (project(ranges, limited, group, i)) continue;
      for (std::size_t c = 0; c < columns_; ++c) group[c * points + i] = centre[c];
    }
    surface_.smooth(widths);
    descend(ranges, box, limited, static_cast<float>(0.25 * h), fine_steps, group, centre);
  }

  KnobWindow window(std::size_t k, const KnobRange& range, const float* centre, const float* widths) const {
    const std::size_t c = first_column_[k];
    if (knobs_[k].kind == KnobKind::choice) {
      std::uint32_t category = 0;
      while (category + 1 < knobs_[k].count && centre[c + category] != 1.0f) ++category;
      const bool allowed = (range.allowed >> category & 1u) != 0;  // unless the file was forged
      return {0.0, 0.0, allowed ? category : first_allowed(range), false};
    }
    const double half = smaller(widths[c], 0.5 * (range.high - range.low));
    return {clip(centre[c], range.low + half, range.high - half), half, 0, false};
  }

  std::uint64_t seed_;
  Knob knobs_[most_knobs];
  std::size_t count_, columns_, moving_, first_column_[most_knobs];
  double sequence_[most_knobs];
  double starts_[most_knobs];  // positions or categories, or not numbers
  float first_step_;
  Surface surface_;
  FormulaPlay formula_;  // of one knob
};

}  // namespace manul::MANUL_SIMD
