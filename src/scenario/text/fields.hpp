#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "base/listed_enum.hpp"
#include "base/units.hpp"
#include "scenario/text/config_node.hpp"

namespace longhaul::scenario {

/// A value with the path that messages call it by: "costs.forward", "costs.forward[3]". Every
/// reader below throws Error with the value's place.
struct Field {
  const ConfigNode* node = nullptr;
  std::string path;
};

/// One table of the file whose keys are known: an unknown key is refused at once, with the nearest
/// known one.
class Section {
public:
  Section(const ConfigNode& table, std::string name, std::vector<std::string> known);

  [[nodiscard]] std::optional<Field> find(const std::string& key) const;
  /// Fails, naming `why`, where the key is missing.
  [[nodiscard]] Field require(const std::string& key, std::string_view why) const;
  [[nodiscard]] const ConfigPosition& place() const { return table_->place; }

private:
  const ConfigNode* table_;
  std::string name_;
  std::vector<std::string> known_;
};

/// The tables of [[name]], none where there is none.
[[nodiscard]] std::vector<const ConfigNode*> tables_of(const ConfigNode& root,
                                                       const std::string& name);

[[nodiscard]] std::int64_t read_integer(const Field& field, std::int64_t low, std::int64_t high);
/// An integer or a real number, finite and in [low, high].
[[nodiscard]] double read_number(const Field& field, double low, double high);
[[nodiscard]] bool read_boolean(const Field& field);
[[nodiscard]] std::string read_text(const Field& field);
/// At least zero.
[[nodiscard]] Duration read_duration(const Field& field);
[[nodiscard]] Bytes read_bytes(const Field& field);
/// Above zero, or "unlimited".
[[nodiscard]] Bandwidth read_bandwidth(const Field& field);
/// FLOP/s: a number, or a text with GFLOP/s, TFLOP/s or PFLOP/s. Above zero.
[[nodiscard]] double read_flops(const Field& field);
/// One of `names`; its index.
[[nodiscard]] std::size_t read_choice(const Field& field, const std::vector<std::string>& names);
/// The enumerator of that name.
template <ListedEnum Enum>
[[nodiscard]] Enum read_choice(const Field& field) {
  return static_cast<Enum>(read_choice(field, every_name<Enum>()));
}
/// The elements of a list, each with its own path.
[[nodiscard]] std::vector<Field> elements(const Field& field);
/// A list of non-negative integers below `end`, or a text of ranges such as "0-3,8".
[[nodiscard]] std::vector<std::pair<int, Field>> read_indices(const Field& field, int end);

/// One value for every stage: a scalar for all of them, or a list with one value each.
template <typename Read>
[[nodiscard]] auto read_per_stage(const Field& field, int stages, Read read)
    -> std::vector<decltype(read(field))> {
  if (field.node->kind != ConfigNode::Kind::list)
    return std::vector<decltype(read(field))>(to_size(stages), read(field));
  const auto values = elements(field);
  if (std::ssize(values) != stages)
    fail_at(field.node->place,
            "{} has {} values (parallel.stages = {}). Give one value for each stage, or one for "
            "all.",
            field.path, values.size(), stages);
  std::vector<decltype(read(field))> result;
  for (const Field& value : values) result.push_back(read(value));
  return result;
}

}  // namespace longhaul::scenario
