// An agent of a file: its player in the core, and how it reads contexts, actions and narrower ranges in JSON.
//
// The same steps as in manul/agents (base.py, player_host.py, cats.py, auto.py, auto_knobs.py), so that decisions,
// densities and saved bytes are equal. All arguments are checked before anything changes.
#pragma once

#include "c_api/agent_settings.hpp"
#include "c_api/context_reader.hpp"
#include "play/knobs_player.hpp"
#include "play/player.hpp"
#include "simd/kernels.hpp"

namespace manul::api {

// The shortest text of a number that reads as the same one, as Python writes it.
inline std::string written(double number) {
  if (!std::isfinite(number)) return std::isnan(number) ? "nan" : number < 0 ? "-inf" : "inf";
  char text[40];
  int precision = 0;
  do std::snprintf(text, sizeof text, "%.*e", precision, number);
  while (++precision < 17 && std::strtod(text, nullptr) != number);
  const int exponent = std::atoi(std::strchr(text, 'e') + 1);
  if (exponent < -4 || exponent >= 16) {
    std::snprintf(text, sizeof text, "%.*g", precision, number);
    return text;
  }
  const int decimals = precision - 1 - exponent;
  std::snprintf(text, sizeof text, "%.*f", decimals > 0 ? decimals : 1, number);
  return text;
}

// Both players of the core, which may draw with another seed than their own.
struct NumberPlayer final : Player {
  using Player::Player;
  void set_seed(std::uint64_t seed) { settings_.exploration.seed = seed; }
};
struct SeveralPlayer final : KnobsPlayer {
  using KnobsPlayer::KnobsPlayer;
  void set_seed(std::uint64_t seed) { settings_.exploration.seed = seed; }
};

class Agent {
 public:
  Agent(const ModelFile& file, const Kernels& kernels, std::string signature)
      : settings_(file), kernels_(kernels), metadata_(file.metadata) {
    file.settings.members(
        [&](std::string_view name, Json::Value value) { sources_[std::string(name)] = value.source(); });
    metadata_.erase("parameters");
    describe(file, signature);
    restore(file);
  }

  const std::string& description() const { return description_; }

  void decide(const manul_context& context, const char* within, const std::uint64_t* seed, manul_decision& decision) {
    const Narrowed narrowed = narrow(within);
    const ContextView view = read(context, false);
    if (several_ != nullptr) {
      const Limited limited = limit();
      KnobsPlayer::Draw draws[most_knobs] = {};
      decision.number = base().decisions;
      set_seed(seed == nullptr ? settings_.seed : *seed);
      several_->decide(view, narrowed.knobs, base().decisions, limited, draws);
      set_seed(settings_.seed);
      ++base().decisions;
      fill(draws, decision);
    } else {
      decision.number = base().decisions;
      set_seed(seed == nullptr ? settings_.seed : *seed);
      const Decision drawn = number_->decide(view, narrowed.range);
      set_seed(settings_.seed);
      decision.density = drawn.density, decision.floor = drawn.floor;
      decision.size = 1;
      decision.values[0] = {drawn.action, nullptr, drawn.density};
    }
    decision.low = narrowed.range.low, decision.high = narrowed.range.high;
  }

  void best(const manul_context& context, const char* within, manul_decision& decision) {
    const Narrowed narrowed = narrow(within);
    const ContextView view = read(context, false);
    double values[most_knobs];
    if (several_ != nullptr) {
      several_->best(view, narrowed.knobs, limit(), values);
      for (std::size_t k = 0; k < knobs().size(); ++k) values[k] = knobs()[k].value(values[k]);
    } else {
      values[0] = number_->window(view, narrowed.range).centre;
    }
    decision.number = base().decisions;
    decision.density = decision.floor = 0.0;
    decision.low = narrowed.range.low, decision.high = narrowed.range.high;
    set_values(values, decision);
  }

  void learn(const manul_context& context, const manul_decision& decision, double outcome) {
    if (decision.size != knobs().size()) fail_decision();
    const double loss = settings_.rewards ? 0.0 - outcome : outcome;
    if (settings_.kind == ModelKind::auto_knobs)
      learn_several(context, decision, outcome, loss);
    else
      learn_number(context, decision, outcome, loss);
  }

  void read_decision(const char* action, const char* within, double density, manul_decision& decision) const {
    const Narrowed narrowed = narrow(within);
    const Json::Value value = arguments_.parse(action == nullptr ? "null" : action, "action");
    decision.number = 0;
    decision.density = density, decision.floor = 0.0;
    decision.low = narrowed.range.low, decision.high = narrowed.range.high;
    double values[most_knobs];
    for (std::size_t k = 0; k < knobs().size(); ++k) {
      const SpaceKnob& knob = knobs()[k];
      Json::Value own = value;
      if (!knob.name.empty()) {
        if (!value.is_object()) fail("action", "action must be a mapping of %s to values.", names().c_str());
        check_names(value, "action");
        own = value[knob.name];
        if (!own) fail(knob.name, "action must set the knob %s too.", quoted(knob.name).c_str());
      }
      values[k] = knob.is_choice() ? knob.position(own) : finite_number(own, knob.title());
      if (settings_.kind == ModelKind::auto_knobs) knob.position(values[k]);
    }
    set_values(values, decision);
  }

  std::string save() {
    std::map<std::string, std::string> members(sources_.begin(), sources_.end());
    FileArrays arrays;
    members["width"] = "null", members["names"] = "null";
    std::uint64_t decisions = 0, learned = 0;
    if (player_ != nullptr) {
      members["width"] = std::to_string(named_ ? 0 : base().settings().width);
      if (named_) members["names"] = names_json();
      base().model().start();
      for (std::size_t i = 0; i < base().model().arrays(); ++i) {
        const Array array = base().model().array(i);
        const FileArray saved = {array_type(array.type), "(" + std::to_string(array.size) + ",)", array.size, 1,
                                 static_cast<const unsigned char*>(array.data)};
        arrays.emplace(name_of(array), saved);
      }
      const auto add = [&](const char* name, std::uint64_t& to, std::uint64_t count) {
        to = count;
        arrays.emplace(name, FileArray{array_type("u8"), "(1,)", 1, 1, reinterpret_cast<const unsigned char*>(&to)});
      };
      add("decisions", decisions, base().decisions);
      if (settings_.fades) add("learned", learned, base().learned);
    }
    Metadata metadata = metadata_;
    std::string& text = metadata["parameters"];
    text = "{";
    for (const auto& [name, source] : members) {
      if (text.size() > 1) text += ", ";
      write_json(text, name);
      text += ": " + source;
    }
    text += '}';
    return write_file(std::move(metadata), arrays);
  }

  // After a call that failed: removes what it has added.
  void recover() {
    if (player_ == nullptr) return;
    if (reading_) base().encoder.undo();
    reading_ = false;
    set_seed(settings_.seed);
    if (begun_) player_ = nullptr, number_.reset(), several_.reset();
    begun_ = false;
  }
  void succeed() { begun_ = false; }

  [[noreturn]] void fail_field() const { api::fail_field(base().encoder); }

  [[noreturn]] void fail_nothing_left(const NothingLeft& nothing) const {
    const SpaceKnob& knob = knobs()[nothing.knob];
    std::string given, fields;
    for (const std::string& name : settings_.limits.mentioned[nothing.knob]) {
      const SpaceKnob* other = find(name);
      std::string& to = other == nullptr ? fields : given;
      if (!to.empty()) to += " and ";
      to += name;
      if (other == nullptr) continue;
      const auto place = static_cast<std::size_t>(other - knobs().data());
      char value[40];
      std::snprintf(value, sizeof value, "%.4g", other->value(nothing.positions[place]));
      to += " is " +
            (other->is_choice() ? other->options[static_cast<std::size_t>(nothing.positions[place])].json : value);
    }
    fail("limits", "The limits leave no %s of %s%s%s%s%s. Narrow what it depends on, or change the limits.",
         knob.is_choice()   ? "option"
         : knob.is_number() ? "range"
                            : "value",
         knob.name.c_str(), given.empty() ? "" : " if ", given.c_str(), fields.empty() ? "" : " with this ",
         fields.c_str());
  }

 private:
  static constexpr std::size_t features = 1u << 16, sketch = 64;  // as FEATURES and SKETCH in manul/agents
  static constexpr double most_rounds = 0x1p53;

  struct Narrowed {
    Range range = {};  // of an action that is one number
    KnobRange knobs[most_knobs] = {};
  };

  const std::vector<SpaceKnob>& knobs() const { return settings_.knobs; }
  BasePlayer& base() { return *player_; }
  const BasePlayer& base() const { return *player_; }

  const SpaceKnob* find(std::string_view name) const {
    const auto found =
        std::find_if(knobs().begin(), knobs().end(), [&](const auto& knob) { return knob.name == name; });
    return found == knobs().end() ? nullptr : &*found;
  }

  std::string names() const {
    std::string all;
    for (const SpaceKnob& knob : knobs()) all += (all.empty() ? "" : ", ") + knob.name;
    return all;
  }

  void check_names(Json::Value given, const char* what) const {
    given.members([&](std::string_view name, Json::Value) {
      if (find(name) == nullptr)
        fail(what, "%s has an unknown knob %s. The knobs are %s.", what, quoted(name).c_str(), names().c_str());
    });
  }

  void set_seed(std::uint64_t seed) {
    if (several_ != nullptr) several_->set_seed(seed);
    if (number_ != nullptr) number_->set_seed(seed);
  }

  Narrowed narrow(const char* text) const {
    const Json::Value within = text == nullptr ? Json::Value() : arguments_.parse(text, "within");
    Narrowed narrowed;
    if (settings_.kind != ModelKind::auto_knobs) {
      narrowed.range = narrow_number(within);
      return narrowed;
    }
    const bool named = !knobs()[0].name.empty(), given = within && !within.is_null();
    if (named && given && !within.is_object())
      fail("within", "within must be a mapping of knobs to ranges, got %s.",
           std::string(within.source().substr(0, 60)).c_str());
    if (named && given) check_names(within, "within");
    for (std::size_t k = 0; k < knobs().size(); ++k)
      narrowed.knobs[k] = knobs()[k].narrow(!given ? Json::Value() : named ? within[knobs()[k].name] : within);
    return narrowed;
  }

  Range narrow_number(Json::Value within) const {
    const Range all = settings_.actions();
    if (!within || within.is_null()) return all;
    if (within.size() != 2 || !within.is_list() || !within.item(0).is_number() || !within.item(1).is_number())
      fail("within", "within must be two numbers (low, high), got %s. Omit it for the whole range.",
           std::string(within.source().substr(0, 60)).c_str());
    const double low = within.item(0).number(), high = within.item(1).number();
    const double bandwidth = settings_.is_cats ? settings_.bandwidth : 0.0;
    const std::string ends = "got (" + written(low) + ", " + written(high) + ")";
    if (!(all.low <= low && low < high && high <= all.high))
      fail("within", "within must lie inside the range of actions (%s, %s) with low < high, %s.",
           written(all.low).c_str(), written(all.high).c_str(), ends.c_str());
    if (high - low < SpaceKnob::narrowest * (all.high - all.low))
      fail("within", "within must be at least %g wide, %s.", SpaceKnob::narrowest * (all.high - all.low), ends.c_str());
    if (high - low < 2.0 * bandwidth * (1.0 - 1e-12))
      fail("within",
           "within must be at least two bandwidths (%g) wide, got (%g, %g). Widen it or reduce the bandwidth.",
           2.0 * bandwidth, low, high);
    return {low, high};
  }

  // The view of a context; the first one says whether contexts are rows, and of which width.
  ContextView read(const manul_context& context, bool learning) {
    context_ = Json::Value();
    if (context.json == nullptr) return read_row(context.row, context.size);
    const Json::Value value = json_.parse({context.json, context.size}, "context");
    if (value.is_object()) {
      context_ = value;
      if ((player_ != nullptr && named_) || value.size() > 0) return read_fields(value, learning);
      return read_row(nullptr, 0);
    }
    if (!value.is_list() && !value.is_null())
      fail("context", "context must be a row of numbers or a mapping of fields, got %s. Try {'city': 'Oslo'}.",
           std::string(value.source().substr(0, 60)).c_str());
    row_.clear();
    if (value.is_list())
      value.items([&](Json::Value number) {
        if (!number.is_number() && number.type() != JsonType::flag)
          fail("context", "context must be a row of numbers or a mapping of fields, got %s. Try {'city': 'Oslo'}.",
               std::string(value.source().substr(0, 60)).c_str());
        row_.push_back(number.number());
      });
    return read_row(row_.data(), row_.size());
  }

  ContextView read_row(const double* row, std::size_t width) {
    if (player_ != nullptr && named_) {
      if (width == 0) return read_fields(json_.parse("{}", "context"), false);
      fail("context", "context must be a mapping like the first one, got a row of numbers.");
    }
    for (std::size_t i = 0; i < width; ++i)
      if (!std::isfinite(static_cast<float>(row[i])))
        fail("context", "context must be finite numbers, got %g in column %zu. Fill in missing values first.",
             static_cast<double>(static_cast<float>(row[i])), i);
    if (player_ == nullptr) begin(width, false);
    if (width != base().settings().width)
      fail("context", "context must have %zu numbers, like the first one, got %zu. Use a new agent for new features.",
           base().settings().width, width);
    return base().row_view(row, width);
  }

  ContextView read_fields(Json::Value fields, bool learning) {
    if (player_ == nullptr) begin(0, true);
    if (!named_)
      fail("context", "context must be a row of %zu numbers like the first one, got a mapping.",
           base().settings().width);
    base().encoder.start(learning);
    reading_ = true;
    reader_.read(base().encoder, fields);
    base().encoder.finish();
    reading_ = false;
    return base().named_view(learning);
  }

  // The limits of one decision, with the numbers of its context that they need.
  Limited limit() {
    const CompiledLimits& limits = settings_.limits;
    if (limits.limits == nullptr) return {};
    field_values_.clear();
    for (const std::string& name : limits.fields) {
      if (!context_)
        fail("context", "The limits need the number %s, so contexts must have names, but this one has none.",
             quoted(name).c_str());
      const Json::Value value = find_field(context_, name);
      const bool number = value && (value.is_number() || value.type() == JsonType::flag);
      if (!number || !std::isfinite(value.number()))
        fail(name, "The limits need the number %s in the context, which has %s.", quoted(name).c_str(),
             !value || value.is_null() ? "none" : std::string(value.source().substr(0, 60)).c_str());
      field_values_.push_back(value.number());
    }
    return {limits.limits.get(), field_values_.data()};
  }

  // A field by its name, or by the names of nested ones joined by dots.
  static Json::Value find_field(Json::Value fields, std::string_view name) {
    if (const Json::Value whole = fields[name]; whole) return whole;
    const std::size_t dot = name.find('.');
    if (dot == std::string_view::npos) return {};
    const Json::Value inner = fields[name.substr(0, dot)];
    return inner && inner.is_object() ? find_field(inner, name.substr(dot + 1)) : Json::Value();
  }

  void fill(const KnobsPlayer::Draw* draws, manul_decision& decision) const {
    double joint = 1.0, floor = 1.0, volume = 1.0, values[most_knobs];
    for (std::size_t k = 0; k < knobs().size(); ++k) {
      const SpaceKnob& knob = knobs()[k];
      values[k] = knob.value(draws[k].position);
      decision.values[k].density = draws[k].density / knob.unit();
      joint *= decision.values[k].density, floor *= draws[k].floor, volume *= knob.unit();
    }
    decision.density = joint;
    floor /= volume;
    decision.floor = joint < floor ? joint : floor;
    for (std::size_t k = 0; k < knobs().size(); ++k) set_value(k, values[k], decision.values[k].density, decision);
    decision.size = knobs().size();
  }

  void set_values(const double* values, manul_decision& decision) const {
    for (std::size_t k = 0; k < knobs().size(); ++k) set_value(k, values[k], 0.0, decision);
    decision.size = knobs().size();
  }

  void set_value(std::size_t k, double value, double density, manul_decision& decision) const {
    const SpaceKnob& knob = knobs()[k];
    const char* option = knob.is_choice() ? knob.options[static_cast<std::size_t>(value)].json.c_str() : nullptr;
    decision.values[k] = {value, option, density};
  }

  [[noreturn]] static void fail_decision() {
    fail("decision", "decision must be one of this agent, as manul_decide or manul_read_decision has filled it.");
  }

  void check_density(double density) const {
    if (!(density >= least_density && density <= largest_density))
      fail("density", "density must be in [1e-100, 1e+100], got %g. Pass the %s.", density,
           settings_.kind == ModelKind::auto_knobs ? "density of the decision"
                                                   : "decision unchanged, as returned by decide");
  }

  void check_outcome(double outcome, double loss) const {
    const char* name = settings_.rewards ? "reward" : "loss";
    const Range losses = settings_.losses;
    if (std::isnan(outcome))
      fail(name, "%s is NaN (not a number); leave out decisions whose %s is not known.", name, name);
    if (is_unknown(losses)) {
      if (!std::isfinite(loss))
        fail(name, "%s must be finite, got %g. Limit or leave out infinite values.", name, outcome);
    } else if (!(loss >= losses.low && loss <= losses.high)) {
      const double low = settings_.rewards ? 0.0 - losses.high : losses.low;
      const double high = settings_.rewards ? 0.0 - losses.low : losses.high;
      fail(name, "%s must be in [%g, %g], got %g. Declare the range with %s=(low, high).", name, low, high, outcome,
           settings_.rewards ? "rewards" : "losses");
    }
  }

  void learn_number(const manul_context& context, const manul_decision& decision, double outcome, double loss) {
    const Range all = settings_.actions(), within = {decision.low, decision.high};
    const double action = decision.values[0].value;
    if (!(within.low >= all.low && within.high <= all.high && within.low < within.high)) fail_decision();
    if (!(action >= within.low && action <= within.high))
      fail("action", "action must be in [%g, %g], got %g. Pass the decision unchanged, as returned by decide.",
           within.low, within.high, action);
    check_density(decision.density);
    check_outcome(outcome, loss);
    const ContextView view = read(context, true);
    number_->learn(view, number_->outcome(action, decision.density, loss, within));
  }

  void learn_several(const manul_context& context, const manul_decision& decision, double outcome, double loss) {
    double positions[most_knobs], volume = 1.0;
    for (std::size_t k = 0; k < knobs().size(); ++k) {
      positions[k] = knobs()[k].position(decision.values[k].value);
      volume *= knobs()[k].volume();
    }
    check_density(decision.density);
    check_outcome(outcome, loss);
    const double relative = decision.density * volume;
    check_density(relative);
    const ContextView view = read(context, true);
    several_->learn(view, positions, relative, loss);
  }

  // A player for rows of a width, or for named fields.
  void make_player(std::size_t width, bool named) {
    const Exploration exploration = {settings_.schedule, settings_.seed, {}, 0.0, settings_.by_evidence};
    const Range actions = settings_.kind == ModelKind::auto_knobs ? Range{0.0, 1.0} : settings_.actions();
    PlayerSettings player{actions, settings_.losses, width, exploration};
    const bool is_auto = !settings_.is_cats;
    if (named && is_auto) player.naming = Naming::numbered, player.features = features;
    if (named && settings_.kind == ModelKind::cats) player.naming = Naming::hashed;
    if (named && settings_.kind == ModelKind::paper_cats) player.width = sketch;
    check_memory(player.width);
    named_ = named;
    if (settings_.kind == ModelKind::auto_knobs) {
      std::vector<Knob> all;
      for (const SpaceKnob& knob : knobs()) all.push_back(knob.core);
      KnobsModel* model = kernels_.new_auto_knobs({all.data(), all.size(), width, settings_.seed,
                                                   is_unknown(settings_.losses), player.features, settings_.early,
                                                   settings_.starts.empty() ? nullptr : settings_.starts.data()});
      several_ = std::make_unique<SeveralPlayer>(model, player, std::move(all), settings_.nearby);
      player_ = several_.get();
    } else {
      player.exploration.nearby = is_auto ? settings_.nearby : 0.0;
      number_ = std::make_unique<NumberPlayer>(new_model(player), player);
      player_ = number_.get();
      if (named && settings_.kind == ModelKind::paper_cats) base().sketch_names();
    }
    if (settings_.half_life) base().model().forget(*settings_.half_life);
  }

  PolicyModel* new_model(const PlayerSettings& player) const {
    const Range actions = settings_.actions();
    switch (settings_.kind) {
      case ModelKind::cats:
        return kernels_.new_cats({actions, player.width, settings_.depth, settings_.bandwidth,
                                  player.naming == Naming::hashed ? settings_.table_bits : 0});
      case ModelKind::paper_cats:
        return kernels_.new_paper_cats(
            {actions, player.width, settings_.depth, settings_.bandwidth, 0.0, settings_.learner});
      default:
        return kernels_.new_auto({actions, player.width, settings_.seed, is_unknown(settings_.losses), player.features,
                                  settings_.bandwidth, settings_.early, settings_.start, false, PartsSettings()});
    }
  }

  // Where addresses have 32 bits, products of sizes must not wrap around.
  void check_memory(std::size_t width) const {
    if (sizeof(std::size_t) > 4 || !settings_.is_cats) return;
    const double rows = std::ldexp(1.0, static_cast<int>(settings_.depth)) + 1.0;
    if (rows * (static_cast<double>(width) + 32.0) * 8.0 > 0x1p30)
      fail("bytes", "file has an agent that is too large for WebAssembly.");
  }

  void begin(std::size_t width, bool named) {
    make_player(width, named);
    begun_ = true;
  }

  static std::string name_of(const Array& array) {
    return array.part == 0 ? array.name : std::to_string(array.part) + "." + array.name;
  }

  std::string names_json() const {
    std::map<std::string, std::string_view> fields;
    static constexpr std::string_view kinds[] = {"number", "text", "flag", "time"};
    for (const auto& [name, field] : base().encoder.fields())
      fields[name] = kinds[static_cast<std::size_t>(field.kind)];
    std::string json = "{\"columns\": " + json_of(base().columns()) +
                       ", \"features\": " + json_of(base().encoder.names()) + ", \"fields\": {";
    for (bool first = true; const auto& [name, kind] : fields) {
      if (!first) json += ", ";
      first = false;
      write_json(json, name);
      json += ": ";
      write_json(json, kind);
    }
    return json + "}}";
  }

  void describe(const ModelFile& file, const std::string& signature) {
    description_ = "{\"kind\": ";
    write_json(description_, file.kind());
    description_ += ", \"model\": \"" + signature + "\", \"outcome\": \"" + (settings_.rewards ? "reward" : "loss");
    description_ += "\", \"actions\": " + std::string(file.settings["actions"].source()) + ", \"knobs\": [";
    for (const SpaceKnob& knob : knobs()) {
      if (&knob != &knobs()[0]) description_ += ", ";
      write_json(description_, knob.name);
    }
    description_ += "]}";
  }

  void restore(const ModelFile& file) {
    const Json::Value width = file.settings["width"], names = file.settings["names"];
    if (!width || !names) fail_mismatch();
    if (width.is_null() && names.is_null() && file.arrays.empty()) return;  // it has not seen a context
    std::size_t columns = sketch, numbers = 0;
    if (names.is_null())
      columns = static_cast<std::size_t>(AgentSettings::number(width, "width", 0.0, 4294967295.0));
    else if (!names.is_object() || !width.is_number() || width.number() != 0.0)
      fail_mismatch();
    for (const auto& [name, array] : file.arrays) numbers += array.size;
    if (columns > numbers) fail_mismatch();  // before memory is allocated
    make_player(names.is_null() ? columns : 0, !names.is_null());
    if (named_) restore_names(names);
    FileArrays arrays = file.arrays;
    restore_count(arrays, "decisions", base().decisions);
    if (settings_.fades) restore_count(arrays, "learned", base().learned);
    restore_model(arrays);
  }

  static void restore_count(FileArrays& arrays, const char* name, std::uint64_t& count) {
    const auto found = arrays.find(name);
    if (found == arrays.end() || found->second.type != array_type("u8") || found->second.size != 1 ||
        found->second.dimensions != 1)
      fail_mismatch();
    std::memcpy(&count, found->second.data, sizeof count);
    if (static_cast<double>(count) > most_rounds) fail_mismatch();
    arrays.erase(found);
  }

  // All sizes and types are compared before anything is written.
  void restore_model(const FileArrays& saved) {
    Model& model = base().model();
    std::vector<const FileArray*> arrays;
    for (std::size_t i = 0; i < model.arrays(); ++i) {
      const auto found = saved.find(name_of(model.array(i)));
      if (found == saved.end())
        fail("bytes",
             "file was written by an earlier version, or is damaged: it has no array %s. Load it in Python and save it "
             "again.",
             quoted(name_of(model.array(i))).c_str());
      arrays.push_back(&found->second);
    }
    if (saved.size() != model.arrays()) fail_mismatch();
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      model.fit(i, arrays[i]->size);
      if (arrays[i]->dimensions != 1 || arrays[i]->size != model.array(i).size ||
          arrays[i]->type != array_type(model.array(i).type))
        fail_mismatch();
    }
    model.start();
    for (std::size_t i = 0; i < arrays.size(); ++i) overwrite(model.array(i).data, *arrays[i]);
    if (!model.is_valid()) fail_mismatch();
    model.resume();
  }

  // Skips pages that are already equal, because pages of zeros that were never written take no memory.
  static void overwrite(void* to, const FileArray& from) {
    constexpr std::size_t page = 4096;
    for (std::size_t at = 0; at < from.bytes(); at += page) {
      const std::size_t length = std::min(page, from.bytes() - at);
      char* target = static_cast<char*>(to) + at;
      if (std::memcmp(target, from.data + at, length) != 0) std::memcpy(target, from.data + at, length);
    }
  }

  void restore_names(Json::Value names) {
    static constexpr std::string_view kinds[] = {"number", "text", "flag", "time"};
    const Json::Value fields = names["fields"], known = names["features"], columns = names["columns"];
    if (names.size() != 3 || !fields || !known || !columns || !fields.is_object() || !known.is_object() ||
        !columns.is_object() || std::max(fields.size(), known.size()) > features)
      fail_names();
    std::map<std::string, Kind> sorted_fields;
    fields.members([&](std::string_view name, Json::Value kind) {
      const auto* found = std::find(std::begin(kinds), std::end(kinds), kind.is_text() ? kind.text() : "");
      if (found == std::end(kinds)) fail_names();
      sorted_fields[std::string(name)] = static_cast<Kind>(found - std::begin(kinds));
    });
    for (const auto& [name, kind] : sorted_fields) base().encoder.remember(name, kind);
    std::map<std::uint32_t, std::string> sorted_names;
    known.members([&](std::string_view feature, Json::Value name) {
      if (!name.is_text()) fail_names();
      sorted_names[whole(feature, 4294967296.0)] = name.text();
    });
    for (const auto& [feature, name] : sorted_names) base().encoder.remember(feature, name);
    ColumnSketch::Columns places;
    const auto count = static_cast<double>(columns.size());
    columns.members([&](std::string_view feature, Json::Value column) {
      if (!column.is_number()) fail_names();
      places[whole(feature, 4294967296.0)] = whole(column.source(), count);
    });
    base().set_columns(places);
  }

  [[noreturn]] static void fail_names() { fail("names", "file is damaged: invalid names of context fields."); }

  static std::uint32_t whole(std::string_view digits, double end) {
    std::uint32_t number = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (result.ec != std::errc() || result.ptr != digits.data() + digits.size() || number >= end) fail_names();
    return number;
  }

  AgentSettings settings_;
  const Kernels& kernels_;
  Metadata metadata_;
  std::map<std::string, std::string> sources_;  // of the settings in JSON, as they are saved again
  std::string description_;
  // One of them is the player; there is none before the first context.
  std::unique_ptr<NumberPlayer> number_;
  std::unique_ptr<SeveralPlayer> several_;
  BasePlayer* player_ = nullptr;
  bool named_ = false, reading_ = false, begun_ = false;

  // Their memory is used again by the next call.
  Json json_;
  mutable Json arguments_;
  Json::Value context_;
  ContextReader reader_;
  std::vector<double> row_, field_values_;
};

}  // namespace manul::api
