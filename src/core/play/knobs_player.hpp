// Decides with several knobs: categories first, then the numbers in the order of the knobs or of the limits, each drawn
// independently from its ladder in what limits leave of its range, so that the density of an action is a product.
// Callers hold a `Busy`.
#pragma once

#include <vector>

#include "knobs/ladder.hpp"
#include "knobs/limits.hpp"
#include "play/base_player.hpp"
#include "play/simulation.hpp"

namespace manul {

class KnobsPlayer : public BasePlayer {
 public:
  // A share `nearby` of the decisions explores near the window.
  KnobsPlayer(KnobsModel* model, const PlayerSettings& settings, std::vector<Knob> knobs, double nearby)
      : BasePlayer(std::unique_ptr<Model>(model), settings), model_(model), knobs_(std::move(knobs)), nearby_(nearby) {
    for (std::size_t k = 0; k < knobs_.size(); ++k)
      if (knobs_[k].kind == KnobKind::choice) order_.push_back(k);
    moving_ = knobs_.size() - order_.size();
    for (std::size_t k = 0; k < knobs_.size(); ++k)
      if (knobs_[k].kind != KnobKind::choice) order_.push_back(k);
  }

  std::size_t size() const { return knobs_.size(); }
  KnobsModel& knobs_model() { return *model_; }

  // Per knob: the position that was drawn, its density in [0, 1] or, for steps and categories, its probability, and a
  // lower bound of the density of any position, whatever the other knobs are set to.
  struct Draw {
    double position;
    double density;
    double floor;
  };

  // Writes what each knob is drawn from to `windows`, unless it is null.
  void decide(const ContextView& context, const KnobRange* ranges, std::uint64_t number, const Limited& limited,
              Draw* draws, double* windows = nullptr) {
    visit(context, ranges, limited, draws, [&](std::size_t k, const KnobRange& range, const KnobWindow& window) {
      if (windows != nullptr) drawn_window(k, range, window).write(windows + DrawnWindow::size * k);
      const Draws random = draw(settings_.exploration.seed, number, first_stream + k);
      return knobs_[k].kind == KnobKind::choice ? draw_category(k, range, window, random)
                                                : draw_position(k, range, window, random);
    });
  }

  // The densities of an action, which any policy may have drawn.
  void densities(const ContextView& context, const KnobRange* ranges, const double* positions, const Limited& limited,
                 Draw* draws) {
    // A path on which limits leave nothing is never drawn: it has the density 0, as `draws` has at first.
    try {
      visit(context, ranges, limited, draws,
            [&](std::size_t k, const KnobRange&, const KnobWindow&) { return positions[k]; });
    } catch (const NothingLeft&) {
    }
  }

  // The positions without exploration: the centres of the windows, or, with limits, the minimum inside them. Before
  // anything is learned, that is the middle of what is left.
  void best(const ContextView& context, const KnobRange* ranges, const Limited& limited, double* positions) {
    double sought[most_knobs];
    const bool known = limited.limits != nullptr && model_->minimum(context, ranges, limited, sought);
    KnobWindow windows[most_knobs];
    if (!known) model_->windows(context, ranges, limited, windows);
    for (std::size_t at = 0; at < size(); ++at) {
      const std::size_t k = limited.knob(at);
      const bool choice = knobs_[k].kind == KnobKind::choice;
      KnobRange left = ranges[k];
      if (!limited.narrow(k, positions, left)) throw_nothing_left(k, positions);
      if (!known) sought[k] = choice ? windows[k].category : windows[k].centre;
      positions[k] = inside(k, left, sought[k]);
    }
  }

  // Given the categories in `positions`: calls `chosen(probability)` for each choice, and `each(k, ladder)` for each
  // other knob.
  template <class Chosen, class Each>
  void visit_distributions(const ContextView& context, const KnobRange* ranges, const double* positions,
                           Chosen&& chosen, Each&& each) {
    Draw draws[most_knobs] = {};
    visit(context, ranges, {}, draws, [&](std::size_t k, const KnobRange& range, const KnobWindow& window) {
      if (knobs_[k].kind == KnobKind::choice) {
        chosen(probability(static_cast<std::uint32_t>(positions[k]), range, window));
        return positions[k];
      }
      each(k, ladder(range, window));
      return window.centre;
    });
  }

  void windows(const ContextView& context, const KnobRange* ranges, KnobWindow* windows) {
    model_->windows(context, ranges, {}, windows);
  }

  // `density` is relative to the uniform density.
  void learn(const ContextView& context, const double* positions, double density, double loss,
             const double* parts = nullptr, bool judged = false) {
    model_->learn(context, positions, {0.0, density, scaled_loss(loss, settings_.losses), {}, parts, judged});
    ++learned;
  }

  void check_positions(const double* positions) const {
    for (std::size_t k = 0; k < size(); ++k)
      if (!(positions[k] >= 0.0 && positions[k] <= largest_position(k))) throw Rejected();
  }

  void check(const double* positions, double density, double loss, const double* parts = nullptr) const {
    check_positions(positions);
    if (parts != nullptr && !settings_.outcome.allows(parts)) throw Rejected();
    if (!(density >= least_density && density <= largest_density)) throw Rejected();
    if (!(loss >= settings_.losses.low && loss <= settings_.losses.high && std::isfinite(loss))) throw Rejected();
  }

  // Ranges that leave at least one position and one category.
  void check(const KnobRange* ranges) const {
    for (std::size_t k = 0; k < size(); ++k) check(k, ranges[k]);
  }

  template <class Each>
  void visit_contexts(const Rows& rows, Each&& each) {
    check_contexts(rows);
    for (std::size_t i = 0; i < rows.count; ++i) each(i, context(rows, i));
  }

  // The distribution of a knob inside a range.
  Ladder ladder(const KnobRange& range, const KnobWindow& window) const {
    return {range.low, range.high, window, exploring_per_knob(nearby_, window.exploring(epsilon()), moving_)};
  }

  // The probability of each category: the best one, or all alike, have what exploration leaves.
  double probability(std::uint32_t category, const KnobRange& range, const KnobWindow& window) const {
    if ((range.allowed >> category & 1u) == 0) return 0.0;
    const double spread = explored_categories(window) / __builtin_popcount(range.allowed);
    return spread + (category == window.category ? 1.0 - explored_categories(window) : 0.0);
  }

 private:
  static constexpr std::uint64_t first_stream = 256;  // of random numbers, one per knob
  static constexpr double narrowest = 1e-9;           // a share of a range; as NARROWEST in manul/actions/ranges.py

  [[noreturn]] void throw_nothing_left(std::size_t k, const double* positions) const {
    throw NothingLeft{k, {positions, positions + size()}};
  }

  // The position in a range that is nearest to the one sought, or an allowed category.
  double inside(std::size_t k, const KnobRange& range, double sought) const {
    if (knobs_[k].kind == KnobKind::choice) {
      const bool allowed = (range.allowed >> static_cast<std::uint32_t>(sought) & 1u) != 0;
      return allowed ? sought : __builtin_ctz(range.allowed);
    }
    const double inset = knobs_[k].kind == KnobKind::steps ? 0.5 / knobs_[k].count : 0.0;
    return MANUL_SIMD::clip(sought, range.low + inset, MANUL_SIMD::larger(range.low + inset, range.high - inset));
  }

  double largest_position(std::size_t k) const {
    return knobs_[k].kind == KnobKind::choice ? static_cast<double>(knobs_[k].count - 1) : 1.0;
  }

  void check(std::size_t k, const KnobRange& range) const {
    if (knobs_[k].kind == KnobKind::choice) {
      if (range.allowed == 0 || (knobs_[k].count < 32 && range.allowed >> knobs_[k].count != 0)) throw Rejected();
    } else if (!(range.low >= 0.0 && range.high <= 1.0 && range.low < range.high)) {
      throw Rejected();
    }
  }

  // Visits the knobs in the order of drawing; `pick` returns the position of a knob. After a category that is not the
  // planned one, or if the planned one is not allowed, the windows are planned again for what is left.
  template <class Pick>
  void visit(const ContextView& context, const KnobRange* ranges, const Limited& limited, Draw* draws, Pick&& pick) {
    KnobRange left[most_knobs];
    KnobWindow planned[most_knobs] = {};
    double positions[most_knobs] = {};
    for (std::size_t k = 0; k < size(); ++k) left[k] = ranges[k];
    bool plan = true;
    for (std::size_t at = 0; at < size(); ++at) {
      const std::size_t k = limited.limits == nullptr ? order_[at] : limited.knob(at);
      const bool choice = knobs_[k].kind == KnobKind::choice;
      if (!limited.narrow(k, positions, left[k]) || !(choice || left[k].high - left[k].low >= narrowest))
        throw_nothing_left(k, positions);
      if (plan || (choice && (left[k].allowed >> planned[k].category & 1u) == 0)) {
        model_->windows(context, left, limited, planned);
        plan = false;
      }
      draws[k].position = positions[k] = pick(k, left[k], planned[k]);
      measure(k, left[k], planned[k], draws[k]);
      draws[k].floor = floor(k, ranges[k], left[k], planned[k], limited.limits != nullptr);
      if (!choice) continue;
      const auto category = static_cast<std::uint32_t>(draws[k].position);
      plan = !planned[k].uniform && category != planned[k].category && draws[k].density > 0.0;
      left[k].allowed = 1u << category;
    }
  }

  void measure(std::size_t k, const KnobRange& range, const KnobWindow& window, Draw& draw) const {
    if (knobs_[k].kind == KnobKind::choice) {
      draw.density = probability(static_cast<std::uint32_t>(draw.position), range, window);
      return;
    }
    const Ladder ladder = this->ladder(range, window);
    if (knobs_[k].kind == KnobKind::number) {
      draw.density = ladder.density(draw.position);
      return;
    }
    const double step = cell(k, draw.position), count = knobs_[k].count;
    draw.density = ladder.mass(step / count, (step + 1.0) / count);
  }

  // The floor holds for all draws of the other knobs: limits may leave other parts of the `whole` range than the one
  // `left`, and other categories come with other windows, so that then only what explores anywhere is certain.
  double floor(std::size_t k, const KnobRange& whole, const KnobRange& left, const KnobWindow& window,
               bool is_limited) const {
    if (knobs_[k].kind == KnobKind::choice) return explored_categories(window) / __builtin_popcount(whole.allowed);
    const double length = whole.high - whole.low;
    double least = exploring_per_knob(nearby_, window.exploring(epsilon()), moving_).anywhere / length;
    if (window.uniform)
      least = ladder(left, window).floor() * ((left.high - left.low) / length);
    else if (moving_ == size() && !is_limited)
      least = ladder(whole, window).floor();
    return knobs_[k].kind == KnobKind::number ? least : least / knobs_[k].count;
  }

  // The number of the step whose cell has this position.
  double cell(std::size_t k, double position) const {
    const double step = __builtin_floor(position * knobs_[k].count);
    return MANUL_SIMD::clip(step, 0.0, static_cast<double>(knobs_[k].count - 1));
  }

  DrawnWindow drawn_window(std::size_t k, const KnobRange& range, const KnobWindow& window) const {
    if (knobs_[k].kind == KnobKind::choice) {
      const double category = window.category;
      return {category, category + 1.0, 0.0, explored_categories(window)};
    }
    const Ladder ladder = this->ladder(range, window);
    const Exploring exploring = exploring_per_knob(nearby_, window.exploring(epsilon()), moving_);
    return {ladder.low(0), ladder.high(0), exploring.nearby, exploring.anywhere};
  }

  double draw_position(std::size_t k, const KnobRange& range, const KnobWindow& window, const Draws& random) const {
    const double position = ladder(range, window).at(random.first, random.second);
    if (knobs_[k].kind == KnobKind::number) return position;
    const double count = knobs_[k].count, last = __builtin_floor(range.high * count - 0.5);
    return (MANUL_SIMD::clip(cell(k, position), __builtin_floor(range.low * count + 0.5), last) + 0.5) / count;
  }

  // Twice epsilon, because half of the exploration of a choice between two draws the best one.
  double explored_categories(const KnobWindow& window) const {
    return window.uniform ? 1.0 : MANUL_SIMD::smaller(1.0, 2.0 * epsilon());
  }

  double draw_category(std::size_t k, const KnobRange& range, const KnobWindow& window, const Draws& random) const {
    if (random.first >= explored_categories(window)) return window.category;
    auto left = static_cast<int>(random.second * __builtin_popcount(range.allowed));
    std::uint32_t category = 0;
    for (; category + 1 < knobs_[k].count; ++category) {
      if ((range.allowed >> category & 1u) == 0) continue;
      if (left-- == 0) break;
    }
    return category;
  }

  KnobsModel* model_;  // owned by the base class
  std::vector<Knob> knobs_;
  std::vector<std::size_t> order_;
  std::size_t moving_;  // knobs that are not choices
  double nearby_;
};

}  // namespace manul
