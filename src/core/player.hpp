// An agent as the outside sees it: checked input, epsilon-greedy play, numbered decisions, loops over tables.
#pragma once

#include <atomic>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "simulate.hpp"

namespace manul {

// Thrown before anything has changed. The caller knows the sentence that explains it.
class Rejected : public std::invalid_argument {
 public:
  Rejected() : std::invalid_argument("rejected") {}
};

struct PlayerSettings {
  Range actions;
  Range losses;
  std::size_t width;
  Play play;
};

// Many rows at once; `lows` and `highs` are null where every decision has the whole range.
struct Rows {
  const float* contexts;
  std::size_t count;
  const double* lows;
  const double* highs;
};

class Player {
 public:
  Player(std::unique_ptr<Agent> agent, const PlayerSettings& settings)
      : agent_(std::move(agent)), settings_(settings), row_(settings.width + 1) {}

  const PlayerSettings& settings() const { return settings_; }
  Agent& agent() { return *agent_; }
  std::uint64_t decisions = 0;

  template <class T>
  const float* row(const T* context, std::size_t width) {
    if (width != settings_.width) throw Rejected();
    for (std::size_t i = 0; i < width; ++i) row_[i] = static_cast<float>(context[i]);
    if (!finite(row_.data())) throw Rejected();
    return row_.data();
  }

  Window window(const float* context, Range within) {
    const Busy busy(*this);
    return agent_->window(context, checked(within));
  }

  Decision decide(const float* context, Range within) {
    const Busy busy(*this);
    return manul::decide(*agent_, settings_.play, context, checked(within), decisions++);
  }

  void learn(const float* context, double action, double density, double loss, Range within) {
    const Busy busy(*this);
    agent_->learn(context, outcome(action, density, loss, within));
  }

  // Draws for a given number without counting it: a decision can be made again.
  Decision decide_again(const float* context, Range within, std::uint64_t number) {
    const Busy busy(*this);
    return manul::decide(*agent_, settings_.play, context, checked(within), number);
  }

  void decide_many(const Rows& rows, double* actions, double* densities) {
    const Busy busy(*this);
    check(rows);
    for (std::size_t i = 0; i < rows.count; ++i) {
      const Decision made = manul::decide(*agent_, settings_.play, at(rows, i), within(rows, i), decisions++);
      actions[i] = made.action;
      densities[i] = made.density;
    }
  }

  void learn_many(const Rows& rows, const double* actions, const double* densities, const double* losses) {
    const Busy busy(*this);
    check(rows);
    for (std::size_t i = 0; i < rows.count; ++i) outcome(actions[i], densities[i], losses[i], within(rows, i));
    for (std::size_t i = 0; i < rows.count; ++i)
      agent_->learn(at(rows, i), outcome(actions[i], densities[i], losses[i], within(rows, i)));
  }

  void densities_many(const Rows& rows, const double* actions, double* densities) {
    const Busy busy(*this);
    check(rows);
    for (std::size_t i = 0; i < rows.count; ++i)
      densities[i] = manul::density(*agent_, settings_.play, at(rows, i), within(rows, i), actions[i]);
  }

  void moments_many(const Rows& rows, double* means, double* squares) {
    const Busy busy(*this);
    check(rows);
    for (std::size_t i = 0; i < rows.count; ++i) {
      const Moments found = manul::moments(*agent_, settings_.play, at(rows, i), within(rows, i));
      means[i] = found.mean;
      squares[i] = found.square;
    }
  }

  void simulate(const Table& table, std::size_t first, std::size_t last, const Record& record) {
    const Busy busy(*this);
    manul::simulate(*agent_, settings_.play, settings_.losses, table, first, last, decisions, record);
    decisions += last - first;
  }

 private:
  // One caller at a time: loops run without the interpreter's lock.
  class Busy {
   public:
    explicit Busy(Player& player) : flag_(player.busy_) {
      if (flag_.test_and_set()) throw std::runtime_error("agent is in use by another thread; give each thread its own");
    }
    ~Busy() { flag_.clear(); }

   private:
    std::atomic_flag& flag_;
  };

  const float* at(const Rows& rows, std::size_t i) const { return rows.contexts + i * settings_.width; }

  Range within(const Rows& rows, std::size_t i) const {
    return rows.lows == nullptr ? settings_.actions : Range{rows.lows[i], rows.highs[i]};
  }

  bool finite(const float* context) const {
    bool all = true;
    for (std::size_t i = 0; i < settings_.width; ++i) all &= std::isfinite(context[i]);
    return all;
  }

  void check(const Rows& rows) const {
    for (std::size_t i = 0; i < rows.count; ++i) {
      if (!finite(at(rows, i))) throw Rejected();
      checked(within(rows, i));
    }
  }

  Range checked(Range within) const {
    const Range actions = settings_.actions;
    if (!(within.low >= actions.low && within.high <= actions.high && within.low < within.high)) throw Rejected();
    const auto& atoms = settings_.play.atoms;
    if (atoms.leaves > 0 && atoms.inside(within).first > atoms.inside(within).last) throw Rejected();
    return within;
  }

  Outcome outcome(double action, double density, double loss, Range within) const {
    checked(within);
    const Range losses = settings_.losses;
    if (!(action >= within.low && action <= within.high)) throw Rejected();
    if (!(density > 0.0 && std::isfinite(density))) throw Rejected();
    if (!(loss >= losses.low && loss <= losses.high)) throw Rejected();
    return {action, density, (loss - losses.low) / (losses.high - losses.low), within};
  }

  std::unique_ptr<Agent> agent_;
  PlayerSettings settings_;
  std::vector<float> row_;
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
};

// Several agents over the same rounds, each with its own table, in the thread that is free next.
inline void simulate_all(const std::vector<Player*>& players, const std::vector<const Table*>& tables,
                         std::size_t first, std::size_t last, const std::vector<Record>& records, std::size_t threads) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < players.size(); i = next++)
      players[i]->simulate(*tables[i], first, last, records[i]);
  };
  std::vector<std::jthread> crew;
  for (std::size_t i = 1; i < threads && i < players.size(); ++i) crew.emplace_back(work);
  work();
}

}  // namespace manul
