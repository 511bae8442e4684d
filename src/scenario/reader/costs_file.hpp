#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "scenario/reader/sections.hpp"

namespace longhaul::scenario {

/// The measurements of bench_profile, in a file that `costs.file` names (docs/profile.md).
class CostsFile {
public:
  /// Reads the file that the scenario names, of [profiles] or beside it, and puts its costs into
  /// [costs] wherever the scenario says nothing itself. nullopt where it names none, or
  /// "" (--set costs.file= takes back what a file says). Of `overrides` those that name a file come
  /// first, so that the others change what it says.
  [[nodiscard]] static std::optional<CostsFile> include(ConfigNode& root,
                                                        std::span<const std::string> overrides);

  /// Were costs of a scenario measured? `toml` is Scenario::text, which holds the file.
  [[nodiscard]] static bool is_included(std::string_view toml,
                                        std::span<const std::string> overrides = {});

  /// Throws Error unless the costs are of so many stages of this model, cut in the same way.
  /// Without a model there is nothing to compare dimensions with.
  void require_fit(const std::optional<LoadedModel>& model, const Scenario& scenario) const;

  /// Text to append to the scenario's so that it is complete without the file, an empty line first;
  /// empty where the scenario's text has it already.
  [[nodiscard]] const std::string& held_text() const { return held_text_; }

private:
  CostsFile(ConfigNode tree, std::string held_text);
  void require_same(const char* key, int scenario) const;

  ConfigNode tree_;
  std::string held_text_;
};

}  // namespace longhaul::scenario
