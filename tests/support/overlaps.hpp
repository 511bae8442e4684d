#pragma once

#include <string>
#include <vector>

#include "collective/overlap/overlaps.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/generators/generate.hpp"
#include "support/shipped.hpp"

namespace longhaul::testing {

/// Two operators of 2 MB and three products of 2 ms each, on two ranks with ports of 1 GB/s.
inline Scenario centauri_toy(const std::vector<std::string>& set = {}) {
  return scenario::load_scenario(kShippedScenarios / "centauri-toy.toml", set);
}

inline const collective::Overlap& overlap_named(const std::string& name) {
  return *collective::parse_overlaps(name).front();
}

inline collective::IterationPlan planned_iteration(const Scenario& scenario,
                                                   const std::string& overlap,
                                                   const char* schedule = "gpipe") {
  return collective::overlapped(overlap_named(overlap), schedule::generate(schedule, scenario),
                                scenario)
      .or_throw();
}

}  // namespace longhaul::testing
