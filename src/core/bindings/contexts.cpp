// Converts named contexts, which are dictionaries in Python, to features.
#include <Python.h>
#include <datetime.h>  // needs Python.h
#include <nanobind/stl/map.h>

#include <cstring>
#include <map>

#include "bindings/bindings.hpp"
#include "contexts/iso_dates.hpp"
#include "contexts/json_text.hpp"

namespace manul {
namespace {

void walk(Encoder& encoder, std::string& path, PyObject* value, std::size_t depth);

// A Python string may contain a lone surrogate, which cannot be encoded in UTF-8.
std::string_view text(Encoder& encoder, const std::string& path, PyObject* value) {
  Py_ssize_t length = 0;
  const char* data = PyUnicode_AsUTF8AndSize(value, &length);
  if (data == nullptr) {
    if (!PyErr_ExceptionMatches(PyExc_UnicodeError)) nb::raise_python_error();
    PyErr_Clear();
    encoder.fail(Fault::bad_text, path);
  }
  return {data, static_cast<std::size_t>(length)};
}

void walk_members(Encoder& encoder, std::string& path, PyObject* members, std::size_t depth) {
  if (depth > Encoder::most_depth) encoder.fail(Fault::too_deep, path);
  const std::size_t length = path.size();
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(members, &at, &key, &value);) {
    // A number may be an object whose conversion runs code, and that code may change the context.
    const nb::object held_key = nb::borrow(key), held_value = nb::borrow(value);
    if (!PyUnicode_Check(key)) encoder.fail(Fault::bad_key, path);
    const std::string_view name = text(encoder, path, key);
    if (length > 0) path += '.';
    path += name;
    walk(encoder, path, value, depth);
    path.resize(length);
  }
}

void walk_items(Encoder& encoder, std::string& path, PyObject* items, std::size_t depth) {
  if (depth > Encoder::most_depth) encoder.fail(Fault::too_deep, path);
  const std::size_t length = path.size();
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items); ++i) {
    const nb::object item = nb::borrow(PySequence_Fast_GET_ITEM(items, i));
    if (PyUnicode_Check(item.ptr())) {
      encoder.text(path, text(encoder, path, item.ptr()));
    } else {
      path += '[' + std::to_string(i) + ']';
      walk(encoder, path, item.ptr(), depth);
      path.resize(length);
    }
  }
}

// Numbers of NumPy and similar types.
double as_number(Encoder& encoder, const std::string& path, PyObject* value) {
  const nb::object number = nb::steal(PyNumber_Float(value));
  if (number.is_valid()) return PyFloat_AS_DOUBLE(number.ptr());
  const bool infinite = PyErr_ExceptionMatches(PyExc_OverflowError);
  if (!infinite && !PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_ValueError))
    nb::raise_python_error();
  PyErr_Clear();
  encoder.fail(infinite ? Fault::infinite : Fault::unknown_type, path);
}

nb::object call(nb::handle object, const char* method) { return object.attr(method)(); }

double seconds(PyObject* duration) {
  return 86400.0 * PyDateTime_DELTA_GET_DAYS(duration) + PyDateTime_DELTA_GET_SECONDS(duration) +
         1e-6 * PyDateTime_DELTA_GET_MICROSECONDS(duration);
}

Timestamp to_timestamp(PyObject* value) {
  Timestamp time = {};
  if ((time.has_date = PyDate_Check(value))) {
    time.year = PyDateTime_GET_YEAR(value);
    time.month = static_cast<unsigned>(PyDateTime_GET_MONTH(value));
    time.day = static_cast<unsigned>(PyDateTime_GET_DAY(value));
  }
  const auto set_clock = [&](int hour, int minute, int second, int microsecond) {
    time.set_clock(static_cast<unsigned>(hour), static_cast<unsigned>(minute), static_cast<unsigned>(second),
                   static_cast<unsigned>(microsecond));
  };
  if (PyDateTime_Check(value)) {
    set_clock(PyDateTime_DATE_GET_HOUR(value), PyDateTime_DATE_GET_MINUTE(value), PyDateTime_DATE_GET_SECOND(value),
              PyDateTime_DATE_GET_MICROSECOND(value));
    const nb::object offset = call(value, "utcoffset");
    if (PyDelta_Check(offset.ptr())) time.utc_offset = seconds(offset.ptr());
  } else if (PyTime_Check(value)) {
    set_clock(PyDateTime_TIME_GET_HOUR(value), PyDateTime_TIME_GET_MINUTE(value), PyDateTime_TIME_GET_SECOND(value),
              PyDateTime_TIME_GET_MICROSECOND(value));
  }
  return time;
}

bool has_type(PyObject* value, const char* name) { return std::strcmp(Py_TYPE(value)->tp_name, name) == 0; }

// `item` gives a date, a datetime or, for nanoseconds and times beyond the calendar, a number.
nb::object from_numpy(PyObject* value) {
  const nb::object item = call(value, "item");
  if (!PyLong_Check(item.ptr())) return item;
  return call(nb::handle(value).attr("astype")("datetime64[us]"), "item");
}

// Reads a date, a time, or a missing value of pandas, whose NaT is a datetime. Returns false for other values.
bool walk_time(Encoder& encoder, std::string& path, PyObject* value) {
  if (has_type(value, "numpy.datetime64")) {
    const nb::object item = from_numpy(value);
    if (PyLong_Check(item.ptr())) encoder.fail(Fault::unknown_type, path);
    return item.is_none() ? (encoder.missing(path), true) : walk_time(encoder, path, item.ptr());
  }
  if (has_type(value, "NaTType") || has_type(value, "NAType")) {
    encoder.missing(path);
  } else if (PyDate_Check(value) || PyTime_Check(value)) {
    encoder.time(path, to_timestamp(value));
  } else {
    return false;
  }
  return true;
}

// JSON has no dates: there, a date is {"$date": "2024-02-29"}, a time of day {"$time": "12:30"}. Returns false for
// other dictionaries.
bool walk_json_time(Encoder& encoder, std::string& path, PyObject* members) {
  if (PyDict_GET_SIZE(members) != 1) return false;
  PyObject *key, *value;
  Py_ssize_t at = 0;
  PyDict_Next(members, &at, &key, &value);
  if (!PyUnicode_Check(key)) return false;
  const bool is_clock = PyUnicode_CompareWithASCIIString(key, "$time") == 0;
  if (!is_clock && PyUnicode_CompareWithASCIIString(key, "$date") != 0) return false;
  const nb::object held = nb::borrow(value);
  const auto read = is_clock ? &IsoDate::read_clock : &IsoDate::read;
  const auto time = PyUnicode_Check(value) ? read(text(encoder, path, value)) : std::nullopt;
  if (!time) encoder.fail(is_clock ? Fault::bad_clock : Fault::bad_date, path, nb::repr(held).c_str());
  encoder.time(path, *time);
  return true;
}

void walk(Encoder& encoder, std::string& path, PyObject* value, std::size_t depth) {
  if (value == Py_None) return encoder.missing(path);
  if (PyBool_Check(value)) return encoder.flag(path, value == Py_True);
  if (PyFloat_Check(value)) return encoder.number(path, PyFloat_AS_DOUBLE(value));
  if (PyUnicode_Check(value)) return encoder.text(path, text(encoder, path, value));
  if (PyDict_Check(value)) {
    if (walk_json_time(encoder, path, value)) return;
    encoder.present(path);
    return walk_members(encoder, path, value, depth + 1);
  }
  if (PyList_Check(value) || PyTuple_Check(value)) {
    encoder.present(path);
    return walk_items(encoder, path, value, depth + 1);
  }
  if (!PyLong_Check(value) && walk_time(encoder, path, value)) return;
  if (has_type(value, "numpy.bool") || has_type(value, "numpy.bool_"))
    return encoder.flag(path, as_number(encoder, path, value) != 0.0);
  encoder.number(path, as_number(encoder, path, value));
}

void set_fields(BasePlayer& player, const std::map<std::string, Kind>& fields) {
  for (const auto& [name, kind] : fields) player.encoder.remember(name, kind);
}

std::map<std::string, Kind> fields(const BasePlayer& player) {
  std::map<std::string, Kind> kinds;
  for (const auto& [name, field] : player.encoder.fields()) kinds[name] = field.kind;
  return kinds;
}

using Names = std::map<std::uint32_t, std::string>;

void set_names(BasePlayer& player, const Names& names) {
  for (const auto& [feature, name] : names) player.encoder.remember(feature, name);
}

Names names(const BasePlayer& player) { return {player.encoder.names().begin(), player.encoder.names().end()}; }

using Columns = std::map<std::uint32_t, std::uint32_t>;

void set_columns(BasePlayer& player, const Columns& columns) { player.set_columns({columns.begin(), columns.end()}); }

Columns columns(const BasePlayer& player) { return {player.columns().begin(), player.columns().end()}; }

// The names of features and their columns as JSON. There can be tens of thousands, so they are written without the
// interpreter's lock; nothing may be learned meanwhile.
std::pair<std::string, std::string> names_json(const BasePlayer& player) {
  nb::gil_scoped_release unlocked;
  return {json_of(player.encoder.names()), json_of(player.columns())};
}

std::tuple<Fault, std::string, std::string> fault(const BasePlayer& player) {
  return {player.encoder.fault, player.encoder.fault_field, player.encoder.fault_value};
}

}  // namespace

void read_context(Encoder& encoder, PyObject* members) {
  std::string path;
  encoder.next();
  walk_members(encoder, path, members, 0);
  encoder.add_missing_members();
}

std::string field_name(Encoder& encoder, PyObject* key) {
  if (!PyUnicode_Check(key)) encoder.fail(Fault::bad_key, {});
  return std::string(text(encoder, {}, key));
}

void read_field(Encoder& encoder, const std::string& name, PyObject* value) {
  std::string path = name;
  walk(encoder, path, value, 0);
}

ContextView view(BasePlayer& player, const Fields& context, bool learning) {
  if (player.settings().naming == Naming::rows) throw Rejected();
  player.encoder.start(learning);
  try {
    read_context(player.encoder, context.ptr());
  } catch (const BadField&) {
    player.encoder.undo();
    throw Rejected();
  } catch (...) {
    player.encoder.undo();
    throw;
  }
  player.encoder.finish();
  return player.named_view(learning);
}

void bind_names(nb::class_<BasePlayer>& type) {
  PyDateTime_IMPORT;
  type.def("sketch_names", &BasePlayer::sketch_names);
  type.def_prop_ro("fault", &fault);
  type.def_prop_ro("late_fields", [](const BasePlayer& player) { return player.encoder.late_fields(); });
  type.def_prop_rw("fields", &fields, &set_fields);
  type.def_prop_rw("names", &names, &set_names);
  type.def_prop_rw("columns", &columns, &set_columns);
  type.def("names_json", &names_json);
}

}  // namespace manul
