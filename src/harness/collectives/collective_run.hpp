#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/program/arguments.hpp"
#include "harness/collectives/collective_measurement.hpp"
#include "harness/environment/shared_options.hpp"
#include "report/collective_options.hpp"

namespace longhaul::harness {

/// Options of bench_collectives, as typed.
struct CollectiveOptions : SharedOptions {
  std::string scenario;
  report::CollectiveArguments collective;
  int iterations = 8;
  int warmup = 1;
  std::string payload;
  std::string emulate = "on";
  std::string calls = "messages";
  std::string credit = "1ms";
  std::string beside;
  int ties = planner::TieDraws{}.draws;
  bool fit = false;
};

void declare(Arguments& arguments, CollectiveOptions& options);

/// Throws Error on values that do not go together.
[[nodiscard]] CollectiveSettings settings_of(const CollectiveOptions& options,
                                             const Scenario& scenario);

/// Those of the lists, or the rings of --fit.
[[nodiscard]] std::vector<plan::Collective> collectives_of(const CollectiveOptions& options,
                                                           const Scenario& scenario);

/// On rank 0: prints tables or the record, and writes record.json and levels.toml where --out says
/// so. Returns how many messages and items were wrong.
std::int64_t finish_collectives(const CollectiveOptions& options, const Scenario& scenario,
                                const CollectiveSettings& settings,
                                const std::vector<CollectiveMeasurement>& measured,
                                const nlohmann::json& environment);

}  // namespace longhaul::harness
