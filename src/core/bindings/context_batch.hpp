// Many contexts of one call: rows of numbers, dictionaries, a table of columns, or sparse rows.
#pragma once

#include "bindings/bindings.hpp"

namespace manul {

using Mappings = nb::typed<nb::list, Fields>;
// The values of each field: an array of numbers or of truth values, or a list of anything.
using Columns = nb::typed<nb::dict, nb::str, nb::any>;
// As in compressed sparse rows: the start of each row, and the column and value of each number.
using SparseRows = std::tuple<Vector<std::int64_t>, Vector<std::int64_t>, Vector<double>>;

// All contexts are read before the first is used. Until the end of the batch no other call may read contexts, and what
// they have added to the encoder is removed again unless `keep_names` is called.
class ContextBatch {
 public:
  ContextBatch(BasePlayer& player, const Matrix<float>& contexts, std::size_t, const Vector<double>& lows,
               const Vector<double>& highs, bool = false)
      : player_(player), rows_(manul::rows(player, contexts, lows, highs)) {}

  template <class Contexts>
  ContextBatch(BasePlayer& player, const Contexts& contexts, std::size_t count, const Vector<double>& lows,
               const Vector<double>& highs, bool learning = false)
      : player_(player) {
    start(learning);
    try {
      read(contexts, count);
      set_rows(lows, highs);
    } catch (const BadField&) {
      player_.encoder.undo();
      throw Rejected();
    } catch (...) {
      player_.encoder.undo();
      throw;
    }
  }

  ContextBatch(const ContextBatch&) = delete;
  ContextBatch& operator=(const ContextBatch&) = delete;

  ~ContextBatch() {
    if (rows_.named == nullptr) return;
    if (kept_)
      player_.encoder.finish();
    else
      player_.encoder.undo();
  }

  const Rows& rows() const { return rows_; }

  // Keeps the names of the contexts, and assigns columns to their features if the model takes rows.
  void keep_names();

 private:
  void start(bool learning);
  void read(const Mappings& contexts, std::size_t count);
  void read(const Columns& columns, std::size_t count);
  void read(const SparseRows& sparse, std::size_t count);
  void set_rows(const Vector<double>& lows, const Vector<double>& highs);

  BasePlayer& player_;
  Rows rows_ = {};
  NamedBatch named_;
  bool kept_ = false;
};

}  // namespace manul
