// Many named contexts, with their features in one array.
#pragma once

#include <vector>

#include "contexts/context_view.hpp"

namespace manul {

class NamedBatch {
 public:
  void add(const ContextView& context) {
    features_.insert(features_.end(), context.features, context.features + context.size);
    values_.insert(values_.end(), context.values, context.values + context.size);
    ends_.push_back({features_.size(), context.numbers});
  }

  std::size_t size() const { return ends_.size(); }

  // Valid until the next context is added.
  ContextView operator[](std::size_t i) const {
    const std::size_t start = i == 0 ? 0 : ends_[i - 1].end;
    return {ContextKind::hashed, values_.data() + start, ends_[i].end - start, features_.data() + start,
            ends_[i].numbers};
  }

 private:
  struct End {
    std::size_t end, numbers;
  };

  std::vector<std::uint32_t> features_;
  std::vector<float> values_;
  std::vector<End> ends_;
};

}  // namespace manul
