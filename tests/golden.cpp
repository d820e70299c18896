// Plays the same rounds with every model of the core, and prints a hash of its decisions and of what it has learned.
// The hashes are equal for all instruction sets, processors, compilers and systems (tests/golden.py compares them).
#include <cstdio>
#include <cstring>
#include <functional>

#include "play/declared_formula.hpp"
#include "play/knobs_player.hpp"
#include "play/parallel.hpp"
#include "simd/instruction_set.hpp"

namespace manul {
namespace {

constexpr std::size_t rounds = 1200, change = 900, replayed = 300, width = 7, features = 256;
constexpr double infinity = __builtin_inf();
constexpr Range actions = {-2.0, 6.0};

// FNV-1a.
class Hash {
 public:
  void add(const void* data, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i)
      state_ = (state_ ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3ULL;
  }
  void add(double number) { add(&number, sizeof number); }
  unsigned long long value() const { return state_; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

double random_number(std::size_t round, std::uint64_t stream) { return draw(2026, round, stream).first; }

// Numbers of different size, some of them missing as 0, and one that is constant at first.
std::vector<float> row(std::size_t round) {
  std::vector<float> values(width);
  for (std::size_t i = 0; i + 1 < width; ++i)
    values[i] = static_cast<float>((random_number(round, i) - 0.3) * (i == 2 ? 1e4 : 1.0));
  if (random_number(round, 50) < 0.2) values[1] = 0.0f;
  values[width - 1] = round < 100 ? 3.0f : static_cast<float>(random_number(round, 51) < 0.5);
  return values;
}

// The best position in [0, 1], which jumps once.
double best(std::size_t round) {
  const double place = 0.2 + 0.5 * random_number(round, 0) + (random_number(round, 1) < 0.5 ? 0.2 : 0.0);
  return round < change ? place : 1.0 - place;
}

double loss(std::size_t round, double position) {
  const double error = position - best(round), noise = 0.1 * random_number(round, 52);
  return 0.9 * (error < 0.0 ? -error : error) + noise;
}

// The parts of an outcome: whether one bought or how many, or whether the bid won and what it is worth if so.
std::vector<double> observe(const std::vector<PartKind>& kinds, std::size_t round, double position) {
  const double want = best(round) + 0.5 * random_number(round, 53);
  if (kinds.size() == 2) return {position > want ? 1.0 : 0.0, position > want ? 2.0 + 4.0 * best(round) : none};
  if (kinds[0] == PartKind::yes_no) return {position < want ? 1.0 : 0.0};
  return {static_cast<double>(static_cast<int>(position < want ? 8.0 * (want - position) : 0.0))};
}

void read_fields(Encoder& encoder, std::size_t round) {
  encoder.next();
  encoder.number("age", 1e3 * random_number(round, 0));
  encoder.text("city", "level " + std::to_string(static_cast<int>(40.0 * random_number(round, 1))));
  encoder.flag("new", random_number(round, 2) < 0.3);
  if (random_number(round, 3) < 0.1)
    encoder.missing("income");
  else
    encoder.number("income", random_number(round, 4));
  std::string field = "when";
  const auto hour = static_cast<unsigned>(24.0 * random_number(round, 5));
  encoder.time(field, {true, true, 2026, 1 + hour / 2, 1 + hour, hour, 3600.0 * hour, 7200.0});
}

ContextView view(BasePlayer& player, std::size_t round, bool learning) {
  if (player.settings().naming == Naming::rows) return player.row_view(row(round).data(), width);
  player.encoder.start(learning);
  read_fields(player.encoder, round);
  player.encoder.finish();
  return player.named_view(learning);
}

void add_state(Hash& hash, Model& model) {
  model.start();
  for (std::size_t i = 0; i < model.arrays(); ++i) {
    const Array array = model.array(i);
    hash.add(array.name, std::strlen(array.name));
    hash.add(array.data, array.size * (array.type[1] == '4' ? 4 : 8));
  }
}

// Copies what was learned, as a saved and loaded agent has it.
void restore(BasePlayer& from, BasePlayer& to) {
  for (std::size_t i = 0; i < from.model().arrays(); ++i) to.model().fit(i, from.model().array(i).size);
  to.model().start();
  for (std::size_t i = 0; i < from.model().arrays(); ++i) {
    const Array array = from.model().array(i);
    std::memcpy(to.model().array(i).data, array.data, array.size * (array.type[1] == '4' ? 4 : 8));
  }
  if (!to.model().is_valid()) throw Rejected();
  to.model().resume();
  to.learned = from.learned, to.decisions = from.decisions;
  to.set_columns(from.columns());
}

// Every third decision may use a part of the range only.
Range range(std::size_t round) {
  if (round % 3 != 0) return actions;
  return {actions.low + 2.0 * random_number(round, 60), actions.high - 2.0 * random_number(round, 61)};
}

struct Played {
  std::vector<float> contexts;
  std::vector<double> actions, densities, losses, lows, highs, parts;
};

void decide(Hash& hash, Player& player, std::size_t round, Played* played) {
  const Range within = range(round);
  const Decision decision = player.decide(view(player, round, false), within);
  for (const double number : {decision.action, decision.density, decision.floor}) hash.add(number);
  if (played == nullptr) return;
  const double position = (decision.action - actions.low) / (actions.high - actions.low);
  double observed = loss(round, position);
  std::vector<double> parts;
  if (const DeclaredParts& outcome = player.settings().outcome; !outcome.kinds.empty()) {
    parts = observe(outcome.kinds, round, position);
    outcome.formulas[0]->expect(&decision.action, 1, parts.data(), nullptr, &observed);
    observed = -observed;
  }
  player.learn(view(player, round, true), player.outcome(decision.action, decision.density, observed, within,
                                                         parts.empty() ? nullptr : parts.data()));
  const std::vector<float> context = row(round);
  played->contexts.insert(played->contexts.end(), context.begin(), context.end());
  played->actions.push_back(decision.action), played->densities.push_back(decision.density);
  played->losses.push_back(observed), played->lows.push_back(within.low), played->highs.push_back(within.high);
  played->parts.insert(played->parts.end(), parts.begin(), parts.end());
}

using MakePlayer = std::function<std::unique_ptr<Player>()>;

// Plays, restores the result elsewhere and decides there, and learns once more from the log of the first decisions.
void play(Hash& hash, const MakePlayer& make) {
  const auto player = make(), again = make(), other = make();
  Played played;
  for (std::size_t round = 0; round < rounds; ++round) decide(hash, *player, round, &played);
  add_state(hash, player->model());
  restore(*player, *again);
  for (std::size_t round = 0; round < 50; ++round) decide(hash, *again, round, nullptr);
  if (auto* critic = dynamic_cast<CriticModel*>(&player->model())) {
    const double places[] = {-2.0, -0.7, 0.1, 2.5, 6.0};
    double predicted[5];
    critic->predict(view(*player, 7, false), places, 5, predicted);
    hash.add(predicted, sizeof predicted);
    const CriticReport report = critic->report();
    hash.add(&report, sizeof report);
  }
  if (player->settings().naming != Naming::rows) return;
  const Rows rows = {played.contexts.data(), replayed, played.lows.data(), played.highs.data()};
  double sum = 0.0;
  const Outcomes outcomes = {played.actions.data(), played.densities.data(), played.losses.data(),
                             played.parts.empty() ? nullptr : played.parts.data()};
  replay_all({other.get()}, rows, outcomes, &sum, nullptr, 1);
  hash.add(sum);
  add_state(hash, other->model());
}

void decide(Hash& hash, KnobsPlayer& player, std::size_t round, bool learning) {
  const KnobRange ranges[] = {
      {0.0, 1.0, 0}, {round % 3 == 0 ? 0.25 : 0.0, 1.0, 0}, {0.0, 0.0, round % 5 == 0 ? 5u : 7u}};
  KnobsPlayer::Draw draws[most_knobs] = {};
  player.decide(view(player, round, false), ranges, round, {}, draws);
  double positions[3], density = 1.0;
  for (std::size_t k = 0; k < 3; ++k) {
    for (const double number : {draws[k].position, draws[k].density, draws[k].floor}) hash.add(number);
    positions[k] = draws[k].position;
    density *= draws[k].density;
  }
  const double mean = 0.5 * (positions[0] + positions[1]) + (positions[2] == 1.0 ? 0.1 : 0.0);
  if (learning) player.learn(view(player, round, true), positions, density * 8.0 * 3.0, loss(round, mean));
}

void play_knobs(Hash& hash, std::size_t named_features) {
  const std::vector<Knob> knobs = {{KnobKind::number, 0}, {KnobKind::steps, 8}, {KnobKind::choice, 3}};
  const auto make = [&] {
    PlayerSettings settings{{0.0, 1.0}, {0.0, infinity}, named_features > 0 ? 0 : width, {{0.3, 0.02, 200.0}, 11}};
    settings.naming = named_features > 0 ? Naming::numbered : Naming::rows;
    settings.features = named_features;
    KnobsModel* model = instruction_set().kernels.new_auto_knobs(
        {knobs.data(), knobs.size(), settings.width, 11, true, named_features});
    return std::make_unique<KnobsPlayer>(model, settings, knobs, 0.3);
  };
  const auto player = make(), again = make();
  for (std::size_t round = 0; round < rounds; ++round) decide(hash, *player, round, true);
  add_state(hash, player->model());
  restore(*player, *again);
  for (std::size_t round = 0; round < 50; ++round) decide(hash, *again, round, false);
}

struct Kind {
  const char* name;
  std::function<PolicyModel*(const Kernels&, PlayerSettings&)> build;
  double half_life = 0.0;
};

MakePlayer maker(const Kind& kind) {
  return [&kind] {
    PlayerSettings settings{actions, {0.0, 2.0}, width, {{0.3, 0.02, 200.0}, 42}};
    PolicyModel* model = kind.build(instruction_set().kernels, settings);
    if (kind.half_life > 0.0) model->forget(kind.half_life);
    return std::make_unique<Player>(model, settings);
  };
}

const double bandwidths[] = {0.25, 0.5, 1.0, 2.0};

AdaptiveCatsSettings adaptive(Penalty penalty) {
  return {{actions, width, 5, 0.0}, bandwidths, 4, 0.02, penalty, 0.01};
}

DiscreteSettings discrete(PlayerSettings& settings) {
  settings.exploration.atoms = {actions, 16};
  return {actions, width, 4};
}

PolicyModel* named_auto(const Kernels& kernels, PlayerSettings& settings) {
  settings.naming = Naming::numbered, settings.features = features, settings.width = 0;
  return kernels.new_auto({actions, 0, 42, false, features, 0.0});
}

PolicyModel* nearby_auto(const Kernels& kernels, PlayerSettings& settings) {
  settings.losses = {0.0, infinity}, settings.exploration.nearby = 0.3;
  return kernels.new_auto({actions, width, 42, true, 0, 0.0});
}

// Auto with the formula of an outcome, whose first part has a hint.
PolicyModel* formula_auto(const Kernels& kernels, PlayerSettings& settings, const std::vector<PartKind>& kinds,
                          int hint, const std::vector<Instruction>& program, double start) {
  const auto formula = std::make_shared<DeclaredFormula>(Program(program), kinds);
  settings.losses = {-infinity, infinity}, settings.outcome.kinds = kinds, settings.outcome.formulas = {formula};
  AutoSettings all{actions, width, 42, true};
  all.parts.formula = formula.get(), all.parts.count = kinds.size(), all.parts.higher = true;
  all.parts.cost_aware = true, all.parts.losses = settings.losses, all.parts.start = start, all.parts.inherits = true;
  for (std::size_t p = 0; p < kinds.size(); ++p) all.parts.parts[p] = {kinds[p], p == 0 ? hint : 0};
  for (std::size_t g = 0; g < PartsSettings::points; ++g)
    all.parts.actions[g] =
        actions.low + (actions.high - actions.low) * static_cast<double>(g) / (PartsSettings::points - 1.0);
  return kernels.new_auto(all);
}

using enum Operation;

// (action - -2.5) * bought, or * units
const std::vector<Instruction> sale = {{value, 0.0}, {number, -2.5}, {subtract, 0.0}, {value, 1.0}, {multiply, 0.0}};
// (value - action) * won
const std::vector<Instruction> bid = {{value, 2.0}, {value, 0.0}, {subtract, 0.0}, {value, 1.0}, {multiply, 0.0}};

PolicyModel* sale_auto(const Kernels& kernels, PlayerSettings& settings) {
  return formula_auto(kernels, settings, {PartKind::yes_no}, -1, sale, none);
}

PolicyModel* units_auto(const Kernels& kernels, PlayerSettings& settings) {
  return formula_auto(kernels, settings, {PartKind::count}, -1, sale, 0.4);
}

PolicyModel* bid_auto(const Kernels& kernels, PlayerSettings& settings) {
  return formula_auto(kernels, settings, {PartKind::yes_no, PartKind::amount}, 1, bid, none);
}

PolicyModel* hashed_cats(const Kernels& kernels, PlayerSettings& settings) {
  settings.naming = Naming::hashed, settings.width = 0;
  return kernels.new_cats({actions, 0, 5, 0.5, 12});
}

using S = PlayerSettings;

const std::vector<Kind> kinds = {
    {"cats", [](const Kernels& k, S&) { return k.new_cats({actions, width, 5, 0.5}); }},
    {"cats-half-life", [](const Kernels& k, S&) { return k.new_cats({actions, width, 5, 0.5}); }, 300.0},
    {"cats-hashed", hashed_cats},
    {"paper-cats-coin-costs",
     [](const Kernels& k, S&) { return k.new_paper_cats({actions, width, 5, 0.5, 0.0, NodeLearner::coin_costs}); }},
    {"paper-cats-coin-margin",
     [](const Kernels& k, S&) { return k.new_paper_cats({actions, width, 5, 0.5, 0.5, NodeLearner::coin_margin}); }},
    {"paper-cats-adagrad-squared",
     [](const Kernels& k, S&) {
       return k.new_paper_cats({actions, width, 5, 0.5, 0.0, NodeLearner::adagrad_squared});
     }},
    {"paper-cats-adagrad-logistic",
     [](const Kernels& k, S&) {
       return k.new_paper_cats({actions, width, 5, 0.5, 0.5, NodeLearner::adagrad_logistic});
     }},
    {"adaptive-cats-measured", [](const Kernels& k, S&) { return k.new_adaptive_cats(adaptive(Penalty::measured)); }},
    {"adaptive-cats-practical", [](const Kernels& k, S&) { return k.new_adaptive_cats(adaptive(Penalty::practical)); }},
    {"adaptive-cats-paper", [](const Kernels& k, S&) { return k.new_adaptive_cats(adaptive(Penalty::paper)); }},
    {"auto", [](const Kernels& k, S&) { return k.new_auto({actions, width, 42, false, 0, 0.0}); }},
    {"auto-bandwidth", [](const Kernels& k, S&) { return k.new_auto({actions, width, 42, false, 0, 0.75}); }, 300.0},
    {"auto-nearby-unknown-losses", nearby_auto},
    {"auto-named", named_auto},
    {"auto-sale", sale_auto},
    {"auto-units-start", units_auto},
    {"auto-bid", bid_auto},
    {"discrete-tree-coin-costs",
     [](const Kernels& k, S& s) { return k.new_discrete_tree(discrete(s), NodeLearner::coin_costs); }},
    {"discrete-tree-adagrad-logistic",
     [](const Kernels& k, S& s) { return k.new_discrete_tree(discrete(s), NodeLearner::adagrad_logistic); }},
    {"discrete-linear", [](const Kernels& k, S& s) { return k.new_discrete_linear(discrete(s)); }},
    {"linear", [](const Kernels& k, S&) { return k.new_linear({actions, width, 0.5, 0.1}); }},
};

void print(const char* name, const Hash& hash) {
  std::printf("%s %016llx\n", name, hash.value());
  std::fflush(stdout);
}

void play_all() {
  std::fprintf(stderr, "instruction set: %s\n", instruction_set().name.c_str());
  for (const Kind& kind : kinds) {
    Hash hash;
    play(hash, maker(kind));
    print(kind.name, hash);
  }
  for (const std::size_t named_features : {std::size_t{0}, features}) {
    Hash hash;
    play_knobs(hash, named_features);
    print(named_features > 0 ? "auto-knobs-named" : "auto-knobs", hash);
  }
}

}  // namespace
}  // namespace manul

int main() {
  try {
    manul::play_all();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
