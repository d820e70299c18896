// Reads and restores the arrays of a model.
#include <algorithm>
#include <cstring>

#include "bindings/bindings.hpp"

namespace manul {
namespace {

using Arrays = nb::typed<nb::dict, nb::str, nb::any>;

template <class T>
nb::object copy(const Array& array) {
  auto* data = new T[array.size];
  std::copy_n(static_cast<const T*>(array.data), array.size, data);
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {array.size}, owner));
}

std::string name(const Array& array) {
  return array.part == 0 ? array.name : std::to_string(array.part) + "." + array.name;
}

// Calls `convert` with each array and a value of its type.
template <class Convert>
Arrays collect(BasePlayer& player, Convert&& convert) {
  nb::dict all;
  player.model().start();
  for (std::size_t i = 0; i < player.model().arrays(); ++i) {
    const Array array = player.model().array(i);
    const std::string type = array.type;
    all[name(array).c_str()] = type == "f4"   ? convert(array, float{})
                               : type == "f8" ? convert(array, double{})
                               : type == "i4" ? convert(array, std::int32_t{})
                                              : convert(array, std::uint64_t{});
  }
  return all;
}

Arrays state(BasePlayer& player) {
  return collect(player, []<class T>(const Array& array, T) { return copy<T>(array); });
}

// The arrays themselves, to be read only, which keep the player alive. Learning changes them, deciding does not.
Arrays views(nb::handle_t<BasePlayer> player) {
  return collect(nb::cast<BasePlayer&>(player), [&]<class T>(const Array& array, T) {
    const auto* data = static_cast<const T*>(array.data);
    return nb::cast(nb::ndarray<nb::numpy, const T, nb::ndim<1>>(data, {array.size}, player));
  });
}

std::size_t item_size(const Array& array) { return array.type[1] == '4' ? 4 : 8; }

std::size_t nbytes(BasePlayer& player) {
  std::size_t total = 0;
  for (std::size_t i = 0; i < player.model().arrays(); ++i) {
    const Array array = player.model().array(i);
    total += array.size * item_size(array);
  }
  return total;
}

// The memory after many rounds, when all arrays that grow are full.
std::size_t most_nbytes(BasePlayer& player) {
  std::size_t total = player.model().unsaved_bytes();
  for (std::size_t i = 0; i < player.model().arrays(); ++i) {
    const Array array = player.model().array(i);
    total += std::max(array.size, array.most) * item_size(array);
  }
  return total;
}

using Bytes = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::dlpack::dtype type_of(const Array& array) {
  const std::string type = array.type;
  return type == "f4"   ? nb::dtype<float>()
         : type == "f8" ? nb::dtype<double>()
         : type == "i4" ? nb::dtype<std::int32_t>()
                        : nb::dtype<std::uint64_t>();
}

// Skips pages that are already equal, because pages of zeros that were never written take no memory.
void overwrite(void* to, const void* from, std::size_t size) {
  constexpr std::size_t page = 4096;  // bytes, as on nearly every system
  for (std::size_t at = 0; at < size; at += page) {
    char* target = static_cast<char*>(to) + at;
    const char* source = static_cast<const char*>(from) + at;
    const std::size_t length = std::min(page, size - at);
    if (std::memcmp(target, source, length) != 0) std::memcpy(target, source, length);
  }
}

// All sizes and types are compared before anything is written. If the values are rejected, the player is unusable.
void restore(BasePlayer& player, const Arrays& saved) {
  Model& model = player.model();
  if (saved.size() != model.arrays()) throw Rejected();
  std::vector<Bytes> arrays(model.arrays());
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const Array array = model.array(i);
    const std::string key = name(array);
    if (!saved.contains(key.c_str()) || !nb::try_cast(saved[key.c_str()], arrays[i])) throw Rejected();
    model.fit(i, arrays[i].size());
    if (arrays[i].size() != model.array(i).size || arrays[i].dtype() != type_of(array)) throw Rejected();
  }
  const BasePlayer::Busy busy(player);
  nb::gil_scoped_release unlocked;
  model.start();
  for (std::size_t i = 0; i < arrays.size(); ++i) overwrite(model.array(i).data, arrays[i].data(), arrays[i].nbytes());
  if (!model.is_valid()) throw Rejected();
  model.resume();
}

void forget(BasePlayer& player, double half_life) { player.model().forget(half_life); }

}  // namespace

void bind_state(nb::class_<BasePlayer>& type) {
  type.def_rw("decisions", &BasePlayer::decisions)
      .def_rw("learned", &BasePlayer::learned)
      .def_prop_ro("epsilon", &BasePlayer::epsilon)
      .def("forget", &forget, "half_life"_a)
      .def_prop_ro("nbytes", &nbytes)
      .def_prop_ro("most_nbytes", &most_nbytes)
      .def("state", &state)
      .def("views", &views)
      .def("restore", &restore, "saved"_a);
}

}  // namespace manul
