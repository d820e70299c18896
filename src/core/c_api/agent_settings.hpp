// The settings in a file, checked before memory is allocated for them.
#pragma once

#include <optional>

#include "c_api/limit_compiler.hpp"
#include "c_api/model_file.hpp"

namespace manul::api {

enum class ModelKind : std::uint8_t { cats, paper_cats, auto_number, auto_knobs };

struct AgentSettings {
  explicit AgentSettings(const ModelFile& file) {
    const Json::Value all = file.settings;
    if (file.kind() != "Cats" && file.kind() != "Auto")
      fail("kind", "file has the kind %s, but only Cats and Auto are read outside of Python.",
           quoted(file.kind()).c_str());
    is_cats = file.kind() == "Cats";
    knobs = SpaceReader::read(all["actions"]);
    const bool number = knobs.size() == 1 && knobs[0].name.empty() && knobs[0].is_number();
    if (is_cats && !number) wrong("actions");
    kind = is_cats ? ModelKind::cats : number ? ModelKind::auto_number : ModelKind::auto_knobs;
    read_outcome(all);
    read_epsilon(all["epsilon"]);
    read_seed(all["seed"]);
    if (is_cats)
      read_cats(all);
    else
      read_auto(all, file);
  }

  [[noreturn]] static void wrong(const char* setting) { fail(setting, "file is damaged: its %s is wrong.", setting); }

  static double number(Json::Value value, const char* setting, double low, double high) {
    if (!value || !value.is_number() || !(value.number() >= low && value.number() <= high)) wrong(setting);
    return value.number();
  }

  ModelKind kind;
  bool is_cats;
  std::vector<SpaceKnob> knobs;
  CompiledLimits limits = {};
  Range losses = {0.0, 1.0};
  bool rewards = false;
  Schedule schedule = {0.05, 0.05, 1.0};
  bool by_evidence = false, fades = false;
  std::uint64_t seed = 0;
  std::uint32_t depth = 0, table_bits = 20;
  double bandwidth = 0.0;  // 0 if the model chooses it
  std::optional<double> half_life = {};
  NodeLearner learner = NodeLearner::coin_costs;
  double nearby = 0.0, start = none;
  std::vector<double> starts = {};  // positions of knobs
  bool early = true;

  Range actions() const { return {knobs[0].low, knobs[0].high}; }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  void read_outcome(Json::Value all) {
    const Json::Value outcome = all["outcome"];
    if (outcome && !outcome.is_null()) {
      const Json::Value better = outcome["better"], formula = outcome["formula"];
      if (!better || !better.is_text()) wrong("outcome");
      if (formula && !formula.is_null())
        fail("outcome",
             "file has an outcome with the formula %s, which only Python computes from its parts; use an outcome "
             "without "
             "one.",
             quoted(formula.is_text() ? formula.text() : formula.source()).c_str());
      rewards = better.text() == "high";
      read_range(outcome["range"]);
    } else {
      rewards = static_cast<bool>(all["rewards"]);
      read_range(rewards ? all["rewards"] : all["losses"]);
    }
  }

  void read_range(Json::Value range) {
    if (!range) wrong("losses");
    if (range.is_text() && range.text() == "auto") {
      losses = {-infinity, infinity};
      return;
    }
    if (!range.is_list() || range.size() != 2) wrong("losses");
    const double low = number(range.item(0), "losses", -infinity, infinity);
    const double high = number(range.item(1), "losses", -infinity, infinity);
    if (!(low < high && std::isfinite(low) && std::isfinite(high - low))) wrong("losses");
    losses = rewards ? Range{0.0 - high, 0.0 - low} : Range{low, high};
  }

  void read_epsilon(Json::Value epsilon) {
    if (!epsilon) wrong("epsilon");
    if (epsilon.is_number()) {
      const double share = number(epsilon, "epsilon", 0.0, 1.0);
      schedule = {share, share, 1.0};
    } else if (!is_cats && epsilon.is_text() && epsilon.text() == "auto") {
      schedule = {0.05, 0.002, 1000.0}, by_evidence = fades = true;
    } else {
      const Json::Value name = epsilon["kind"];
      if (!epsilon.is_object()) wrong("epsilon");
      if (name && !(name.is_text() && name.text() == "fading"))
        fail("epsilon", "file has a schedule of epsilon that only Python computes, %s.",
             std::string(epsilon.source().substr(0, 200)).c_str());
      schedule = {number(epsilon["first"], "epsilon", 0.0, 1.0), number(epsilon["last"], "epsilon", 0.0, 1.0),
                  number(epsilon["rounds"], "epsilon", 0.0, infinity)};
      if (!(schedule.last > 0.0 && schedule.last <= schedule.first && schedule.rounds > 0.0 &&
            std::isfinite(schedule.rounds)))
        wrong("epsilon");
      fades = true;
    }
  }

  void read_seed(Json::Value value) {
    const std::string_view digits = value ? value.source() : std::string_view();
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), seed);
    if (result.ec != std::errc() || result.ptr != digits.data() + digits.size()) wrong("seed");
  }

  void read_bandwidth(Json::Value value) {
    const Range range = actions();
    const double least = std::max(std::abs(range.low), std::abs(range.high)) * 0x1p-50;
    bandwidth = number(value, "bandwidth", least, (range.high - range.low) / 2.0);
    if (!(bandwidth > 0.0)) wrong("bandwidth");
  }

  void read_cats(Json::Value all) {
    read_bandwidth(all["bandwidth"]);
    const auto leaves = static_cast<std::uint32_t>(number(all["leaves"], "leaves", 2.0, 0x1p24));
    if (all["leaves"].number() != leaves || (leaves & (leaves - 1)) != 0) wrong("leaves");
    depth = static_cast<std::uint32_t>(__builtin_ctz(leaves));
    if (const Json::Value bits = all["table_bits"]; bits) {
      table_bits = static_cast<std::uint32_t>(number(bits, "table_bits", 10.0, 28.0));
      if (bits.number() != table_bits) wrong("table_bits");
    }
    if (const Json::Value rounds = all["half_life"]; rounds && !rounds.is_null()) {
      half_life = number(rounds, "half_life", 1.0, infinity);
      if (!std::isfinite(*half_life)) wrong("half_life");
    }
    const Json::Value paper = all["paper"];
    if (!paper || paper.is_null()) return;
    kind = ModelKind::paper_cats;
    const Json::Value name = paper["name"], detail = paper["target"] ? paper["target"] : paper["loss"];
    if (!name || !name.is_text() || !detail || !detail.is_text()) wrong("paper");
    const std::string both = std::string(name.text()) + " " + std::string(detail.text());
    if (both == "CoinBetting costs")
      learner = NodeLearner::coin_costs;
    else if (both == "CoinBetting margin")
      learner = NodeLearner::coin_margin;
    else if (both == "AdaGrad squared")
      learner = NodeLearner::adagrad_squared;
    else if (both == "AdaGrad logistic")
      learner = NodeLearner::adagrad_logistic;
    else
      wrong("paper");
  }

  void read_auto(Json::Value all, const ModelFile& file) {
    for (const char* name : {"spend_at_most", "keep"})
      if (const Json::Value value = all[name]; value && !value.is_null())
        fail(name, "file has %s, a limit in expectation, which only Python keeps.", name);
    if (file.arrays.contains("prior_losses")) fail("prior", "file has a prior, which only Python reads.");
    const bool several = kind == ModelKind::auto_knobs;
    if (const Json::Value value = all["bandwidth"]; value && !value.is_null()) {
      if (several) wrong("bandwidth");
      read_bandwidth(value);
    }
    nearby = several ? 0.1 : 0.0;  // NEARBY in manul/agents/auto_knobs.py
    if (const Json::Value value = all["nearby"]; value && !value.is_null()) {
      nearby = number(value, "nearby", 0.0, 1.0);
      if (nearby == 1.0) wrong("nearby");
    }
    if (const Json::Value value = all["early"]; value) early = value.type() != JsonType::flag || value.number() != 0.0;
    if (const Json::Value value = all["start"]; value && !value.is_null()) read_start(value);
    if (const Json::Value texts = all["limits"]; texts && !texts.is_null()) {
      std::vector<std::string> limits_of_knobs;
      if (!texts.is_list() || knobs[0].name.empty()) wrong("limits");
      texts.items([&](Json::Value text) {
        if (!text.is_text()) wrong("limits");
        limits_of_knobs.emplace_back(text.text());
      });
      if (!limits_of_knobs.empty()) limits = LimitCompiler(knobs).compile(limits_of_knobs);
    }
  }

  void read_start(Json::Value value) {
    for (const SpaceKnob& knob : knobs) {
      const Json::Value own = knob.name.empty() ? value : value[knob.name];
      starts.push_back(own ? knob.position(own) : none);
    }
    if (kind == ModelKind::auto_number) start = value.number();
  }
};

}  // namespace manul::api
