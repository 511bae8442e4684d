#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "harness/profile/link_measurement.hpp"

namespace longhaul::harness {

/// Settings of a run of bench_link.
struct LinkRun {
  std::string command_line;
  Bytes payload;
  StoppingRule rule;
};

[[nodiscard]] nlohmann::ordered_json link_record(const LinkRun& run,
                                                 const std::vector<LinkMeasurement>& measurements,
                                                 const nlohmann::json& environment,
                                                 const engine::Checks& checks);
/// A line for each measurement, for people.
[[nodiscard]] std::string link_table(const std::vector<LinkMeasurement>& measurements);
/// A line for each sample.
[[nodiscard]] std::string link_csv(const std::vector<LinkMeasurement>& measurements);

}  // namespace longhaul::harness
