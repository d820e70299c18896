// What the outside sees of a critic.
#pragma once

#include "models/policy_model.hpp"

namespace manul {

struct CriticSettings {
  Range actions;
  std::uint32_t width;
  std::uint64_t seed;
};

struct CriticReport {
  static constexpr std::size_t members = 4;  // deep, shallow, sharp, scout

  double errors[members];   // root mean squared errors of their predictions, in units of the loss
  double weights[members];  // their shares in the prediction
  double bandwidth;         // the widest that is played, in action units
  double noise;             // standard deviation of the loss around the prediction
  double rounds;
  double memory;  // rounds since the last change of the world, as far as noticed
  double alarms;
  double last_alarm;  // the round of it, or 0
};

class CriticAgent : public Agent {
 public:
  virtual CriticReport report() const = 0;

  // The predicted loss at the middles of `points` equal parts of the range.
  virtual void curve(const float* context, std::size_t points, float* losses) = 0;
};

}  // namespace manul
