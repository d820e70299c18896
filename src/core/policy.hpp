// Smoothing and epsilon-greedy: from a window to a distribution, a draw and a density.
#pragma once

#include "geometry.hpp"
#include "random.hpp"

namespace manul {

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

  double density(double action) const {
    return action >= window.low && action <= window.high ? inside : outside;
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
inline Decision decide_atom(double chosen, const Play& play, Range within, const Draws& draws) {
  const auto [first, last] = play.atoms.inside(within);
  const auto count = static_cast<double>(last - first + 1);
  const auto explored = first + static_cast<std::int64_t>(draws.second * count);
  const double action = draws.first < play.epsilon ? play.atoms.at(explored) : chosen;
  const double mass = play.epsilon / count + (action == chosen ? 1.0 - play.epsilon : 0.0);
  return {action, mass / play.atoms.spacing()};
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

}  // namespace manul
