#pragma once

#include <string>
#include <vector>

#include "scenario/text/config_node.hpp"

namespace longhaul::scenario {

/// The keys of --set section.NAME.key=VALUE, section first.
using OverridePath = std::vector<std::string>;

/// Does the path mean every entry of its section? Keys that are tables look like names; no link has
/// theirs, since names of links hold a dash.
[[nodiscard]] bool means_all(const OverridePath& path);

/// The entries of [[section]] (datacenter, link, node) that section.key (all) or section.NAME.key
/// mean; a link that only between = "all" or regions give gets an entry of its own. Throws Error at
/// `place` that says how entries are called.
[[nodiscard]] std::vector<ConfigNode*> addressed(ConfigNode& root, const OverridePath& path,
                                                 const Place& place);

}  // namespace longhaul::scenario
