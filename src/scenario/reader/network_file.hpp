#pragma once

#include <optional>
#include <span>
#include <string>

#include "scenario/reader/sections.hpp"

namespace longhaul::scenario {

/// The levels of a cluster's network that bench_collectives --fit measured, in a file that
/// `network.file` names (docs/scenario.md).
class NetworkFile {
public:
  /// Reads the file, of [levels] or beside the scenario, and puts latencies and rates into [[node]]
  /// and [[link]] wherever these say nothing themselves: of the kind network.kind, or of the file's
  /// first. nullopt where the scenario names none, or "". Of `overrides` those of [network] come
  /// first.
  [[nodiscard]] static std::optional<NetworkFile> include(ConfigNode& root,
                                                          std::span<const std::string> overrides);

  /// Throws Error unless the levels are of this cluster: nodes of so many ranks, and where they
  /// have the wan's, the same datacenters.
  void require_fit(const Scenario& scenario) const;

  /// As CostsFile::held_text().
  [[nodiscard]] const std::string& held_text() const { return held_text_; }

private:
  NetworkFile(ConfigNode tree, std::string held_text);

  ConfigNode tree_;
  std::string held_text_;
};

}  // namespace longhaul::scenario
