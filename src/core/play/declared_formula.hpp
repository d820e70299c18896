// The formula of an outcome as a program: `value` 0 is the action, `value` 1 and on are the parts.
//
// Parts are taken as independent given the context and the action. A part that the formula is linear in is replaced by
// its expectation; over a yes/no part that it is not linear in, such as a condition, the formula is summed.
#pragma once

#include "knobs/formulas.hpp"
#include "models/settings.hpp"

namespace manul {

class DeclaredFormula final : public OutcomeFormula {
 public:
  DeclaredFormula(Program program, const std::vector<PartKind>& kinds) : program_(std::move(program)) {
    for (std::size_t p = 0; p < kinds.size(); ++p) {
      if (program_.degree(p + 1) <= 1) continue;
      if (kinds[p] == PartKind::yes_no)
        summed_.push_back(p);
      else
        expected_ = false;
    }
  }

  // Whether expectations of the parts say the expectation of the outcome.
  bool is_expected() const { return expected_ && summed_.size() <= most_summed; }

  void expect(const double* actions, std::size_t count, const double* expectations, const double* fields,
              double* values) const override {
    for (std::size_t i = 0; i < count; ++i) {
      double total = 0.0;
      for (std::size_t truths = 0; truths < std::size_t{1} << summed_.size(); ++truths) {
        double chance = 1.0, parts[PartsSettings::most];
        for (std::size_t p = 0; p < PartsSettings::most; ++p) parts[p] = -1.0;  // not fixed
        for (std::size_t s = 0; s < summed_.size(); ++s) {
          const double yes = expectations[summed_[s] * count + i];
          parts[summed_[s]] = static_cast<double>(truths >> s & 1u);
          chance *= parts[summed_[s]] == 1.0 ? yes : 1.0 - yes;
        }
        if (chance == 0.0) continue;
        total += chance * program_.run([&](const Instruction& step) {
          const auto number = static_cast<std::size_t>(step.number);
          if (step.operation == Operation::field) return fields == nullptr ? __builtin_nan("") : fields[number];
          if (number == 0) return actions[i];
          return parts[number - 1] >= 0.0 ? parts[number - 1] : expectations[(number - 1) * count + i];
        });
      }
      values[i] = total;
    }
  }

 private:
  static constexpr std::size_t most_summed = 4;

  Program program_;
  std::vector<std::size_t> summed_;
  bool expected_ = true;
};

}  // namespace manul
