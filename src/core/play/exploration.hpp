// Smoothing and epsilon-greedy: from a window to a distribution, a draw and a density.
#pragma once

#include "numerics/random.hpp"
#include "tree/geometry.hpp"

namespace manul {

// The expected action and its expected square.
struct Moments {
  double mean;
  double square;
};

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

  Moments moments(double epsilon) const {
    const Moments all = uniform(within), played = uniform(window);
    return {epsilon * all.mean + (1.0 - epsilon) * played.mean, epsilon * all.square + (1.0 - epsilon) * played.square};
  }

 private:
  static Moments uniform(Range range) {
    const double low = range.low, high = range.high;
    return {(low + high) / 2.0, (low * low + low * high + high * high) / 3.0};
  }
};

struct Decision {
  double action;
  double density;
};

// `atoms` are for agents whose windows have no width.
struct Play {
  double epsilon;
  std::uint64_t seed;
  MANUL_SIMD::Atoms atoms = {};
};

// Each atom of the range with weight epsilon over their number, the chosen one with the rest.
inline double atom_density(double chosen, const Play& play, Range within, double action) {
  const auto [first, last] = play.atoms.inside(within);
  const double mass =
      play.epsilon / static_cast<double>(last - first + 1) + (action == chosen ? 1.0 - play.epsilon : 0.0);
  return mass / play.atoms.spacing();
}

inline Decision decide_atom(double chosen, const Play& play, Range within, const Draws& draws) {
  const auto [first, last] = play.atoms.inside(within);
  const auto explored = first + static_cast<std::int64_t>(draws.second * static_cast<double>(last - first + 1));
  const double action = draws.first < play.epsilon ? play.atoms.at(explored) : chosen;
  return {action, atom_density(chosen, play, within, action)};
}

inline Moments atom_moments(double chosen, const Play& play, Range within) {
  const auto [first, last] = play.atoms.inside(within);
  Moments all{0.0, 0.0};
  for (std::int64_t leaf = first; leaf <= last; ++leaf) {
    all.mean += play.atoms.at(leaf);
    all.square += play.atoms.at(leaf) * play.atoms.at(leaf);
  }
  const double share = play.epsilon / static_cast<double>(last - first + 1);
  return {share * all.mean + (1.0 - play.epsilon) * chosen,
          share * all.square + (1.0 - play.epsilon) * chosen * chosen};
}

inline Decision decide(Agent& agent, const Play& play, const float* context, Range within, std::uint64_t number) {
  const Window window = agent.window(context, within);
  const Draws draws = draw(play.seed, number);
  if (window.bandwidth == 0.0) return decide_atom(window.centre, play, within, draws);
  const Mixture mixture(window, play.epsilon, within);
  const Range drawn = draws.first < play.epsilon ? mixture.within : mixture.window;
  const double action = drawn.low + draws.second * (drawn.high - drawn.low);
  return {action, mixture.density(action)};
}

// The density of an action that may have been drawn by another policy: 0 outside the range and between atoms.
inline double density(Agent& agent, const Play& play, const float* context, Range within, double action) {
  const Window window = agent.window(context, within);
  if (!(action >= within.low && action <= within.high)) return 0.0;
  if (window.bandwidth > 0.0) return Mixture(window, play.epsilon, within).density(action);
  const bool atom = play.atoms.at(play.atoms.nearest(action)) == action;
  return atom ? atom_density(window.centre, play, within, action) : 0.0;
}

inline Moments moments(Agent& agent, const Play& play, const float* context, Range within) {
  const Window window = agent.window(context, within);
  if (window.bandwidth == 0.0) return atom_moments(window.centre, play, within);
  return Mixture(window, play.epsilon, within).moments(play.epsilon);
}

}  // namespace manul
