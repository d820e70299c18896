// What another agent knows: her critic as it was when it was copied, which predicts losses but learns no more.
#pragma once

#include "critic/loss_learner.hpp"

namespace manul::MANUL_SIMD {

class Prior {
 public:
  Prior(std::size_t width, std::size_t features, bool unknown_losses)
      : learner_(width, features, 1, true, unknown_losses, 0, true, most_rows), curve_(EarlyFactor::nodes),
        units_(nodes), losses_(nodes) {
    for (std::size_t i = 0; i < nodes; ++i)
      units_[i] = smaller(1.0f, static_cast<float>(i) / static_cast<float>(EarlyFactor::cells));
  }

  const LossLearner& learner() const { return learner_; }

  // Sets the context of predictions, which are in units of losses.
  void look(const ContextView& context) { learner_.look(context); }

  double predict(double action) {
    float units[16] = {static_cast<float>(action)}, losses[16];
    learner_.score(units, 16, losses);
    return learner_.replay().original(losses[0]);
  }

  // The predictions at the nodes of the curve of the early experts.
  const double* curve() {
    learner_.score(units_.data(), nodes, losses_.data());
    for (std::size_t i = 0; i <= EarlyFactor::cells; ++i) curve_[i] = learner_.replay().original(losses_[i]);
    return curve_.data();
  }

  void start() { learner_.start(); }
  void resume() { learner_.resume(false); }
  bool is_valid() const { return learner_.is_valid(); }
  std::size_t arrays() const { return learner_.arrays(); }
  void fit(std::size_t index, std::size_t size) { learner_.fit(index, size); }

  Array array(std::size_t index) {
    Array all = learner_.array(index);
    all.part = 1;
    return all;
  }

 private:
  static constexpr std::size_t most_rows = 2048;  // as many as a process that is not retired needs; as in priors.py
  static constexpr std::size_t nodes = (EarlyFactor::cells + 16) / 16 * 16;  // scores take multiples of 16

  LossLearner learner_;
  Buffer<double> curve_;
  Buffer<float> units_, losses_;
};

}  // namespace manul::MANUL_SIMD
