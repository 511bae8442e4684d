#include "scenario/files/embedded_files.hpp"

#include <algorithm>
#include <filesystem>

#include "scenario/files/link_trace.hpp"
#include "scenario/text/csv_lines.hpp"

namespace longhaul::scenario {
namespace {

constexpr std::string_view kHeld = "#: ";
constexpr std::string_view kTraceTitle = "#: trace ";
constexpr std::string_view kCostsTitle = "#: costs ";
constexpr std::string_view kLevelsTitle = "#: levels ";
constexpr std::string_view kRegionsTitle = "#: regions ";

/// The line that begins at `begin`, its end included.
std::string_view line_at(std::string_view text, std::size_t begin) {
  const std::size_t end = text.find('\n', begin);
  return text.substr(begin, end == std::string_view::npos ? end : end + 1 - begin);
}

/// Where the lines below a title go; nullptr where the line is none.
std::string* titled(std::string_view line, EmbeddedFiles& held) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  for (const auto& [title, files] :
       {std::pair{kTraceTitle, &held.traces}, std::pair{kCostsTitle, &held.costs},
        std::pair{kLevelsTitle, &held.levels}, std::pair{kRegionsTitle, &held.regions}}) {
    if (!line.starts_with(title)) continue;
    std::string& text = (*files)[std::string{line.substr(title.size())}];
    text.clear();
    return &text;
  }
  return nullptr;
}

void add_section(ConfigNode& root, const std::string& name,
                 const std::map<std::string, std::string>& files) {
  if (files.empty()) return;
  if (root.find(name) == nullptr) {
    ConfigNode section;
    section.place = root.place;
    assign(root, name, section);
  }
  ConfigNode& section = *root.find(name);
  for (const auto& [file, content] : files) {
    if (section.find(file) != nullptr) continue;
    ConfigNode text;
    text.kind = ConfigNode::Kind::text;
    text.place = section.place;
    text.text = content;
    assign(section, file, std::move(text));
  }
}

/// A file's text with each line set in by a blank, so that none looks like the title of another.
std::string set_in(const std::string& text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1);
    result += ' ' + text.substr(at, end + 1 - at);
    at = end + 1;
  }
  return result;
}

/// What set_in() made of a text, as it was.
std::string set_out(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    std::string_view line = line_at(text, at);
    at += line.size();
    if (line.starts_with(' ')) line.remove_prefix(1);
    result += line;
  }
  return result;
}

}  // namespace

bool holds_files(std::string_view text) {
  return text.find("\n#: trace ") != std::string_view::npos ||
         text.find("\n#: costs ") != std::string_view::npos ||
         text.find("\n#: levels ") != std::string_view::npos ||
         text.find("\n#: regions ") != std::string_view::npos;
}

EmbeddedFiles take_held_files(std::string& text, const std::string& source) {
  EmbeddedFiles held;
  if (text.find(kHeld) == std::string::npos) return held;
  std::string kept;
  std::string* current = nullptr;
  std::size_t taken = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view line = line_at(text, at);
    at += line.size();
    if (std::string* const begun = titled(line, held)) {
      current = begun;
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
  for (auto* const files : {&held.costs, &held.levels})
    for (auto& [name, content] : *files) content = set_out(content);
  return held;
}

void add_held_files(ConfigNode& root, const EmbeddedFiles& held) {
  add_section(root, "traces", held.traces);
  add_section(root, "profiles", held.costs);
  add_section(root, "levels", held.levels);
  add_section(root, "regions", held.regions);
}

std::string held_text(std::string_view kind, const std::string& name, std::string_view content) {
  std::string text = fmt::format("{}{} {}\n", kHeld, kind, name);
  for (std::size_t at = 0; at < content.size();) {
    const std::string_view line = line_at(content, at);
    at += line.size();
    text += kHeld;
    text += line;
  }
  if (!text.ends_with('\n')) text += '\n';
  return text;
}

std::string read_file_name(const Field& field, std::string_view what) {
  constexpr std::size_t kLongestName = 1024;
  std::string name = read_text(field);
  const bool printable = std::ranges::none_of(
      name, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
  if (name.empty() || name.size() > kLongestName || !printable)
    fail_at(field.node->place, "{} = \"{}\" names no file. Name {}.", field.path, shown(name),
            what);
  return name;
}

const ConfigNode* own_file(const ConfigNode& root, const std::string& section,
                           const std::string& name) {
  const ConfigNode* const table = root.find(section);
  if (table == nullptr) return nullptr;
  if (table->kind != ConfigNode::Kind::table)
    fail_at(table->place, "{} = {} is no table (wrong type). Write [{}] and \"{}\" below.", section,
            to_text(*table), section, shown(name));
  return table->find(name);
}

MeasuredText read_measured(const ConfigNode& root, const Field& field, const MeasuredKind& kind) {
  const std::string name = read_file_name(field, kind.writer);
  if (const ConfigNode* own = own_file(root, kind.section, name)) {
    const std::string path = fmt::format("{}.{}", kind.section, shown(name));
    return {read_text({own, path}), to_text(own->place) + ": " + path, ""};
  }
  const std::filesystem::path file = std::filesystem::path{*root.place.origin}.parent_path() / name;
  try {
    const std::string text = read_csv_file(file, kLargestText, kind.what, field.path);
    return {text, file.string(), '\n' + held_text(kind.title, name, set_in(text))};
  } catch (const Error& error) {
    fail_at(field.node->place, "{}", error.what());
  }
}

}  // namespace longhaul::scenario
