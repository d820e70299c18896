// Compiles the limits of a file, texts such as "discount <= 1 - 9 / price", for the core; as manul/actions/limits.py
// does.
#pragma once

#include <optional>

#include "c_api/action_space.hpp"
#include "c_api/formula_parser.hpp"
#include "knobs/limits.hpp"

namespace manul::api {

struct CompiledLimits {
  std::unique_ptr<DeclaredLimits> limits;
  std::vector<std::string> fields;                  // of the context
  std::vector<std::vector<std::string>> mentioned;  // the names in the limits of each knob
};

class LimitCompiler {
 public:
  explicit LimitCompiler(const std::vector<SpaceKnob>& knobs) : knobs_(knobs) {}

  CompiledLimits compile(const std::vector<std::string>& texts) {
    if (texts.size() > most_limits) wrong("there are too many");
    for (const std::string& text : texts) add(text);
    CompiledLimits compiled;
    compiled.mentioned.resize(knobs_.size());
    for (const Clause& clause : clauses_)
      for (const std::string& name : names(clause)) {
        if (!number(name) && std::find(fields_.begin(), fields_.end(), name) == fields_.end()) fields_.push_back(name);
        auto& own = compiled.mentioned[clause.knob];
        if (std::find(own.begin(), own.end(), name) == own.end()) own.push_back(name);
      }
    std::vector<Scale> scales;
    for (const SpaceKnob& knob : knobs_) scales.push_back(knob.scale());
    std::vector<Limit> limits;
    for (const Clause& clause : clauses_)
      limits.push_back({clause.knob, clause.side, clause.allowed, program(clause.bound), program(clause.where)});
    compiled.limits = std::make_unique<DeclaredLimits>(std::move(scales), std::move(limits), order(), fields_.size());
    compiled.fields = fields_;
    return compiled;
  }

 private:
  static constexpr std::size_t most_limits = 64;
  using Maybe = std::optional<Formula>;

  // One bound of one knob.
  struct Clause {
    std::size_t knob;
    Side side;
    Maybe bound, where;
    std::uint32_t allowed = 0;
  };

  [[noreturn]] static void wrong(const char* reason) {
    fail("limits", "file is damaged: limits are wrong (%s).", reason);
  }

  std::optional<std::size_t> number(std::string_view name) const {
    for (std::size_t k = 0; k < knobs_.size(); ++k)
      if (knobs_[k].name == name) return k;
    return {};
  }

  static std::vector<std::string> names(const Clause& clause) {
    std::vector<std::string> all, where;
    if (clause.bound) clause.bound->names(all);
    if (clause.where) clause.where->names(where);
    all.insert(all.end(), where.begin(), where.end());
    return all;
  }

  void add(const std::string& text) {
    auto [rule, condition] = FormulaParser(text).rule();
    const Maybe where = condition.empty() ? Maybe() : Maybe(condition[0]);
    std::vector<std::string> used;
    rule.names(used);
    for (std::size_t k = 0; k < knobs_.size(); ++k)
      if (knobs_[k].is_choice() && used.size() == 1 && used[0] == knobs_[k].name) return add_options(k, rule, where);
    add_bounds(conjuncts(rule), where);
  }

  static std::vector<Formula> conjuncts(const Formula& formula) {
    if (formula.operation != "and") return {formula};
    std::vector<Formula> all = conjuncts(formula.parts[0]), others = conjuncts(formula.parts[1]);
    all.insert(all.end(), others.begin(), others.end());
    return all;
  }

  static bool has(const Formula& condition, std::string_view name) {
    return std::any_of(condition.parts.begin(), condition.parts.end(),
                       [&](const auto& part) { return part.is_name(name); });
  }

  // The sign and the other side of a comparison, with the name on the left.
  static std::pair<std::string, Formula> bare(const Formula& condition, std::string_view name) {
    if (condition.parts[0].is_name(name)) return {condition.operation, condition.parts[1]};
    const std::string& sign = condition.operation;
    return {sign == "<"    ? ">"
            : sign == "<=" ? ">="
            : sign == ">"  ? "<"
            : sign == ">=" ? "<="
                           : sign,
            condition.parts[0]};
  }

  static std::vector<Side> sides(const std::string& sign) {
    if (sign == "<=") return {Side::most};
    if (sign == ">=") return {Side::least};
    if (sign == "<") return {Side::below};
    if (sign == ">") return {Side::above};
    if (sign == "==") return {Side::least, Side::most};
    return {};
  }

  // The knob that all conditions bound, and its bounds by side.
  void add_bounds(const std::vector<Formula>& conditions, const Maybe& where) {
    const auto bounds_all = [&](const std::string& name) {
      return std::all_of(conditions.begin(), conditions.end(),
                         [&](const Formula& each) { return is_comparison(each.operation) && has(each, name); });
    };
    std::string knob;
    if (is_comparison(conditions[0].operation))
      for (const Formula& part : conditions[0].parts)
        if (knob.empty() && part.operation == "name" && number(part.text) && bounds_all(part.text)) knob = part.text;
    if (knob.empty() || knobs_[*number(knob)].is_choice()) wrong("one compares no knob");
    Maybe bounds[4];  // by side
    for (const Formula& condition : conditions) {
      const auto [sign, bound] = bare(condition, knob);
      if (sides(sign).empty()) wrong("one compares by !=");
      for (const Side side : sides(sign)) {
        Maybe& known = bounds[static_cast<std::size_t>(side)];
        const bool lower = side == Side::least || side == Side::above;
        known = known ? Formula{lower ? "max" : "min", {*known, bound}} : bound;
      }
    }
    for (const Side side : {Side::least, Side::most, Side::above, Side::below})
      if (const Maybe& bound = bounds[static_cast<std::size_t>(side)]; bound)
        clauses_.push_back({*number(knob), side, bound, where});
  }

  void add_options(std::size_t k, const Formula& rule, const Maybe& where) {
    std::uint32_t allowed = 0;
    const Program holds = program(rule);
    for (std::size_t i = 0; i < knobs_[k].options.size(); ++i) {
      const double value = holds.run([&](const Instruction& step) {
        return step.operation == Operation::option ? static_cast<double>(i) : knobs_[k].options[i].number;
      });
      if (value == 1.0) allowed |= 1u << i;
    }
    if (allowed == 0) wrong("one leaves no option");
    for (const Maybe& condition : cases(where)) add_case(k, allowed, condition);
  }

  // The conditions that a condition joins by `or`.
  static std::vector<Maybe> cases(const Maybe& where) {
    if (!where || where->operation != "or") return {where};
    std::vector<Maybe> all;
    for (const Formula& part : where->parts)
      for (const Maybe& each : cases(part)) all.push_back(each);
    return all;
  }

  void add_case(std::size_t k, std::uint32_t allowed, const Maybe& where) {
    std::vector<std::string> used;
    if (where) where->names(used);
    std::vector<std::size_t> others;
    for (std::size_t other = 0; other < knobs_.size(); ++other)
      if (!knobs_[other].is_choice() && std::find(used.begin(), used.end(), knobs_[other].name) != used.end())
        others.push_back(other);
    if (others.empty())
      clauses_.push_back({k, Side::only, {}, where, allowed});
    else
      add_turned(k, allowed, *where, others);
  }

  // A limit of a choice that depends on numbers, as a limit of the last of these numbers.
  void add_turned(std::size_t k, std::uint32_t allowed, const Formula& where, const std::vector<std::size_t>& others) {
    const std::vector<Formula> conditions = conjuncts(where);
    for (std::size_t at = others.size(); at-- > 0;)
      for (std::size_t c = 0; c < conditions.size(); ++c) {
        const std::string &name = knobs_[others[at]].name, &operation = conditions[c].operation;
        if (!is_comparison(operation) || operation == "==" || !has(conditions[c], name)) continue;
        const auto [sign, bound] = bare(conditions[c], name);
        Maybe rest;
        const auto join = [&](const Formula& each) { rest = rest ? Formula{"and", {*rest, each}} : each; };
        for (std::size_t other = 0; other < conditions.size(); ++other)
          if (other != c) join(conditions[other]);
        join({"not", {any_of(k, allowed)}});
        const std::string negated = sign == "<"    ? ">="
                                    : sign == "<=" ? ">"
                                    : sign == ">"  ? "<="
                                    : sign == ">=" ? "<"
                                                   : "==";
        for (const Side side : sides(negated)) clauses_.push_back({others[at], side, bound, rest});
        return;
      }
    wrong("one bounds a choice by what is set after it");
  }

  Formula any_of(std::size_t k, std::uint32_t allowed) const {
    Maybe condition;
    for (std::size_t i = 0; i < knobs_[k].options.size(); ++i) {
      if ((allowed >> i & 1u) == 0) continue;
      const Option& option = knobs_[k].options[i];
      Formula value = option.is_text ? Formula{"text", {}, 0.0, option.text} : Formula{"number", {}, option.number};
      Formula each = {"==", {{"name", {}, 0.0, knobs_[k].name}, std::move(value)}};
      condition = condition ? Formula{"or", {*condition, each}} : each;
    }
    return *condition;
  }

  Program program(const Maybe& formula) const {
    std::vector<Instruction> steps;
    if (formula) append(*formula, steps);
    Program made(std::move(steps));
    if (formula && !made.is_valid(knobs_.size(), fields_.size())) wrong("one is no formula");
    return made;
  }

  void append(const Formula& formula, std::vector<Instruction>& steps) const {
    if (formula.operation == "number") return steps.push_back({Operation::number, formula.number});
    if (formula.operation == "name") return steps.push_back(load(formula.text, false));
    if (formula.parts.size() == 2 && formula.parts[1].operation == "text") {
      const std::string& name = formula.parts[0].text;
      steps.push_back(load(name, true));
      steps.push_back({Operation::number, option(name, formula.parts[1].text)});
    } else {
      for (const Formula& part : formula.parts) append(part, steps);
    }
    const auto operation = operation_named(formula.operation);
    if (!operation) wrong("one is no formula");
    steps.push_back({*operation, 0.0});
  }

  Instruction load(const std::string& name, bool is_text) const {
    const auto k = number(name);
    if (!k) {
      if (is_text) wrong("one compares a field with a text");
      const auto place = std::find(fields_.begin(), fields_.end(), name) - fields_.begin();
      return {Operation::field, static_cast<double>(place)};
    }
    if (is_text && !knobs_[*k].is_choice()) wrong("one compares a number with a text");
    return {is_text ? Operation::option : Operation::value, static_cast<double>(*k)};
  }

  double option(const std::string& name, const std::string& text) const {
    const auto& options = knobs_[*number(name)].options;
    for (std::size_t i = 0; i < options.size(); ++i)
      if (options[i].is_text && options[i].text == text) return static_cast<double>(i);
    wrong("one has an unknown option");
  }

  // Choices first, then as declared, but each knob after those that its limits mention.
  std::vector<std::size_t> order() const {
    std::vector<std::vector<bool>> needs(knobs_.size(), std::vector<bool>(knobs_.size()));
    for (const Clause& clause : clauses_)
      for (const std::string& name : names(clause))
        if (const auto before = number(name)) needs[clause.knob][*before] = true;
    std::vector<std::size_t> order;
    std::vector<bool> set(knobs_.size());
    while (order.size() < knobs_.size()) {
      std::optional<std::size_t> next;
      for (const bool choice : {true, false})
        for (std::size_t k = 0; k < knobs_.size(); ++k) {
          bool free = !next && !set[k] && knobs_[k].is_choice() == choice;
          for (std::size_t other = 0; other < knobs_.size(); ++other) free &= !needs[k][other] || set[other];
          if (free) next = k;
        }
      if (!next) wrong("knobs depend on each other");
      set[*next] = true;
      order.push_back(*next);
    }
    return order;
  }

  const std::vector<SpaceKnob>& knobs_;
  std::vector<Clause> clauses_;
  std::vector<std::string> fields_;
};

}  // namespace manul::api
