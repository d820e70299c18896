// Smoothing and epsilon-greedy exploration: the distribution, draws and densities of a window.
#pragma once

#include <vector>

#include "knobs/ladder.hpp"
#include "models/policy_model.hpp"
#include "numerics/random.hpp"
#include "tree/geometry.hpp"

namespace manul {

// The expected action and its expected square.
struct Moments {
  double mean;
  double square;
};

inline Moments uniform_moments(Range range) {
  const double low = range.low, high = range.high;
  return {(low + high) / 2.0, (low * low + low * high + high * high) / 3.0};
}

// Uniform on the range with weight epsilon, uniform on the window with the rest.
struct Mixture {
  Range within;
  Range window;
  double outside;
  double inside;

  Mixture(Window played, double epsilon, Range range)
      : within(range), window{played.centre - played.bandwidth, played.centre + played.bandwidth},
        outside(epsilon / (range.high - range.low)), inside(outside + (1.0 - epsilon) / (2.0 * played.bandwidth)) {
    if (window.low < within.low) window.low = within.low;
    if (window.high > within.high) window.high = within.high;
  }

  double density(double action) const { return action >= window.low && action <= window.high ? inside : outside; }

  // The smallest density of the range.
  double floor() const { return window.low <= within.low && window.high >= within.high ? inside : outside; }

  Moments moments(double epsilon) const {
    const Moments all = uniform_moments(within), played = uniform_moments(window);
    return {epsilon * all.mean + (1.0 - epsilon) * played.mean, epsilon * all.square + (1.0 - epsilon) * played.square};
  }
};

// `floor` is the smallest density of any action of the range; the ends of `window` are NaN if it is an atom.
struct Decision {
  double action;
  double density;
  double floor;
  DrawnWindow window;
};

struct SchedulePoint {
  double rounds;
  double epsilon;
};

// Epsilon after `age` rounds of learning: it fades from `first` to `last`, and is halved by the first `rounds`. A
// constant epsilon has the same first and last value. With points, in the order of their rounds, it is linear between
// them, and constant before and after; `first` and `last` are then its largest and smallest value.
struct Schedule {
  double first;
  double last;
  double rounds;
  std::vector<SchedulePoint> points = {};

  // `factor` multiplies an epsilon that fades.
  double at(double age, double factor = 1.0) const {
    if (first == last) return last;
    if (!points.empty()) return between_points(age);
    const double faded = factor * first / (1.0 + age / rounds);
    return faded > last ? faded : last;
  }

 private:
  double between_points(double age) const {
    std::size_t place = 0;
    while (place < points.size() && points[place].rounds <= age) ++place;
    if (place == 0) return points.front().epsilon;
    const SchedulePoint& before = points[place - 1];
    if (place == points.size()) return before.epsilon;
    const SchedulePoint& after = points[place];
    return before.epsilon + (after.epsilon - before.epsilon) * ((age - before.rounds) / (after.rounds - before.rounds));
  }
};

// The share that explores nearby: it fades with the square root of epsilon, so more slowly.
inline double fading_nearby(double first, double epsilon, const Schedule& schedule) {
  return schedule.first == schedule.last ? first : first * __builtin_sqrt(epsilon / schedule.first);
}

// Epsilon-greedy over the range. Models with windows of zero width use `atoms`: epsilon is spread over those in the
// range, and the greedy one has the rest.
struct Exploration {
  Schedule schedule;
  std::uint64_t seed;
  MANUL_SIMD::Atoms atoms = {};
  double nearby = 0.0;       // the share of decisions that explore near the window, at the first epsilon
  bool by_evidence = false;  // whether a model with evidence explores less

  // The epsilon of the next decision of a model that has learned from `rounds` rounds.
  double epsilon(const Model& model, double rounds) const {
    return schedule.at(model.age(rounds), by_evidence ? model.exploring() : 1.0);
  }

  // The distribution around a window if a share explores nearby.
  Ladder ladder(Window window, double epsilon, Range within) const {
    const KnobWindow own = {window.centre, window.bandwidth, 0, false};
    return {within.low, within.high, own, {fading_nearby(nearby, epsilon, schedule), epsilon}};
  }

  double atom_density(double epsilon, double chosen, Range within, double action) const {
    return (share(epsilon, within) + (action == chosen ? 1.0 - epsilon : 0.0)) / atoms.spacing();
  }

  Decision decide_atom(double epsilon, double chosen, Range within, const Draws& draws) const {
    const auto [first, last] = atoms.inside(within);
    const auto explored = first + static_cast<std::int64_t>(draws.second * static_cast<double>(last - first + 1));
    const double action = draws.first < epsilon ? atoms.at(explored) : chosen;
    const double density = atom_density(epsilon, chosen, within, action);
    const double none = __builtin_nan("");
    return {action,
            density,
            first == last ? density : share(epsilon, within) / atoms.spacing(),
            {none, none, 0.0, epsilon}};
  }

  Moments atom_moments(double epsilon, double chosen, Range within) const {
    const auto [first, last] = atoms.inside(within);
    double sum = 0.0, squares = 0.0;
    for (std::int64_t leaf = first; leaf <= last; ++leaf)
      sum += atoms.at(leaf), squares += atoms.at(leaf) * atoms.at(leaf);
    return {share(epsilon, within) * sum + (1.0 - epsilon) * chosen,
            share(epsilon, within) * squares + (1.0 - epsilon) * chosen * chosen};
  }

 private:
  // The mass of an explored atom.
  double share(double epsilon, Range within) const {
    const auto [first, last] = atoms.inside(within);
    return epsilon / static_cast<double>(last - first + 1);
  }
};

// `epsilon` is that of the schedule at the model's age.
inline Decision decide(PolicyModel& model, const Exploration& exploration, double epsilon, const ContextView& context,
                       Range within, std::uint64_t number) {
  const Window window = model.window(context, within);
  epsilon = window.exploring(epsilon);
  const Draws draws = draw(exploration.seed, number);
  if (window.bandwidth == 0.0) return exploration.decide_atom(epsilon, window.centre, within, draws);
  if (exploration.nearby != 0.0) {
    const Ladder ladder = exploration.ladder(window, epsilon, within);
    const double action = ladder.at(draws.first, draws.second);
    const double nearby = fading_nearby(exploration.nearby, epsilon, exploration.schedule);
    return {action, ladder.density(action), ladder.floor(), {ladder.low(0), ladder.high(0), nearby, epsilon}};
  }
  const Mixture mixture(window, epsilon, within);
  const Range part = draws.first < epsilon ? mixture.within : mixture.window;
  const double action = part.low + draws.second * (part.high - part.low);
  return {action, mixture.density(action), mixture.floor(), {mixture.window.low, mixture.window.high, 0.0, epsilon}};
}

// The density of an action, which any policy may have drawn: 0 outside the range and between atoms.
inline double density(PolicyModel& model, const Exploration& exploration, double epsilon, const ContextView& context,
                      Range within, double action) {
  const Window window = model.window(context, within);
  epsilon = window.exploring(epsilon);
  if (!(action >= within.low && action <= within.high)) return 0.0;
  if (window.bandwidth > 0.0)
    return exploration.nearby != 0.0 ? exploration.ladder(window, epsilon, within).density(action)
                                     : Mixture(window, epsilon, within).density(action);
  const bool atom = exploration.atoms.at(exploration.atoms.nearest(action)) == action;
  return atom ? exploration.atom_density(epsilon, window.centre, within, action) : 0.0;
}

// The largest density of any action.
inline double density_of_mode(PolicyModel& model, const Exploration& exploration, double epsilon,
                              const ContextView& context, Range within) {
  const Window window = model.window(context, within);
  epsilon = window.exploring(epsilon);
  if (window.bandwidth == 0.0) return exploration.atom_density(epsilon, window.centre, within, window.centre);
  if (exploration.nearby != 0.0) return exploration.ladder(window, epsilon, within).density(window.centre);
  return Mixture(window, epsilon, within).inside;
}

inline Moments moments(PolicyModel& model, const Exploration& exploration, double epsilon, const ContextView& context,
                       Range within) {
  const Window window = model.window(context, within);
  epsilon = window.exploring(epsilon);
  if (window.bandwidth == 0.0) return exploration.atom_moments(epsilon, window.centre, within);
  if (exploration.nearby == 0.0) return Mixture(window, epsilon, within).moments(epsilon);
  const Ladder ladder = exploration.ladder(window, epsilon, within);
  Moments all = {0.0, 0.0};
  for (std::size_t i = 0; i < Ladder::levels; ++i) {
    const Moments level = uniform_moments({ladder.low(i), ladder.high(i)});
    all.mean += ladder.share(i) * level.mean, all.square += ladder.share(i) * level.square;
  }
  return all;
}

}  // namespace manul
