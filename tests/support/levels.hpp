#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "scenario/reader/load.hpp"

namespace longhaul::testing {

/// One datacenter or more, each of `nodes` nodes with `gpus` ranks; `interfaces` are the keys of
/// each [[node]], `link` those of the link between all datacenters.
struct Levels {
  int datacenters = 1;
  int nodes = 1;
  int gpus = 1;
  std::string interfaces{};
  std::string link{};
};

inline Scenario scenario_of(const Levels& levels) {
  const int ranks = levels.datacenters * levels.nodes * levels.gpus;
  std::string text = fmt::format(
      "[costs]\nforward = \"1ms\"\nmessage = \"1MB\"\n[parallel]\nstages = {}\nmicrobatches = 1\n",
      ranks);
  int first = 0;
  for (int d = 0; d < levels.datacenters; ++d) {
    std::vector<int> stages;
    for (int i = 0; i < ranks / levels.datacenters; ++i) stages.push_back(first++);
    text +=
        fmt::format("[[datacenter]]\nname = \"dc{}\"\nstages = [{}]\n", d, fmt::join(stages, ", "));
  }
  if (levels.datacenters > 1) text += "[[link]]\nbetween = \"all\"\n" + levels.link + "\n";
  for (int d = 0; d < levels.datacenters; ++d)
    text += fmt::format("[[node]]\ndatacenter = \"dc{}\"\ngpus = {}\n{}\n", d, levels.gpus,
                        levels.interfaces);
  return scenario::parse_scenario(text, "levels.toml");
}

}  // namespace longhaul::testing
