#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/listed_enum.hpp"
#include "planner/sites/algorithm1.hpp"

namespace longhaul::planner {

/// Two sites beat one from a bandwidth on; already at the lowest bandwidth that was tried; not even
/// over an unlimited link; no plan uses both, whatever the link.
#define LONGHAUL_BREAK_EVENS(X) \
  X(found, "found") X(always, "always") X(never, "never") X(no_plan, "no_plan")
LONGHAUL_LISTED_ENUM(BreakEven, LONGHAUL_BREAK_EVENS);

/// How fast the link between two sites must be until both together train faster than the better of
/// them alone.
struct BreakEvenPoint {
  Duration latency{};  ///< one way
  BreakEven verdict = BreakEven::never;
  std::optional<Bandwidth> bandwidth;  ///< between two nodes, each way; of `found`
  double one = 0;                      ///< iterations a second of the best plan in one site
  double two = 0;        ///< of the best plan in both: at the bandwidth, or at the end that decided
  int cells = 0;         ///< D of that plan
  std::string reason{};  ///< of `no_plan`
};

struct BreakEvenOptions {
  Algorithm1Options plan;
  double tolerance = 0.001;  ///< of the bandwidth: upper end over lower end, less 1
  Bandwidth lowest{1e6}, highest{1e13};
  CellModel model = CellModel::relays;
  int threads = 0;
};

/// Bisection on a logarithmic scale, for each latency, by algorithm 1 on the two sites alone; the
/// interfaces of nodes stay as they are. Where the throughput does not grow with the bandwidth
/// throughout (a generator's rule may turn) it is one of the crossings. One and two sites take the
/// same values of C: those of the scenario's link, and 1. Throws Error where no link joins the
/// sites, or both together hold no pipeline.
[[nodiscard]] std::vector<BreakEvenPoint> break_even(const Scenario& scenario, DatacenterId a,
                                                     DatacenterId b,
                                                     std::span<const Duration> latencies,
                                                     const BreakEvenOptions& options);

}  // namespace longhaul::planner
