// The operations of formulas by their names there.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

#include "knobs/formulas.hpp"

namespace manul {

inline std::optional<Operation> operation_named(std::string_view name) {
  static constexpr std::pair<std::string_view, Operation> names[] = {
      {"number", Operation::number},   {"value", Operation::value},       {"option", Operation::option},
      {"field", Operation::field},     {"negative", Operation::negative}, {"abs", Operation::absolute},
      {"exp", Operation::exponential}, {"log", Operation::logarithm},     {"not", Operation::negation},
      {"+", Operation::add},           {"-", Operation::subtract},        {"*", Operation::multiply},
      {"/", Operation::divide},        {"**", Operation::power},          {"min", Operation::minimum},
      {"max", Operation::maximum},     {"<", Operation::below},           {"<=", Operation::at_most},
      {">", Operation::above},         {">=", Operation::at_least},       {"==", Operation::equal},
      {"!=", Operation::different},    {"and", Operation::both},          {"or", Operation::either},
      {"if", Operation::choose}};
  const auto* found = std::find_if(std::begin(names), std::end(names), [&](auto& each) { return name == each.first; });
  return found == std::end(names) ? std::nullopt : std::optional(found->second);
}

}  // namespace manul
