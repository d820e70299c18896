// Encodes named contexts, as in JSON: each field becomes one or more hashed features.
//
//   a number      one feature, to be standardised          a text       one feature per field and text, value 1
//   true          one feature, value 1 (false: none or 0)       missing      one feature per field, value 1
//   a time        a number of days, and texts: month, weekday and hour
//
// A known field that a context lacks is missing: a log, a table and an object cannot tell the two apart.
//
// Features are numbers below 2^32, which models map to tables of their own size. Names are remembered, up to a limit,
// to explain what was learned.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "contexts/context_view.hpp"
#include "contexts/timestamps.hpp"

namespace manul {

enum class Kind : std::uint8_t { number, text, flag, time };

enum class Fault : std::uint8_t {
  none,
  infinite,
  changed_kind,
  too_many,
  unknown_type,
  too_deep,
  bad_key,
  bad_text,
  bad_date,
  bad_clock
};

// Thrown while a context is read; the encoder has the fault and the field.
struct BadField {};

class Encoder {
 public:
  static constexpr std::size_t most_depth = 32;  // of nested objects and lists, which are read recursively
  // Objects with more members are sparse: a member that a context lacks is 0, as in rows of a sparse matrix.
  static constexpr std::size_t most_members = 256;

  // A member of an object that contexts may lack. It is missing unless the current context had it; a member of an item
  // of a list, only if the context had that item.
  struct Member {
    std::string field;
    std::uint32_t missing_feature;
    const Member* item;
    std::size_t* siblings;  // the number of members of the same object that a file keeps
    std::size_t seen = 0;   // the number of the last context that had it
    bool counted = false;   // among the siblings
    bool named = false;     // contexts without it were learned

    void count() {
      *siblings += counted ? 0 : 1;
      counted = true;
    }
  };

  struct Field {
    Kind kind;
    std::uint32_t feature;
    Member* member = nullptr;
  };

  Encoder() = default;
  Encoder(const Encoder&) = delete;  // fields point to members
  Encoder& operator=(const Encoder&) = delete;

  // The feature of a field that is a number.
  static std::uint32_t feature(std::string_view field) { return hash(field, 0); }

  // Starts a call with one or more contexts, which ends with `finish` or `undo`. The kinds of new fields and the names
  // of new features are kept only with `remember`, which deciding does not set.
  void start(bool remember) {
    if (reading_) throw std::runtime_error("agent is in use by another call or by its own context; give each its own");
    reading_ = true;
    fresh_fields_.clear();
    fresh_names_.clear();
    fresh_members_.clear();
    late_fields_.clear();
    contexts_ = 0;
    remembers_ = remember;
    fault = Fault::none;
  }

  // Starts a context of the call.
  void next() {
    features_.clear();
    values_.clear();
    numbers_ = 0;
    ++contexts_;
    ++read_;
  }

  // Ends a context that is not a sparse row. The features are in the order of their numbers, so that they do not depend
  // on the order in which fields became known.
  void add_missing_members() {
    for (Member* member : members_in_order_) {
      if (member->seen == read_ || *member->siblings > most_members || features_.size() >= most_features) continue;
      if (member->item != nullptr && member->item->seen != read_) continue;
      // Contexts without the field were never learned, so there is nothing to know of them.
      if (!member->named && !remembers_) continue;
      add_missing(*member);
    }
  }

  void finish() {
    if (remembers_) learned_ += contexts_;
    reading_ = false;
  }

  // Removes what the contexts of the current call have added.
  void undo() {
    for (const std::string& field : fresh_fields_) forget(fields_, field);
    for (const std::uint32_t feature : fresh_names_) forget(names_, feature);
    for (Member* member : members_in_order_) member->named = names_.contains(member->missing_feature);
    for (const std::string& field : fresh_members_) forget_member(field);
    late_fields_.clear();
    reading_ = false;
  }

  void number(const std::string& field, double value) {
    if (std::isnan(value)) return missing(field);
    if (!std::isfinite(static_cast<float>(value))) fail(Fault::infinite, field);
    add_number(find(field, Kind::number).feature, static_cast<float>(value), field);
  }

  void text(const std::string& field, std::string_view value) {
    const std::uint32_t feature = hash(value, find(field, Kind::text).feature + 1);
    name(feature, field, value);
    add(feature, 1.0f, field);
  }

  // In logs of older versions, true and false were the numbers 1 and 0; a policy that learned from one knows the field
  // as a number.
  void flag(const std::string& field, bool value) {
    if (const auto place = fields_.find(field); place != fields_.end() && place->second.kind == Kind::number)
      return number(field, value ? 1.0 : 0.0);
    const Field known = find(field, Kind::flag);
    if (flags_are_numbers)
      add_number(known.feature, value ? 1.0f : 0.0f, field);
    else if (value)
      add(known.feature, 1.0f, field);
  }

  void missing(const std::string& field) {
    if (!is_member(field)) return add_missing(field, hash(field, missing_seed));
    auto known = members_.find(field);
    if (known == members_.end()) {
      if (!remembers_ || members_.size() >= most_names || bytes_ >= most_bytes)
        return add_missing(field, hash(field, missing_seed));
      member(field);
      known = members_.find(field);
    }
    known->second.seen = read_;
    if (*known->second.siblings <= most_members) add_missing(known->second);
  }

  // An object or a list was read, which may be empty.
  void present(const std::string& field) {
    if (const auto known = members_.find(field); known != members_.end()) known->second.seen = read_;
  }

  // Extends the path `field` for each part and restores it. In logs of older versions, a time was the number of its
  // seconds since 1970, and clients sent a time of day as text; agents that learned these know the field as such.
  void time(std::string& field, const Timestamp& time) {
    if (const auto place = fields_.find(field); place != fields_.end()) {
      if (place->second.kind == Kind::number) return number(field, 86400.0 * time.days());
      if (place->second.kind == Kind::text && !time.has_date) return text(field, time.clock_text());
    }
    find(field, Kind::time);
    const std::size_t length = field.size();
    const auto part = [&](const char* name) -> const std::string& {
      field.resize(length);
      return field += name;
    };
    number(part(".days"), time.days());
    if (time.has_date) {
      text(part(".month"), time.month_name());
      text(part(".weekday"), time.weekday_name());
    }
    if (time.has_clock) text(part(".hour"), time.hour_name());
    field.resize(length);
  }

  [[noreturn]] void fail(Fault what, const std::string& field, const std::string& value = {}) {
    fault = what;
    fault_field = field;
    fault_value = value;
    throw BadField();
  }

  const std::vector<std::uint32_t>& features() const { return features_; }
  const std::vector<float>& values() const { return values_; }

  // Valid until the next context is read.
  ContextView view() const { return {ContextKind::hashed, values_.data(), values_.size(), features_.data(), numbers_}; }

  const std::unordered_map<std::uint32_t, std::string>& names() const { return names_; }
  const std::unordered_map<std::string, Field>& fields() const { return fields_; }
  // The fields of a file come before its names.
  void remember(const std::string& field, Kind kind) {
    if (keep(fields_, field, {kind, hash(field, 0)})) fields_.find(field)->second.member = add_members(field);
    learned_ = first_contexts;  // a saved agent has learned
  }
  void remember(std::uint32_t feature, const std::string& name) {
    keep(names_, feature, name);
    if (!name.ends_with("=?")) return;
    const std::string field = name.substr(0, name.size() - 2);
    if (is_member(field) && hash(field, missing_seed) == feature) {
      member(field)->named = true;
      member(field)->count();
    }
  }

  // The fields that the last call added although many contexts had been learned without them, each with the number of
  // its context in the call.
  const std::vector<std::pair<std::size_t, std::string>>& late_fields() const { return late_fields_; }

  // Whether true and false are the numbers 1 and 0, for models in which an absent feature is an average one.
  bool flags_are_numbers = false;

  Fault fault = Fault::none;
  std::string fault_field, fault_value;  // the value only of a bad date or time of day

 private:
  // Names serve explanations and tell which fields may be missing, so their number and memory can be limited: 65,536
  // names, 16 MiB.
  static constexpr std::size_t most_names = 1u << 16, most_bytes = 1u << 24;
  static constexpr std::size_t first_contexts = 100;  // fields that first appear in these are not late

  using Fields = std::unordered_map<std::string, Field>;
  using Names = std::unordered_map<std::uint32_t, std::string>;

  static std::size_t length(const Fields::value_type& entry) { return entry.first.size(); }
  static std::size_t length(const Names::value_type& entry) { return entry.second.size(); }

  // Whether the name is new and within the limits of number and bytes, because contexts may be of any length.
  template <class Map>
  bool keep(Map& map, const typename Map::key_type& key, const typename Map::mapped_type& value) {
    if (map.size() >= most_names || bytes_ >= most_bytes) return false;
    const auto [place, fresh] = map.emplace(key, value);
    if (fresh) bytes_ += length(*place);
    return fresh;
  }

  template <class Map>
  void forget(Map& map, const typename Map::key_type& key) {
    const auto known = map.find(key);
    bytes_ -= length(*known);
    map.erase(known);
  }

  static constexpr std::uint32_t missing_seed = 0x6d697373u;  // "miss"; differs from the field's own feature

  // FNV-1a with its usual constants, and a final multiplication so that similar texts have distant hashes.
  static std::uint32_t hash(std::string_view text, std::uint32_t seed) {
    std::uint64_t state = 0xcbf29ce484222325ULL ^ seed;
    for (const char character : text) state = (state ^ static_cast<unsigned char>(character)) * 0x100000001b3ULL;
    state = (state ^ (state >> 32)) * 0xd6e8feb86659fd93ULL;
    return static_cast<std::uint32_t>(state >> 32);
  }

  // Whether a field is a member of an object, not an item of a list or a column of a sparse row.
  static bool is_member(const std::string& field) {
    const auto is_digit = [](char character) { return character >= '0' && character <= '9'; };
    return !field.ends_with(']') && !std::all_of(field.begin(), field.end(), is_digit);
  }

  // The parts of a time are not members of their own.
  bool is_part_of_time(const std::string& field) const {
    const std::size_t end = field.rfind('.');
    if (end == std::string::npos) return false;
    const auto whole = fields_.find(field.substr(0, end));
    return whole != fields_.end() && whole->second.kind == Kind::time;
  }

  // Adds the members on the path of a field, which ends with one unless it is an item of a list or a part of a time.
  Member* add_members(const std::string& field) {
    for (std::size_t end = field.find('['); end != std::string::npos; end = field.find('[', end + 1))
      if (is_member(field.substr(0, end))) member(field.substr(0, end))->count();
    if (!is_member(field) || is_part_of_time(field)) return nullptr;
    member(field)->count();
    return member(field);
  }

  Member* member(const std::string& field) {
    if (const auto known = members_.find(field); known != members_.end()) return &known->second;
    const std::size_t item = field.rfind("].");
    Member* added = &members_[field];
    *added = {field, hash(field, missing_seed),
              item == std::string::npos ? nullptr : item_of(field.substr(0, item + 1)), &siblings_[parent(field)]};
    bytes_ += field.size();
    members_in_order_.insert(place_of(added), added);
    if (reading_) fresh_members_.push_back(field);
    return added;
  }

  // An item of a list that is an object; it cannot be missing.
  const Member* item_of(const std::string& field) { return &members_[field]; }

  void forget_member(const std::string& field) {
    const auto known = members_.find(field);
    for (auto& [name, each] : fields_)
      if (each.member == &known->second) each.member = nullptr;
    members_in_order_.erase(place_of(&known->second));
    *known->second.siblings -= known->second.counted ? 1 : 0;
    bytes_ -= field.size();
    members_.erase(known);
  }

  static std::string parent(const std::string& field) {
    const std::size_t end = field.rfind('.');
    return end == std::string::npos ? std::string() : field.substr(0, end);
  }

  std::vector<Member*>::iterator place_of(const Member* member) {
    const auto before = [](const Member* one, const Member* other) {
      return std::pair(one->missing_feature, std::string_view(one->field)) <
             std::pair(other->missing_feature, std::string_view(other->field));
    };
    return std::lower_bound(members_in_order_.begin(), members_in_order_.end(), member, before);
  }

  Field find(const std::string& field, Kind kind) {
    const auto known = fields_.find(field);
    if (known != fields_.end()) {
      if (known->second.kind != kind) fail(Fault::changed_kind, field);
      if (known->second.member != nullptr) known->second.member->seen = read_;
      return known->second;
    }
    Field added{kind, hash(field, 0)};
    if (remembers_ && keep(fields_, field, added)) {
      fields_.find(field)->second.member = add_members(field);
      fresh_fields_.push_back(field);
      if (kind == Kind::number || kind == Kind::flag) name(added.feature, field, {});
      if (learned_ + contexts_ > first_contexts) late_fields_.emplace_back(contexts_ - 1, field);
    }
    present(field);
    return added;
  }

  void name(std::uint32_t feature, const std::string& field, std::string_view value) {
    if (!remembers_ || names_.contains(feature)) return;
    if (keep(names_, feature, value.empty() ? field : field + "=" + std::string(value)))
      fresh_names_.push_back(feature);
  }

  void add_missing(Member& member) {
    add_missing(member.field, member.missing_feature);
    if (member.named || !names_.contains(member.missing_feature)) return;
    member.named = true;
    member.count();
  }

  void add_missing(const std::string& field, std::uint32_t feature) {
    name(feature, field, "?");
    add(feature, 1.0f, field);
  }

  void add(std::uint32_t feature, float value, const std::string& field) {
    if (features_.size() >= most_features) fail(Fault::too_many, field);
    features_.push_back(feature);
    values_.push_back(value);
  }

  // Numbers come first.
  void add_number(std::uint32_t feature, float value, const std::string& field) {
    add(feature, value, field);
    std::swap(features_.back(), features_[numbers_]);
    std::swap(values_.back(), values_[numbers_]);
    ++numbers_;
  }

  std::vector<std::uint32_t> features_;
  std::vector<float> values_;
  std::vector<std::string> fresh_fields_;
  std::vector<std::uint32_t> fresh_names_;
  std::vector<std::pair<std::size_t, std::string>> late_fields_;
  std::vector<std::string> fresh_members_;
  std::vector<Member*> members_in_order_;
  std::unordered_map<std::string, Member> members_;
  std::unordered_map<std::string, std::size_t> siblings_;
  std::size_t numbers_ = 0, bytes_ = 0, contexts_ = 0, learned_ = 0, read_ = 0;
  bool remembers_ = false, reading_ = false;
  Fields fields_;
  Names names_;
};

}  // namespace manul
