#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "base/vocabulary.hpp"
#include "harness/collectives/collective_measurement.hpp"
#include "report/collective_options.hpp"

namespace longhaul::harness {

/// One size of a ring: its time is hops latencies, and bytes over the rate.
struct RingPoint {
  Bytes size;
  double hops = 0, bytes = 0;
  double duration_ns = 0;
};
/// The ring of a kind among so many members takes equal hops; the bytes of all of them together.
[[nodiscard]] RingPoint ring_point(CollectiveKind kind, int members, Bytes size,
                                   double duration_ns);

/// A number, and its 95% interval.
struct Fitted {
  double value = 0, low = 0, high = 0;
};

/// Latency (alpha) and time of a byte (beta) of one level, by the ring of one kind.
struct LevelFit {
  NetworkLevel level{};
  CollectiveKind kind{};
  int members = 0;
  Fitted latency_ns;
  Fitted ns_per_byte;
  std::vector<Bytes> fitted, left_out;
  double error = 0;  ///< largest relative one, of the sizes that were left out

  [[nodiscard]] double time_ns(const RingPoint& point) const {
    return point.hops * latency_ns.value + point.bytes * ns_per_byte.value;
  }
};

/// So many sizes at least: half of them are left out, and an interval needs three.
inline constexpr std::size_t kFewestSizes = 6;

/// Least squares of relative errors on every second point, from the first on; a latency below zero
/// is one of zero. Intervals are Student's, from the residuals. Throws Error for fewer than
/// kFewestSizes points, and where no rate shows. Level, kind and members are the caller's.
[[nodiscard]] LevelFit fit_ring(std::span<const RingPoint> points);

/// The rings that show the levels of a scenario: the first node, the first rank of each node of the
/// first datacenter, the first rank of each datacenter; levels of one member are left out. For
/// every kind of the list and every size. Throws Error for what cannot be fitted.
[[nodiscard]] std::vector<plan::Collective> level_rings(
    const report::CollectiveArguments& arguments, const Scenario& scenario);

/// Of measurements of level_rings().
[[nodiscard]] std::vector<LevelFit> fit_levels(const std::vector<CollectiveMeasurement>& measured,
                                               const Scenario& scenario);

/// A line for each level and kind, for people.
[[nodiscard]] std::string level_table(const std::vector<LevelFit>& fits);

/// Where the fits come from.
struct LevelsOrigin {
  std::string command, when, commit, emulation;
};
/// levels.toml, which a scenario includes with [network] file (docs/scenario.md).
[[nodiscard]] std::string levels_text(const std::vector<LevelFit>& fits, const Scenario& scenario,
                                      const LevelsOrigin& origin);

}  // namespace longhaul::harness
