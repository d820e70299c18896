// Formulas as postfix programs; manul/utils/formulas.py parses and compiles them.
//
// A result that is not finite is NaN, and so is everything that needs it; `and`, `or` and `if` do not need what Python
// would not evaluate, and a product with a factor of 0 does not need the other one.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "numerics/arithmetic.hpp"

namespace manul {

// Loads come first, then operations on one, two and three values.
enum class Operation : std::uint8_t {
  number,
  value,
  option,
  field,
  negative,
  absolute,
  exponential,
  logarithm,
  negation,
  add,
  subtract,
  multiply,
  divide,
  power,
  minimum,
  maximum,
  below,
  at_most,
  above,
  at_least,
  equal,
  different,
  both,
  either,
  choose
};

struct Instruction {
  Operation operation;
  double number;  // a constant, or the number of a knob or field
};

class Program {
 public:
  static constexpr std::size_t deepest = 256;  // parts of a formula are at most 200

  Program() = default;
  explicit Program(std::vector<Instruction> instructions) : instructions_(std::move(instructions)) {}

  bool empty() const { return instructions_.empty(); }

  // Whether it leaves one value, and what it loads exists.
  bool is_valid(std::size_t knobs, std::size_t fields) const {
    std::size_t size = 0;
    for (const auto& [operation, number] : instructions_) {
      const std::size_t taken = arguments(operation);
      if (size < taken || size - taken + 1 > deepest) return false;
      size += 1 - taken;
      const bool field = operation == Operation::field, knob = taken == 0 && operation != Operation::number && !field;
      if ((field || knob) && !(number >= 0.0 && number < static_cast<double>(field ? fields : knobs))) return false;
    }
    return size == 1;
  }

  // The degree of a valid program as a polynomial of `value` number `knob`, or more than 1 if it is none.
  std::size_t degree(std::size_t knob) const {
    constexpr std::size_t none = 100;
    std::vector<std::size_t> stack;
    for (const auto& [operation, number] : instructions_) {
      if (arguments(operation) == 0) {
        stack.push_back(operation == Operation::value && number == static_cast<double>(knob) ? 1 : 0);
        continue;
      }
      const auto all = stack.end() - static_cast<std::ptrdiff_t>(arguments(operation));
      const std::size_t first = *all, last = stack.back(), most = *std::max_element(all, stack.end());
      std::size_t degree = most == 0 ? 0 : none;
      if (operation == Operation::negative || operation == Operation::add || operation == Operation::subtract)
        degree = most;
      if (operation == Operation::multiply) degree = std::min(none, first + last);
      if (operation == Operation::divide && last == 0) degree = first;
      if (operation == Operation::choose && first == 0) degree = most;
      stack.erase(all, stack.end());
      stack.push_back(degree);
    }
    return stack.empty() ? 0 : stack.back();
  }

  // `load(instruction)` returns the value of a knob, an option or a field.
  template <class Load>
  double run(Load&& load) const {
    double stack[deepest];
    std::size_t size = 0;
    for (const Instruction& step : instructions_) {
      const std::size_t taken = arguments(step.operation);
      size -= taken;
      stack[size] = taken == 0 ? loaded(step, load) : apply(step.operation, stack + size);
      ++size;
    }
    return stack[0];
  }

 private:
  static std::size_t arguments(Operation operation) {
    if (operation <= Operation::field) return 0;
    if (operation <= Operation::negation) return 1;
    return operation < Operation::choose ? 2 : 3;
  }

  template <class Load>
  static double loaded(const Instruction& step, Load&& load) {
    return finite(step.operation == Operation::number ? step.number : load(step));
  }

  static double finite(double x) { return std::isfinite(x) ? x : __builtin_nan(""); }

  static double apply(Operation operation, const double* x) {
    const double a = x[0], none = __builtin_nan("");
    if (operation == Operation::multiply && std::isnan(a)) return x[1] == 0.0 ? 0.0 : none;
    if (operation == Operation::multiply && std::isnan(x[1])) return a == 0.0 ? 0.0 : none;
    if (std::isnan(a)) return none;
    if (operation == Operation::both) return a == 0.0 ? 0.0 : truth(x[1]);
    if (operation == Operation::either) return a != 0.0 ? 1.0 : truth(x[1]);
    if (operation == Operation::choose) return a != 0.0 ? x[1] : x[2];
    switch (operation) {
      case Operation::negative: return -a;
      case Operation::absolute: return __builtin_fabs(a);
      case Operation::exponential: return finite(std::exp(a));
      case Operation::logarithm: return finite(std::log(a));
      case Operation::negation: return a == 0.0;
      default: return std::isnan(x[1]) ? none : finite(apply(operation, a, x[1]));
    }
  }

  static double apply(Operation operation, double a, double b) {
    switch (operation) {
      case Operation::add: return a + b;
      case Operation::subtract: return a - b;
      case Operation::multiply: return a * b;
      case Operation::divide: return a / b;
      case Operation::power: return std::pow(a, b);
      case Operation::minimum: return b < a ? b : a;
      case Operation::maximum: return b > a ? b : a;
      case Operation::below: return a < b;
      case Operation::at_most: return a <= b;
      case Operation::above: return a > b;
      case Operation::at_least: return a >= b;
      case Operation::equal: return a == b;
      default: return a != b;
    }
  }

  static double truth(double x) { return std::isnan(x) ? x : x != 0.0; }

  std::vector<Instruction> instructions_;
};

}  // namespace manul
