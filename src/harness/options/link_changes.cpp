#include "harness/options/link_changes.hpp"

#include <algorithm>
#include <charconv>

#include "base/error.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul::harness {
namespace {

struct TypedChange {
  int iteration = 0;
  std::string set;
  std::string option;  ///< as typed
};

TypedChange split(const std::string& option, int iterations) {
  const std::size_t colon = std::min(option.find(':'), option.size());
  int iteration = 0;
  const auto [at, problem] = std::from_chars(option.data(), option.data() + colon, iteration);
  if (colon == option.size() || problem != std::errc{} || at != option.data() + colon)
    fail(
        "--change {}: there is no iteration in front (a change is ITERATION:PATH=VALUE). Write "
        "--change 10:link.latency_ratio=2, say.",
        option);
  if (iteration < 1 || iteration >= iterations)
    fail(
        "--change {}: no iteration {} can begin on other links (the run has {}, counted from 0, "
        "and begins on the scenario's). Give 1 to {}, or more --iterations.",
        option, iteration, iterations, iterations - 1);
  TypedChange change{iteration, option.substr(colon + 1), option};
  if (!change.set.starts_with("link.") && !change.set.starts_with("node."))
    fail(
        "--change {}: only links and node interfaces change during a run (the ranks stay). Write "
        "link.KEY=VALUE or node.KEY=VALUE.",
        option);
  return change;
}

/// The scenario's own complaint, under the name of this option.
[[noreturn]] void refuse(const TypedChange& change, std::string complaint) {
  const std::string prefix = "--set " + change.set + ": ";
  if (complaint.starts_with(prefix)) complaint.erase(0, prefix.size());
  fail("--change {}: {}", change.option, complaint);
}

}  // namespace

std::vector<LinkChange> parse_changes(std::span<const std::string> options,
                                      const Scenario& scenario, const std::string& file,
                                      std::span<const std::string> overrides, int iterations) {
  std::vector<TypedChange> typed;
  for (const std::string& option : options) typed.push_back(split(option, iterations));
  std::ranges::stable_sort(typed, {}, &TypedChange::iteration);
  std::vector<std::string> all{overrides.begin(), overrides.end()};
  std::vector<LinkChange> changes;
  for (const TypedChange& change : typed) {
    all.push_back(change.set);
    if (changes.empty() || changes.back().iteration != change.iteration)
      changes.push_back({change.iteration, {}, {}});
    changes.back().set.push_back(change.set);
    try {
      changes.back().scenario = scenario::parse_scenario(scenario.text, file, all).as_played();
    } catch (const Error& error) {
      refuse(change, error.what());
    }
  }
  return changes;
}

}  // namespace longhaul::harness
