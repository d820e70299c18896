// Intervals of actions, in action units.
#pragma once

namespace manul {

struct Range {
  double low;
  double high;
};

// The window of greedy actions. A bandwidth of 0 is a single action.
struct Window {
  double centre;
  double bandwidth;
  double most_exploring = 1.0;  // a smaller share than epsilon, if exploration costs too much here

  double exploring(double epsilon) const { return most_exploring < epsilon ? most_exploring : epsilon; }
};

}  // namespace manul
