// The networks of the critic and their weights in the prediction.
//
// A deep network and two shallow ones, one of which has sharp corners, learn from the whole memory. The scout, also
// shallow, learns from the last 2,000 rounds only: in a stationary world its weight is small, in a drifting one large.
#pragma once

#include "critic/replay_buffer.hpp"
#include "models/policy_model.hpp"

namespace manul::MANUL_SIMD {

class Ensemble {
 public:
  static constexpr std::size_t members = CriticReport::members;
  static constexpr double judging_memory = 4000.0;  // rounds over which predictions are judged

  Ensemble(std::size_t width, std::size_t features, const ReplayBuffer& replay, std::uint64_t seed)
      : seed_(seed), named_(features > 0),
        networks_{{width, features, replay.action_columns(), replay.stride(), true, blunt},
                  {width, features, replay.action_columns(), replay.stride(), false, blunt},
                  {width, features, replay.action_columns(), replay.stride(), false, sharp},
                  {width, features, replay.action_columns(), replay.stride(), false, blunt}} {}

  // Draws the initial weights.
  void start() {
    if (started_) return;
    started_ = true;
    for (std::size_t m = 0; m < members; ++m) networks_[m].initialise(seed_, first_stream + m);
  }

  // Draws the initial weights of the features of a named context that are new.
  void add_features(const ContextView& context) {
    for (std::size_t m = 0; m < members; ++m) networks_[m].add_features(context, seed_, features_stream + m);
  }

  bool is_valid() const {
    bool all =
        is_count(state_.steps) && is_count(state_.judged) && finite(state_.first_power) && finite(state_.second_power);
    for (const double error : state_.errors) all = all && finite(error);
    return all;
  }

  // Whether every network has weights for `count` named features.
  bool has_features(std::size_t count) const {
    bool all = true;
    for (const auto& network : networks_) all = all && network.features().size() == count;
    return all;
  }

  double error(std::size_t member) const { return state_.errors[member]; }

  // One round of training. Returns the error of the earlier prediction for the newest round, whose loss is `loss`, in
  // standard units.
  double learn(ReplayBuffer& replay, double age, double loss) {
    double shares[members], error = 0.0;
    member_shares(shares);
    const auto steps = static_cast<int>(clip(busy_rounds / (age + 1.0), 1.0, most_steps));
    for (int i = 0; i < steps; ++i) step(replay, age, i == 0, shares);
    state_.judged += 1.0;
    const double rate = larger(1.0 / judging_memory, 1.0 / state_.judged);
    for (std::size_t m = 0; m < members; ++m) {
      const double own = loss - newest_[m];
      state_.errors[m] += rate * (own * own - state_.errors[m]);
      error += shares[m] * own;
    }
    return error;
  }

  // A member whose squared error is 5 % above the best one has about a third of its weight.
  void member_shares(double* shares) const {
    double best = state_.errors[0], total = 0.0;
    for (double error : state_.errors) best = smaller(best, error);
    for (std::size_t m = 0; m < members; ++m) {
      shares[m] = least_share + (best > 0.0 ? exponential(sharpness - sharpness * state_.errors[m] / best) : 1.0);
      total += shares[m];
    }
    for (std::size_t m = 0; m < members; ++m) shares[m] /= total;
  }

  // Sets the context for `score`.
  void look(const StandardContext& input) {
    double shares[members];
    member_shares(shares);
    for (std::size_t m = 0; m < members; ++m) {
      shares_[m] = static_cast<float>(shares[m]);
      networks_[m].look(input, q_[m]);
    }
  }

  // Calls `each(network, q, share)` for every network in the context of `look`.
  template <class Each>
  void visit(Each&& each) const {
    for (std::size_t m = 0; m < members; ++m) each(networks_[m], q_[m], shares_[m]);
  }

  // Predicted losses, in standard units, of `size` actions of one column; `size` is a multiple of 16.
  void score(const float* actions, std::size_t size, float* losses) const {
    for (std::size_t i = 0; i < size; ++i) losses[i] = 0.0f;
    for (std::size_t first = 0; first < size; first += ScoredActions::most) {
      const ScoredActions scored(actions + first,
                                 size - first < ScoredActions::most ? size - first : ScoredActions::most);
      for (std::size_t m = 0; m < members; ++m) networks_[m].score(q_[m], scored, shares_[m], losses + first);
    }
  }

  Array array(std::size_t index) {
    static constexpr const char* names[members] = {"deep", "shallow", "sharp", "scout"};
    static constexpr const char* features[members] = {"deep_features", "shallow_features", "sharp_features",
                                                      "scout_features"};
    if (index == members) return {"ensemble", "f8", &state_, sizeof state_ / sizeof(double)};
    if (index < members)
      return {names[index], "f4", networks_[index].weights().data(), networks_[index].weights().size()};
    FeatureRows& rows = networks_[index - members - 1].features();
    return {features[index - members - 1], "f4", rows.data(), rows.size() * rows.row_size(), 0, rows.most()};
  }

  std::size_t arrays() const { return members + 1 + (named_ ? members : 0); }

  // Makes room for the array of a file.
  void fit(std::size_t index, std::size_t size) {
    if (index > members) networks_[index - members - 1].features().fit(size);
  }

 private:
  static constexpr std::uint64_t first_stream = 16, features_stream = 24,
                                 replay_stream = 8;  // of random numbers; decisions have stream 0
  static constexpr std::size_t scout = members - 1;
  // Chosen by experiment: docs/ablation-auto.md.
  static constexpr double scout_memory = 2000.0;                    // rounds
  static constexpr double busy_rounds = 10000.0, most_steps = 9.0;  // a new critic trains several times per round
  static constexpr double sharpness = 20.0, least_share = 0.02;     // of the weights; every member keeps some
  static constexpr double first_rate = 0.005, decay = 0.1;
  static constexpr double momentum = 0.9, square_momentum = 0.999;  // of Adam, as in Network::adam

  // Rates fall with the number of rounds since the last alarm, which for the scout is at most its memory.
  static double rate(double age, double half) { return first_rate / __builtin_sqrt(1.0 + age / half); }

  void step(ReplayBuffer& replay, double age, bool first, const double* shares) {
    constexpr double tiny = 1e-30;  // avoids subnormal floats
    const Draws draws = draw(seed_, static_cast<std::uint64_t>(state_.steps), replay_stream);
    state_.steps += 1.0;
    state_.first_power = larger(tiny, momentum * state_.first_power);
    state_.second_power = larger(tiny, square_momentum * state_.second_power);
    const double correction = __builtin_sqrt(1.0 - state_.second_power) / (1.0 - state_.first_power);
    const double memory = smaller(age + 1.0, replay.remembered());
    Batch data;
    replay.sample(data, memory, draws.first, first);
    const double deep = rate(age, 2000.0), keep = 1.0 - decay * deep / (1.0 + age / 2000.0);
    float predicted[batch], mean[batch] = {};
    for (std::size_t m = 0; m < scout; ++m) {
      if (m == 0)
        train(m, data, deep * correction, keep, first, predicted);
      else
        train(m, data, rate(age, 200.0) * correction, 1.0, first, predicted);
      const auto share = static_cast<float>(shares[m] / (1.0 - shares[scout]));
      for (std::size_t i = 0; i < batch; ++i) mean[i] += share * predicted[i];
    }
    for (std::size_t i = 0; i < batch; ++i) replay.set_prediction(data.slots[i], mean[i]);
    if (memory > scout_memory) replay.sample(data, scout_memory, draws.second, first);
    train(scout, data, rate(smaller(age, scout_memory), 500.0) * correction, 1.0, first, predicted);
  }

  void train(std::size_t member, const Batch& data, double rate, double keep, bool first, float* predicted) {
    networks_[member].step(data, static_cast<float>(rate), static_cast<float>(keep), predicted);
    if (first) newest_[member] = predicted[0];
  }

  struct State {
    double steps = 0.0, first_power = 1.0, second_power = 1.0, judged = 0.0, errors[members] = {};
  };

  std::uint64_t seed_;
  bool named_, started_ = false;
  Network networks_[members];
  float q_[members][hinges], shares_[members], newest_[members];
  State state_;
};

}  // namespace manul::MANUL_SIMD
