#include <algorithm>
#include <charconv>

#include "base/index.hpp"
#include "scenario/text/fields.hpp"

namespace longhaul::scenario {
namespace {

/// A number that makes up all of `text`.
std::optional<int> whole_number(std::string_view text) {
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data(), end, value);
  if (status != std::errc{} || rest != end || text.starts_with('-')) return std::nullopt;
  return value;
}

std::pair<int, int> read_range(const Field& field, std::string_view range, int end) {
  const std::size_t dash = range.find('-');
  const auto first = whole_number(range.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : whole_number(range.substr(dash + 1));
  if (!first || !last || *first > *last)
    fail_at(field.node->place,
            "{} = {} is no range (\"{}\" is not like \"0-3\"). Write numbers and ranges with "
            "commas between them.",
            field.path, to_text(*field.node), shown(range));
  if (*last >= end)
    fail_at(field.node->place, "{} = {} is out of range ({} is not in 0 to {}). Count from 0.",
            field.path, to_text(*field.node), *last, end - 1);
  return {*first, *last};
}

}  // namespace

std::vector<std::pair<int, Field>> read_indices(const Field& field, int end) {
  std::vector<std::pair<int, Field>> result;
  if (field.node->kind != ConfigNode::Kind::text) {
    for (const Field& item : elements(field))
      result.emplace_back(static_cast<int>(read_integer(item, 0, end - 1)), item);
    return result;
  }
  std::string text = field.node->text;
  std::erase(text, ' ');
  std::vector<bool> listed(to_size(end));
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const auto [first, last] =
        read_range(field, std::string_view{text}.substr(begin, comma - begin), end);
    for (int i = first; i <= last; ++i) {
      if (listed[at(i)])
        fail_at(field.node->place, "{} = {} names {} twice (ranges overlap). Name it once.",
                field.path, to_text(*field.node), i);
      listed[at(i)] = true;
      result.emplace_back(i, field);
    }
    begin = comma + 1;
  }
  return result;
}

}  // namespace longhaul::scenario
