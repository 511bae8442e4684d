#include "scenario/reader/stored_text.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "scenario/reader/load.hpp"

namespace longhaul::scenario {
namespace {

constexpr std::string_view kSet = "# --set ";
constexpr std::string_view kChange = "# --change ";

/// Calls `each(line)`, its end included.
template <typename Each>
void for_lines(std::string_view text, const Each& each) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end == std::string_view::npos ? end : end + 1);
    each(line);
    text.remove_prefix(line.size());
  }
}

bool is_option(std::string_view line) {
  return line.starts_with(kSet) || line.starts_with(kChange);
}

/// "3:link.latency=5ms"; nullopt where that is no change.
std::optional<StoredOptions::Change> change_of(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  StoredOptions::Change change{0, std::string{text.substr(colon + 1)}};
  const auto [at, problem] = std::from_chars(text.data(), text.data() + colon, change.iteration);
  if (problem != std::errc{} || at != text.data() + colon) return std::nullopt;
  return change;
}

void store(std::string& text, std::string_view title, std::span<const std::string> options) {
  if (!options.empty() && !text.empty() && !text.ends_with('\n')) text += '\n';
  for (const std::string& option : options) {
    text += title;
    text += option;
    text += '\n';
  }
}

}  // namespace

StoredOptions stored_options(std::string_view text) {
  StoredOptions found;
  for_lines(text, [&](std::string_view line) {
    if (line.ends_with('\n')) line.remove_suffix(1);
    if (line.starts_with(kSet)) found.set.emplace_back(line.substr(kSet.size()));
    if (!line.starts_with(kChange)) return;
    if (auto change = change_of(line.substr(kChange.size())))
      found.changes.push_back(*std::move(change));
  });
  return found;
}

std::string without_stored_options(std::string_view text) {
  std::string kept;
  for_lines(text, [&](std::string_view line) {
    if (!is_option(line)) kept += line;
  });
  return kept;
}

void store_overrides(std::string& text, std::span<const std::string> overrides) {
  store(text, kSet, overrides);
}

void store_changes(std::string& text, std::span<const std::string> changes) {
  store(text, kChange, changes);
}

Scenario read_stored(std::string_view text, const std::string& source, int iteration) {
  StoredOptions options = stored_options(text);
  std::ranges::stable_sort(options.changes, {}, &StoredOptions::Change::iteration);
  for (const StoredOptions::Change& change : options.changes)
    if (change.iteration <= iteration) options.set.push_back(change.set);
  Scenario scenario = parse_scenario(text, source, options.set);
  scenario.text = text;
  return scenario;
}

}  // namespace longhaul::scenario
