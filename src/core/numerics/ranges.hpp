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
};

}  // namespace manul
