#pragma once

#include <span>
#include <string>
#include <vector>

#include "scenario/scenario.hpp"

namespace longhaul::harness {

/// Links that change while a run goes on: what the world does, whatever the ranks believe.
struct LinkChange {
  int iteration = 0;             ///< the first one on the new links; at least 1
  std::vector<std::string> set;  ///< overrides, as typed: "link.latency_ratio=2"
  Scenario scenario;             ///< from then on, as played; the changes before it included
};

/// The changes of --change ITERATION:PATH=VALUE (repeatable; those of one iteration are one
/// change), in order of iteration. `scenario` was read from `file`; `overrides` are those of --set,
/// `iterations` how many the run has. Throws Error that names the option: no iteration of the run,
/// no path of links or node interfaces, or what the scenario's own overrides would refuse.
[[nodiscard]] std::vector<LinkChange> parse_changes(std::span<const std::string> options,
                                                    const Scenario& scenario,
                                                    const std::string& file,
                                                    std::span<const std::string> overrides,
                                                    int iterations);

}  // namespace longhaul::harness
