#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenario/scenario.hpp"

namespace longhaul::scenario {

/// What a stored text (Scenario::text, as traces and records keep it) says beside the scenario's
/// TOML and the files that it names: a comment for each override, "# --set PATH=VALUE", and for
/// each change of links during a run, "# --change ITERATION:PATH=VALUE". No other line begins so:
/// those of a file that was taken from another run's text are not kept.
struct StoredOptions {
  struct Change {
    int iteration = 0;
    std::string set;  ///< PATH=VALUE
  };
  std::vector<std::string> set;
  std::vector<Change> changes;  ///< as typed
};
[[nodiscard]] StoredOptions stored_options(std::string_view text);
/// The text without them.
[[nodiscard]] std::string without_stored_options(std::string_view text);
/// Appends comments to a scenario's text.
void store_overrides(std::string& text, std::span<const std::string> overrides);
void store_changes(std::string& text, std::span<const std::string> changes);

/// A stored text read back: the scenario with its overrides, and with the links that it has from
/// `iteration` on. No file but the text is looked at. Throws Error, as parse_scenario() does.
[[nodiscard]] Scenario read_stored(std::string_view text, const std::string& source,
                                   int iteration = 0);

class PieceTimes;
/// What pieces of operators take by the table that costs.profile names, from the scenario's text;
/// nullptr: there is none.
[[nodiscard]] std::shared_ptr<const PieceTimes> piece_times(const Scenario& scenario);

class RegionTable;
/// The table that [wan] names, from the scenario's text; nullptr: it names none.
[[nodiscard]] std::shared_ptr<const RegionTable> own_regions(const Scenario& scenario);

}  // namespace longhaul::scenario
