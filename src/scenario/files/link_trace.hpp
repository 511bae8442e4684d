#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "scenario/scenario.hpp"

namespace longhaul::scenario {

struct ConfigNode;
struct Field;

/// The largest text of one trace, and of all that a scenario's text holds.
inline constexpr std::size_t kLargestTrace = std::size_t{16} << 20;
inline constexpr std::size_t kLargestTraces = std::size_t{64} << 20;
inline constexpr std::size_t kMostStates = 200'000;

/// Reads a CSV whose first line names its columns: `time_s` and at least one of `latency_ms` and
/// `bandwidth_gbps`; other units as in docs/scenario.md, or none and a unit in each cell. `source`
/// stands for its name in errors, which are "file:line: what (why). What to do."
[[nodiscard]] LinkTrace parse_link_trace(std::string_view csv, const std::string& source);

/// The trace as a CSV of that form, comments aside; reading it gives the same trace.
[[nodiscard]] std::string write_link_trace(const LinkTrace& trace);

/// The traces that links name: of [traces], or of files beside the scenario's. Each is read once.
class TraceStore {
public:
  explicit TraceStore(const ConfigNode& root);
  [[nodiscard]] std::shared_ptr<const LinkTrace> find(const Field& field);
  /// Text to append to the scenario's so that it is complete without these files, an empty line
  /// first: see embedded_files.hpp.
  [[nodiscard]] std::string held_text() const;

private:
  [[nodiscard]] LinkTrace read(const Field& field, const std::string& name);

  const ConfigNode& root_;
  std::map<std::string, std::shared_ptr<const LinkTrace>> by_name_;
  std::vector<std::string> of_files_;  ///< names
};

}  // namespace longhaul::scenario
