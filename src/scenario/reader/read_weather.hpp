#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "scenario/reader/sections.hpp"

namespace longhaul::scenario {

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

/// Reads trace, trace_repeat, loss and outage of a [[link]]. A link that a trace describes and that
/// gives no latency, or no rate, has what the trace says at time 0.
void read_weather(const Section& section, TraceStore& traces, const Scenario& scenario,
                  bool message_known, Link& link);

}  // namespace longhaul::scenario
