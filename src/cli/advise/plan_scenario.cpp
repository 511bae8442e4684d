#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cli/advise/advised.hpp"
#include "scenario/files/embedded_files.hpp"
#include "scenario/reader/load.hpp"
#include "scenario/reader/stored_text.hpp"
#include "scenario/text/config_node.hpp"

namespace longhaul::cli {
namespace {

using scenario::ConfigNode;

/// Takes out the tables that reading a text added of the files that it holds.
void remove_held_files(const std::string& text, ConfigNode& root) {
  std::string plain = text;
  const scenario::EmbeddedFiles held = scenario::take_held_files(plain, "");
  for (const auto& [section, files] : {std::pair{"traces", &held.traces},
                                       {"profiles", &held.costs},
                                       {"levels", &held.levels},
                                       {"regions", &held.regions}})
    for (const auto& [name, content] : *files) {
      ConfigNode* const table = root.find(section);
      if (table == nullptr) continue;
      remove(*table, name);
      if (table->entries.empty()) remove(root, section);
    }
}

ConfigNode text_node(const std::string& text) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::text;
  node.text = text;
  return node;
}

}  // namespace

std::string held_lines(const std::string& text) {
  std::string held;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1);
    if (text.compare(at, 3, "#: ") == 0) held += text.substr(at, end + 1 - at);
    at = end + 1;
  }
  return held;
}

std::string plan_text(const std::string& source, const std::string& text,
                      const std::vector<std::string>& set, const std::string& title) {
  const Scenario whole = text.empty() ? scenario::load_scenario(source, set)
                                      : scenario::parse_scenario(text, source, set);
  const std::string complete = scenario::without_stored_options(whole.text);
  ConfigNode root = scenario::scenario_tree(complete, source, set);
  remove_held_files(complete, root);
  if (root.find("scenario") == nullptr) assign(root, "scenario", ConfigNode{});
  assign(*root.find("scenario"), "name", text_node(whole.name));
  return fmt::format("# {}\n{}{}", title, toml_text(root), held_lines(complete));
}

}  // namespace longhaul::cli
