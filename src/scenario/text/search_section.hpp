#pragma once

#include <map>
#include <string>

#include "scenario/text/config_node.hpp"

namespace longhaul::scenario {

/// Options of `longhaul plan --search parallel`, by their names.
using SearchTexts = std::map<std::string, std::string, std::less<>>;

/// [search] of a scenario: texts, and lists as an option takes them ("1,2,4"). Throws Error for a
/// key that is no option.
[[nodiscard]] SearchTexts read_search(const ConfigNode& root);

/// What a search of layouts asks of a scenario before it is loaded: scenario_tree().
struct SearchedText {
  SearchTexts options;
  bool has_stages = false;
  bool has_batch = false;  ///< microbatches or global_batch
};
[[nodiscard]] SearchedText read_searched_text(const ConfigNode& root);

}  // namespace longhaul::scenario
