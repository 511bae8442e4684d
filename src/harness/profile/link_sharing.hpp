#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "harness/profile/link_measurement.hpp"
#include "plan/plan.hpp"

namespace longhaul::harness {

/// Messages beside others: one alone; of every sender at once on one link, which carries one after
/// the other; both ways of a pair at once, which do not disturb each other; and a ring of all ranks
/// beside messages on links of their own.
#define LONGHAUL_SHARING_TESTS(X) \
  X(isolated, "isolated")         \
  X(one_link, "one-link")         \
  X(both_ways, "both-ways")       \
  X(beside_ring, "beside-ring")
LONGHAUL_LISTED_ENUM(SharingTest, LONGHAUL_SHARING_TESTS);

/// A test's messages among pairs of ranks, and the time from the first start to the last end.
struct SharingPlan {
  Plan plan;
  Duration expected{};
};
[[nodiscard]] SharingPlan sharing_plan(SharingTest test, Duration target, int ranks, Bytes size);

struct SharingMeasurement {
  SharingTest test{};
  Duration target{};               ///< of one message's transfer
  Duration expected{};             ///< from the first start to the last end
  std::vector<double> samples_ns;  ///< of iterations; complete on rank 0
};

/// Collective, on pairs of ranks: every test at every target, `settings.samples` times.
[[nodiscard]] std::vector<SharingMeasurement> measure_sharing(const std::vector<Duration>& targets,
                                                              engine::Ranks& ranks,
                                                              const LinkSettings& settings,
                                                              engine::Checks& checks);

/// For people; `floor`: half a round trip into which nothing is injected, below which no target can
/// be emulated.
[[nodiscard]] std::string sharing_table(const std::vector<SharingMeasurement>& measured,
                                        Duration floor, const LinkSettings& settings);
[[nodiscard]] nlohmann::ordered_json sharing_json(const std::vector<SharingMeasurement>& measured);

}  // namespace longhaul::harness
