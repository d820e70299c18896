// An agent as the outside sees it: checked input, epsilon-greedy play, numbered decisions, loops over tables.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "contexts/encoder.hpp"
#include "numerics/buffer.hpp"
#include "play/simulation.hpp"

namespace manul {

// Thrown before anything has changed. The caller knows the sentence that explains it.
class Rejected : public std::invalid_argument {
 public:
  Rejected() : std::invalid_argument("rejected") {}
};

// Beyond these, weights and their squares overflow (outcomes.py has the sentence).
inline constexpr double least_density = 1e-100, largest_density = 1e100;

// How contexts come: as rows of numbers, or with names, hashed into the agent's own table or sketched into a row whose
// columns are given to features as they are first learned from, and shared when there are no more.
enum class Naming : std::uint8_t { rows, hashed, sketched };

struct PlayerSettings {
  Range actions;
  Range losses;
  std::size_t width;
  Play play;
  Naming naming = Naming::rows;
};

// What a logged action says of the window that would have been played: its density there over the logged one, times
// the loss (the paper's c_t of the leaf, Algorithm 3).
inline double window_cost(Window played, const Outcome& outcome) {
  if (std::abs(outcome.action - played.centre) > played.bandwidth * (1.0 + 1e-9)) return 0.0;  // as most of them
  const Mixture window(played, 0.0, outcome.within);
  return window.density(outcome.action) / outcome.density * outcome.loss;
}

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

  Encoder encoder;

  // Which column of the row each feature has: columns are given away in order.
  using Columns = std::unordered_map<std::uint32_t, std::uint32_t>;
  const Columns& columns() const { return columns_; }
  void set_columns(const Columns& columns) {
    if (columns.size() > settings_.width) throw Rejected();
    std::vector<bool> taken(columns.size());
    for (const auto& [feature, column] : columns) {
      if (column >= columns.size() || taken[column]) throw Rejected();
      taken[column] = true;
    }
    columns_ = columns;
  }

  Naming naming() const { return settings_.naming; }
  void sketch_names() { settings_.naming = Naming::sketched; }

  // The context that the encoder holds, for the agent.
  const float* encoded(bool learning) {
    if (settings_.naming == Naming::hashed) {
      agent_->select(encoder.features().data(), encoder.features().size(), encoder.numbers());
      return encoder.values().data();
    }
    std::fill_n(row_.data(), settings_.width, 0.0f);
    for (std::size_t i = 0; i < encoder.features().size(); ++i)
      sketch(encoder.features()[i], encoder.values()[i], learning);
    return row_.data();
  }

  template <class T>
  const float* row(const T* context, std::size_t width) {
    if (width != settings_.width || settings_.naming != Naming::rows) throw Rejected();
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

  // Refuses an outcome that cannot be learned from, before the context is looked at.
  void check(double action, double density, double loss, Range within) const { outcome(action, density, loss, within); }

  // Draws for a given number without counting it: a decision can be made again.
  Decision decide_again(const float* context, Range within, std::uint64_t number) {
    const Busy busy(*this);
    return manul::decide(*agent_, settings_.play, context, checked(within), number);
  }

  void decide_many(const Rows& rows, double* actions, double* densities) {
    const Busy busy(*this);
    check_rows(rows);
    for (std::size_t i = 0; i < rows.count; ++i) {
      const Decision made = manul::decide(*agent_, settings_.play, at(rows, i), within(rows, i), decisions++);
      actions[i] = made.action;
      densities[i] = made.density;
    }
  }

  void decide_many_again(const Rows& rows, const std::uint64_t* numbers, double* actions, double* densities) {
    const Busy busy(*this);
    check_rows(rows);
    for (std::size_t i = 0; i < rows.count; ++i) {
      const Decision made = manul::decide(*agent_, settings_.play, at(rows, i), within(rows, i), numbers[i]);
      actions[i] = made.action;
      densities[i] = made.density;
    }
  }

  void learn_many(const Rows& rows, const double* actions, const double* densities, const double* losses) {
    const Busy busy(*this);
    check_rows(rows);
    for (std::size_t i = 0; i < rows.count; ++i) outcome(actions[i], densities[i], losses[i], within(rows, i));
    for (std::size_t i = 0; i < rows.count; ++i)
      agent_->learn(at(rows, i), outcome(actions[i], densities[i], losses[i], within(rows, i)));
  }

  // Progressive validation: each row is paid for by the policy as it was before it was learned from. Adds to a sum that
  // goes on from batch to batch, so that how a log is cut changes no bit of it. The rows are ones that `check_log` let
  // pass.
  void replay(const Rows& rows, const double* actions, const double* densities, const double* losses, double& sum) {
    const Busy busy(*this);
    for (std::size_t i = 0; i < rows.count; ++i) {
      const Outcome logged = scaled(actions[i], densities[i], losses[i], within(rows, i));
      sum += window_cost(agent_->replay(at(rows, i), logged), logged);
    }
  }

  void check_log(const Rows& rows, const double* actions, const double* densities, const double* losses) const {
    check_rows(rows);
    for (std::size_t i = 0; i < rows.count; ++i) outcome(actions[i], densities[i], losses[i], within(rows, i));
  }

  // Whether what one may learn from, the other may as well.
  bool takes_the_same(const Player& other) const {
    const auto same = [](Range one, Range two) { return one.low == two.low && one.high == two.high; };
    return settings_.width == other.settings_.width && same(settings_.actions, other.settings_.actions) &&
           same(settings_.losses, other.settings_.losses) &&
           settings_.play.atoms.leaves == other.settings_.play.atoms.leaves;
  }

  void densities_many(const Rows& rows, const double* actions, double* densities) {
    const Busy busy(*this);
    check_rows(rows);
    for (std::size_t i = 0; i < rows.count; ++i)
      densities[i] = manul::density(*agent_, settings_.play, at(rows, i), within(rows, i), actions[i]);
  }

  void moments_many(const Rows& rows, double* means, double* squares) {
    const Busy busy(*this);
    check_rows(rows);
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

  void sketch(std::uint32_t feature, float value, bool learning) {
    const auto known = columns_.find(feature);
    if (known != columns_.end()) {
      row_[known->second] += value;
    } else if (columns_.size() == settings_.width) {
      row_[feature % settings_.width] += value;
    } else if (learning) {
      const auto column = static_cast<std::uint32_t>(columns_.size());
      columns_.emplace(feature, column);
      row_[column] = value;
    }
  }

  const float* at(const Rows& rows, std::size_t i) const { return rows.contexts + i * settings_.width; }

  Range within(const Rows& rows, std::size_t i) const {
    return rows.lows == nullptr ? settings_.actions : Range{rows.lows[i], rows.highs[i]};
  }

  bool finite(const float* context) const {
    bool all = true;
    for (std::size_t i = 0; i < settings_.width; ++i) all &= std::isfinite(context[i]);
    return all;
  }

  void check_rows(const Rows& rows) const {
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
    if (!(density >= least_density && density <= largest_density)) throw Rejected();
    if (!(loss >= losses.low && loss <= losses.high)) throw Rejected();
    return scaled(action, density, loss, within);
  }

  Outcome scaled(double action, double density, double loss, Range within) const {
    const Range losses = settings_.losses;
    return {action, density, (loss - losses.low) / (losses.high - losses.low), within};
  }

  std::unique_ptr<Agent> agent_;
  PlayerSettings settings_;
  MANUL_SIMD::Buffer<float> row_;
  Columns columns_;
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
};

// Does the tasks 0..count-1, each in the thread that is free next; the first that fails is reported when all are done.
template <class Task>
void in_threads(std::size_t count, std::size_t threads, Task&& task) {
  std::atomic<std::size_t> next = 0;
  std::atomic_flag failed = ATOMIC_FLAG_INIT;
  std::exception_ptr failure;
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) try {
        task(i);
      } catch (...) {
        if (!failed.test_and_set()) failure = std::current_exception();
      }
  };
  {
    std::vector<std::jthread> crew;
    for (std::size_t i = 1; i < threads && i < count; ++i) crew.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

// Several agents over the same rounds, each with its own table.
inline void simulate_all(const std::vector<Player*>& players, const std::vector<const Table*>& tables,
                         std::size_t first, std::size_t last, const std::vector<Record>& records, std::size_t threads) {
  in_threads(players.size(), threads,
             [&](std::size_t i) { players[i]->simulate(*tables[i], first, last, records[i]); });
}

// Several agents over the same log, which is looked through once for all that take the same. Neighbouring sums share a
// cache line, so each task adds up its own.
inline void replay_all(const std::vector<Player*>& players, const Rows& rows, const double* actions,
                       const double* densities, const double* losses, double* sums, std::size_t threads) {
  in_threads(players.size(), threads, [&](std::size_t i) {
    if (i == 0 || !players[i]->takes_the_same(*players[0])) players[i]->check_log(rows, actions, densities, losses);
  });
  in_threads(players.size(), threads, [&](std::size_t i) {
    double sum = sums[i];
    players[i]->replay(rows, actions, densities, losses, sum);
    sums[i] = sum;
  });
}

}  // namespace manul
