// Reads many named contexts into one batch.
#include "bindings/context_batch.hpp"

#include <variant>

namespace manul {
namespace {

// Reading a value may run code that changes a list, so every access is checked.
nb::object item(const nb::list& list, std::size_t i) {
  if (i >= list.size()) throw Rejected();
  return nb::borrow(PyList_GET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i)));
}

struct Column {
  std::string name;
  std::variant<Vector<double>, Vector<bool>, nb::list> values;

  std::size_t size() const {
    return std::visit([](const auto& all) { return all.size(); }, values);
  }

  void read(Encoder& encoder, std::size_t row) const {
    if (const auto* numbers = std::get_if<Vector<double>>(&values)) {
      encoder.number(name, numbers->data()[row]);
    } else if (const auto* flags = std::get_if<Vector<bool>>(&values)) {
      encoder.flag(name, flags->data()[row]);
    } else {
      read_field(encoder, name, item(std::get<nb::list>(values), row).ptr());
    }
  }
};

std::variant<Vector<double>, Vector<bool>, nb::list> column_values(nb::handle values) {
  Vector<double> numbers;
  if (nb::try_cast(values, numbers, false)) return numbers;
  Vector<bool> flags;
  if (nb::try_cast(values, flags, false)) return flags;
  nb::list list;
  if (!nb::try_cast(values, list, false)) throw Rejected();
  return list;
}

std::vector<Column> to_columns(Encoder& encoder, const Columns& table) {
  std::vector<Column> columns;
  for (const auto& [key, values] : table) columns.push_back({field_name(encoder, key.ptr()), column_values(values)});
  return columns;
}

}  // namespace

void ContextBatch::start(bool learning) {
  if (player_.settings().naming == Naming::rows) throw Rejected();
  player_.encoder.start(learning);
}

void ContextBatch::read(const Mappings& contexts, std::size_t count) {
  if (contexts.size() != count) throw Rejected();
  for (std::size_t i = 0; i < count; ++i) {
    const nb::object context = item(contexts, i);
    if (!PyDict_Check(context.ptr())) throw Rejected();
    read_context(player_.encoder, context.ptr());
    named_.add(player_.encoder.view());
  }
}

void ContextBatch::read(const Columns& table, std::size_t count) {
  const std::vector<Column> columns = to_columns(player_.encoder, table);
  for (const Column& column : columns)
    if (column.size() != count) throw Rejected();
  for (std::size_t i = 0; i < count; ++i) {
    player_.encoder.next();
    for (const Column& column : columns) column.read(player_.encoder, i);
    player_.encoder.add_missing_members();
    named_.add(player_.encoder.view());
  }
}

void ContextBatch::read(const SparseRows& sparse, std::size_t count) {
  const auto& [starts, columns, values] = sparse;
  if (starts.size() != count + 1 || columns.size() != values.size()) throw Rejected();
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t start = starts.data()[i], end = starts.data()[i + 1];
    if (start < 0 || start > end || static_cast<std::size_t>(end) > values.size()) throw Rejected();
    player_.encoder.next();
    for (std::int64_t at = start; at < end; ++at)
      player_.encoder.number(std::to_string(columns.data()[at]), values.data()[at]);
    named_.add(player_.encoder.view());
  }
}

void ContextBatch::set_rows(const Vector<double>& lows, const Vector<double>& highs) {
  const bool narrowed = lows.size() > 0;
  if (narrowed) check_sizes(named_.size(), lows, highs);
  rows_ = {nullptr, named_.size(), narrowed ? lows.data() : nullptr, narrowed ? highs.data() : nullptr, &named_};
}

void ContextBatch::keep_names() {
  kept_ = true;
  for (std::size_t i = 0; rows_.named != nullptr && i < named_.size(); ++i) player_.assign_columns(named_[i]);
}

}  // namespace manul
