// Times the updates of the paper's training alone; see updates.py.
#include <time.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "learners/coin_betting.hpp"
#include "models/paper_cats.hpp"
#include "play/exploration.hpp"

using namespace manul;
using namespace manul::MANUL_SIMD;

constexpr std::size_t rounds = 60000, width = 20, chunk = 200, passes = 40;
constexpr std::uint32_t depth = 13;

ContextView row(const std::vector<float>& contexts, std::size_t t) {
  return {ContextKind::row, &contexts[t * width], width};
}

// The lowest time of each chunk of rounds over several passes, which excludes the load of other processes.
class Clock {
 public:
  template <class Work>
  void time(std::size_t round, Work&& work) {
    const double started = now();
    work();
    const double took = now() - started;
    if (took < least_[round / chunk]) least_[round / chunk] = took;
  }

  double nanoseconds() const {
    double total = 0.0;
    for (const double least : least_) total += least;
    return 1e9 * total / rounds;
  }

 private:
  static double now() {
    timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return static_cast<double>(at.tv_sec) + 1e-9 * static_cast<double>(at.tv_nsec);
  }

  std::vector<double> least_ = std::vector<double>(rounds / chunk, 1e9);
};

// One bandwidth: its decisions, the updates of the nodes, and the times of both.
struct Run {
  PaperCatsSettings settings;
  std::vector<Outcome> outcomes;
  std::vector<Update> updates;
  std::vector<std::size_t> first{0};  // of the updates of each round
  Clock decided, learned, listed;

  Run(double bandwidth, const std::vector<float>& contexts, const std::vector<double>& targets)
      : settings{{0.0, 1.0}, width, depth, bandwidth, 0.0, NodeLearner::coin_margin} {
    PaperCatsModel<CoinMargin> model(settings);
    for (std::size_t t = 0; t < rounds; ++t) {
      const Decision decision = decide(model, Exploration{0.05, 7}, row(contexts, t), {0.0, 1.0}, t);
      outcomes.push_back({decision.action, decision.density, std::fabs(decision.action - targets[t]), {0.0, 1.0}});
      model.learn(row(contexts, t), outcomes[t],
                  [&](Node node, float left, float right) { updates.push_back({node, left, right}); });
      first.push_back(updates.size());
    }
  }

  double measure(const std::vector<float>& contexts) {
    double sum = 0.0;  // prevents the compiler from removing the work
    PaperCatsModel<CoinMargin> model(settings);
    DenseContext context(width, false);
    Tree<CoinMargin> tree({settings.actions, depth, settings.offset, settings.bandwidth}, context.stride());
    for (std::size_t from = 0; from < rounds; from += chunk) {
      decided.time(from, [&] {
        for (std::size_t t = from; t < from + chunk; ++t) sum += model.window(row(contexts, t), {0.0, 1.0}).centre;
      });
      learned.time(from, [&] {
        for (std::size_t t = from; t < from + chunk; ++t) model.learn(row(contexts, t), outcomes[t]);
      });
      listed.time(from, [&] {
        for (std::size_t t = from; t < from + chunk; ++t) {
          context.measure(row(contexts, t));
          for (std::size_t i = first[t]; i < first[t + 1]; ++i)
            sum += CoinMargin::learn(tree.block(updates[i].node), context, updates[i].cost_left, updates[i].cost_right);
        }
      });
    }
    return sum;
  }
};

int main() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> contexts(rounds * width), direction(width);
  std::vector<double> targets(rounds);
  float norm = 0.0f;
  for (float& each : direction) each = normal(random), norm += each * each;
  for (std::size_t t = 0; t < rounds; ++t) {
    float sum = 0.0f;
    for (std::size_t i = 0; i < width; ++i) {
      contexts[t * width + i] = normal(random);
      sum += direction[i] * contexts[t * width + i];
    }
    targets[t] = 0.5 * std::erfc(-sum / std::sqrt(2.0 * norm));
  }
  std::vector<Run> runs;
  for (int power = 2; power <= 12; power += 2) runs.emplace_back(std::ldexp(1.0, -power), contexts, targets);
  double sum = 0.0;
  for (std::size_t pass = 0; pass < passes; ++pass)
    for (Run& run : runs) sum += run.measure(contexts);
  for (const Run& run : runs)
    std::printf("%.0f %.3f %.1f %.1f %.1f\n", 1.0 / run.settings.bandwidth,
                static_cast<double>(run.updates.size()) / rounds, run.decided.nanoseconds(), run.learned.nanoseconds(),
                run.listed.nanoseconds());
  return sum == 0.5;
}
