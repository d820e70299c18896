// Smoothing and epsilon-greedy: from a window to a distribution, a draw and a density.
#pragma once

#include "agent.hpp"
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

struct Play {
  double epsilon;
  std::uint64_t seed;
};

inline Decision decide(Agent& agent, const Play& play, const float* context, Range within, std::uint64_t number) {
  const Mixture mixture(agent.window(context, within), play.epsilon, within);
  const Draws draws = draw(play.seed, number);
  const Range drawn = draws.first < play.epsilon ? mixture.within : mixture.window;
  const double action = drawn.low + draws.second * (drawn.high - drawn.low);
  return {action, mixture.density(action)};
}

}  // namespace manul
