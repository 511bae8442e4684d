#include <algorithm>
#include <filesystem>

#include "scenario/csv_lines.hpp"
#include "scenario/link_trace.hpp"
#include "scenario/read_weather.hpp"

namespace longhaul {
namespace {

constexpr std::string_view kHeld = "#: ";
constexpr std::string_view kTitle = "#: trace ";

/// The line that begins at `begin`, its end included.
std::string_view line_at(std::string_view text, std::size_t begin) {
  const std::size_t end = text.find('\n', begin);
  return text.substr(begin, end == std::string_view::npos ? end : end + 1 - begin);
}

}  // namespace

std::map<std::string, std::string> take_held_traces(std::string& text, const std::string& source) {
  std::map<std::string, std::string> held;
  if (text.find(kTitle) == std::string::npos) return held;
  std::string kept;
  std::string* current = nullptr;
  std::size_t taken = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view line = line_at(text, at);
    at += line.size();
    if (line.starts_with(kTitle)) {
      std::string_view name = line.substr(kTitle.size());
      if (name.ends_with('\n')) name.remove_suffix(1);
      current = &held[std::string{name}];
      current->clear();
    } else if (current != nullptr && line.starts_with(kHeld)) {
      taken += line.size();
      if (taken > kLargestTraces)
        fail(
            "{}: the text holds more than {} bytes of traces (that is the limit). Take coarser "
            "steps.",
            source, kLargestTraces);
      current->append(line.substr(kHeld.size()));
    } else {
      current = nullptr;
      kept += line;
    }
  }
  text = std::move(kept);
  return held;
}

void add_held_traces(ConfigNode& root, const std::map<std::string, std::string>& held) {
  if (held.empty()) return;
  if (root.find("traces") == nullptr) {
    ConfigNode section;
    section.place = root.place;
    assign(root, "traces", section);
  }
  ConfigNode& section = *root.find("traces");
  for (const auto& [name, csv] : held) {
    if (section.find(name) != nullptr) continue;
    ConfigNode text;
    text.kind = ConfigNode::Kind::text;
    text.place = section.place;
    text.text = csv;
    assign(section, name, std::move(text));
  }
}

TraceStore::TraceStore(const ConfigNode& root) : root_{root} {}

std::shared_ptr<const LinkTrace> TraceStore::find(const Field& field) {
  const std::string name = read_text(field);
  const auto known = by_name_.find(name);
  if (known != by_name_.end()) return known->second;
  LinkTrace trace = read(field, name);
  trace.name = name;
  return by_name_[name] = std::make_shared<const LinkTrace>(std::move(trace));
}

LinkTrace TraceStore::read(const Field& field, const std::string& name) {
  constexpr std::size_t kLongestName = 1024;
  const bool printable = std::ranges::none_of(
      name, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
  if (name.empty() || name.size() > kLongestName || !printable)
    fail_at(field.node->place, "{} = \"{}\" names no file. Name a CSV.", field.path, shown(name));
  const ConfigNode* const section = root_.find("traces");
  if (section != nullptr && section->kind != ConfigNode::Kind::table)
    fail_at(section->place, "traces = {} is no table (wrong type). Write [traces] and CSV below.",
            describe(*section));
  if (const ConfigNode* own = section == nullptr ? nullptr : section->find(name))
    return parse_link_trace(read_text({own, "traces." + shown(name)}),
                            to_text(own->place) + ": traces." + shown(name));
  const std::filesystem::path beside{*root_.place.origin};
  const std::filesystem::path file = beside.parent_path() / name;
  try {
    const std::string csv = read_csv_file(file, kLargestTrace, "the trace of a link", field.path);
    LinkTrace trace = parse_link_trace(csv, file.string());
    of_files_.push_back(name);
    return trace;
  } catch (const Error& error) {
    fail_at(field.node->place, "{}", error.what());
  }
}

std::string TraceStore::held_text() const {
  std::string text{of_files_.empty() ? "" : "\n"};
  for (const std::string& name : of_files_) {
    text += fmt::format("{}{}\n", kTitle, name);
    const std::string csv = write_link_trace(*by_name_.at(name));
    for (std::size_t at = 0; at < csv.size();) {
      const std::string_view line = line_at(csv, at);
      at += line.size();
      text += kHeld;
      text += line;
    }
  }
  return text;
}

}  // namespace longhaul
