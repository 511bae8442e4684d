#pragma once

#include <map>
#include <string>
#include <string_view>

#include "scenario/text/config_node.hpp"
#include "scenario/text/fields.hpp"

namespace longhaul::scenario {

/// Files beside a scenario's that its text can hold itself, so that it is complete without them:
/// of each kind, texts by name. Below a scenario's text they stand as comments: "#: trace NAME",
/// "#: costs NAME", "#: levels NAME" or "#: regions NAME", then "#: " and a line of the file each.
struct EmbeddedFiles {
  std::map<std::string, std::string> traces;   ///< of links; [traces]
  std::map<std::string, std::string> costs;    ///< of bench_profile; [profiles]
  std::map<std::string, std::string> levels;   ///< of bench_collectives; [levels]
  std::map<std::string, std::string> regions;  ///< tables of measurements between them; [regions]
};

/// Takes them out of `text`. Throws Error where there are more than kLargestTraces bytes of them.
[[nodiscard]] EmbeddedFiles take_held_files(std::string& text, const std::string& source);
/// Puts them into [traces], [profiles], [levels] and [regions]; a text's own sections win.
void add_held_files(ConfigNode& root, const EmbeddedFiles& held);
/// The comments that hold a file; `kind`: "trace", "costs", "levels" or "regions".
[[nodiscard]] std::string held_text(std::string_view kind, const std::string& name,
                                    std::string_view content);
/// Does a text hold any?
[[nodiscard]] bool holds_files(std::string_view text);

/// A file's name: printable, at most 1024 characters. `what` it should name: "a CSV".
[[nodiscard]] std::string read_file_name(const Field& field, std::string_view what);
/// `name` in the scenario's own section of such files; nullptr where it holds none of that name.
[[nodiscard]] const ConfigNode* own_file(const ConfigNode& root, const std::string& section,
                                         const std::string& name);

/// A kind of TOML files of measurements that scenarios name.
struct MeasuredKind {
  const char* key;      ///< "costs.file"
  const char* section;  ///< of a scenario that holds such files itself: "profiles"
  const char* title;    ///< of held_text(): "costs"
  const char* what;     ///< "the file of measured costs"
  const char* writer;   ///< "what bench_profile wrote"
};
struct MeasuredText {
  std::string text;
  std::string name;  ///< for messages
  std::string held;  ///< to append to the scenario's text; empty where that has it itself
};
/// The text of the file that `field` names, of the scenario's own section or beside it. Throws
/// Error.
[[nodiscard]] MeasuredText read_measured(const ConfigNode& root, const Field& field,
                                         const MeasuredKind& kind);

}  // namespace longhaul::scenario
