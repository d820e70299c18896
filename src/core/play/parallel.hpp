// Runs several players at once, each in one thread.
#pragma once

#include <vector>

#include "play/player.hpp"

#ifndef __wasm__  // which has no threads
#include <atomic>
#include <exception>
#include <thread>
#endif

namespace manul {

#ifdef __wasm__

template <class Task>
void in_threads(std::size_t count, std::size_t, Task&& task) {
  for (std::size_t i = 0; i < count; ++i) task(i);
}

#else

// Joins its threads at the end, as std::jthread does, which not every standard library has.
struct Crew {
  std::vector<std::thread> threads;
  ~Crew() {
    for (std::thread& thread : threads) thread.join();
  }
};

// Runs tasks 0..count-1, each in the next free thread; the first failure is reported when all are done.
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
    Crew crew;
    for (std::size_t i = 1; i < threads && i < count; ++i) crew.threads.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

#endif

// Runs the same rounds, each player with its own table.
inline void simulate_all(const std::vector<Player*>& players, const std::vector<const Table*>& tables,
                         std::size_t first, std::size_t last, const std::vector<Record>& records, std::size_t threads) {
  in_threads(players.size(), threads,
             [&](std::size_t i) { players[i]->simulate(*tables[i], first, last, records[i]); });
}

// Runs the same log, which is checked once for all players that accept the same rows. Neighbouring sums share a cache
// line, so each task accumulates its own. `weights` has the weights of all rows for one player after the other, or is
// null.
inline void replay_all(const std::vector<Player*>& players, const Rows& rows, const Outcomes& outcomes, double* sums,
                       double* weights, std::size_t threads) {
  in_threads(players.size(), threads, [&](std::size_t i) {
    if (i == 0 || !players[i]->accepts_same_rows(*players[0])) players[i]->check(rows, outcomes);
  });
  in_threads(players.size(), threads, [&](std::size_t i) {
    double sum = sums[i];
    players[i]->replay(rows, outcomes, sum, weights == nullptr ? nullptr : weights + i * rows.count);
    sums[i] = sum;
  });
}

}  // namespace manul
