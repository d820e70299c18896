// What all players share: the model, its settings, and how it reads contexts.
#pragma once

#include <atomic>
#include <cmath>
#include <memory>
#include <stdexcept>

#include "contexts/column_sketch.hpp"
#include "contexts/field_hashing.hpp"
#include "contexts/named_batch.hpp"
#include "models/settings.hpp"
#include "numerics/buffer.hpp"
#include "play/exploration.hpp"

namespace manul {

// Thrown before anything has changed. The caller has the message.
class Rejected : public std::invalid_argument {
 public:
  Rejected() : std::invalid_argument("rejected") {}
};

// Beyond these limits, weights and their squares overflow. Python checks the same limits and has the message.
inline constexpr double least_density = 1e-100, largest_density = 1e100;

// The kinds of contexts: rows of numbers, or named fields, hashed into the model's tables, numbered in the order in
// which they were learned, or sketched into a row.
enum class Naming : std::uint8_t { rows, hashed, numbered, sketched };

// The parts of the outcome, and its formulas with the features of the fields that they load.
struct DeclaredParts {
  std::vector<PartKind> kinds = {};
  std::vector<std::shared_ptr<const OutcomeFormula>> formulas = {};
  std::vector<std::uint32_t> fields = {};

  // Parts are NaN if they were not seen.
  bool allows(const double* parts) const {
    for (std::size_t p = 0; p < kinds.size(); ++p) {
      if (std::isnan(parts[p])) continue;
      if (!(parts[p] >= 0.0 && std::isfinite(parts[p]))) return false;
      if (kinds[p] == PartKind::yes_no && parts[p] != 0.0 && parts[p] != 1.0) return false;
    }
    return true;
  }
};

struct PlayerSettings {
  Range actions;
  Range losses;
  std::size_t width;
  Exploration exploration;
  Naming naming = Naming::rows;
  std::size_t features = 0;  // how many are numbered
  DeclaredParts outcome = {};
};

// Many contexts at once, rows of numbers or named; `lows` and `highs` are null if every decision has the whole range.
struct Rows {
  const float* contexts;
  std::size_t count;
  const double* lows;
  const double* highs;
  const NamedBatch* named = nullptr;
};

class BasePlayer {
 public:
  BasePlayer(std::unique_ptr<Model> model, const PlayerSettings& settings)
      : owned_(std::move(model)), settings_(settings), row_(settings.width + 1),
        sketch_(settings.naming == Naming::numbered ? settings.features : settings.width),
        fields_(settings.outcome.fields.size()) {
    encoder.flags_are_numbers = settings.naming == Naming::numbered;
  }

  const PlayerSettings& settings() const { return settings_; }
  Model& model() { return *owned_; }
  std::uint64_t decisions = 0;
  std::uint64_t learned = 0;  // rounds

  // The epsilon of the next decision.
  double epsilon() const { return settings_.exploration.epsilon(*owned_, static_cast<double>(learned)); }

  Encoder encoder;

  const ColumnSketch::Columns& columns() const { return sketch_.columns(); }
  void set_columns(const ColumnSketch::Columns& columns) {
    if (!sketch_.restore(columns)) throw Rejected();
  }

  void sketch_names() { settings_.naming = Naming::sketched; }

  // The view of the context that the encoder has read.
  ContextView named_view(bool learning) {
    const ContextView context = encoder.view();
    if (learning) assign_columns(context);
    return named_view(context);
  }

  // Assigns columns to the features of a context before it is learned from, if the model takes columns.
  void assign_columns(const ContextView& context) {
    if (settings_.naming == Naming::sketched || settings_.naming == Naming::numbered) sketch_.assign(context);
  }

  template <class T>
  ContextView row_view(const T* context, std::size_t width) {
    if (width != settings_.width || settings_.naming != Naming::rows) throw Rejected();
    for (std::size_t i = 0; i < width; ++i) row_[i] = static_cast<float>(context[i]);
    if (!finite(row_.data())) throw Rejected();
    return row_view(row_.data());
  }

  // One caller at a time, because loops run without the interpreter's lock.
  class Busy {
   public:
    explicit Busy(BasePlayer& player) : flag_(player.busy_) {
      if (flag_.test_and_set()) throw std::runtime_error("agent is in use by another thread; give each thread its own");
    }
    ~Busy() { flag_.clear(); }

   private:
    std::atomic_flag& flag_;
  };

 protected:
  ContextView row_view(const float* row) const { return {ContextKind::row, row, settings_.width}; }

  ContextView named_view(const ContextView& context) {
    if (settings_.naming == Naming::hashed) return context;
    if (settings_.naming == Naming::numbered) return with_fields(sketch_.number(context), context);
    sketch_.write(context, row_.data());
    return with_fields(row_view(row_.data()), context);
  }

  ContextView context(const Rows& rows, std::size_t i) {
    return rows.named != nullptr ? named_view((*rows.named)[i]) : row_view(rows.contexts + i * settings_.width);
  }

  bool finite(const float* context) const {
    bool all = true;
    for (std::size_t i = 0; i < settings_.width; ++i) all &= std::isfinite(context[i]);
    return all;
  }

  void check_contexts(const Rows& rows) const {
    for (std::size_t i = 0; rows.named == nullptr && i < rows.count; ++i)
      if (!finite(rows.contexts + i * settings_.width)) throw Rejected();
  }

 private:
  // Adds the fields that the formula of the outcome loads.
  ContextView with_fields(ContextView view, const ContextView& context) {
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      fields_[f] = __builtin_nan("");
      for (std::size_t i = 0; i < context.numbers; ++i)
        if (context.features[i] == settings_.outcome.fields[f]) fields_[f] = context.values[i];
    }
    if (!fields_.empty()) view.fields = fields_.data();
    return view;
  }

  std::unique_ptr<Model> owned_;

 protected:
  PlayerSettings settings_;

 private:
  MANUL_SIMD::Buffer<float> row_;
  ColumnSketch sketch_;
  std::vector<double> fields_;
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
};

}  // namespace manul
