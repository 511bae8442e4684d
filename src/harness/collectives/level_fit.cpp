#include "harness/collectives/level_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/index.hpp"
#include "base/program/option_values.hpp"
#include "harness/collectives/collective_list.hpp"
#include "schedule/network_routes.hpp"

namespace longhaul::harness {
namespace {

/// Of a vector, what the messages of a ring's longest chain carry together.
double share_of_ring(CollectiveKind kind, double members) {
  switch (kind) {
    case CollectiveKind::all_reduce: return 2 * (members - 1) / members;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter: return (members - 1) / members;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce: return members - 1;
    // 1, 2, ... shards, hop after hop.
    case CollectiveKind::all_to_all:
    case CollectiveKind::gather:
    case CollectiveKind::scatter: return (members - 1) / 2;
  }
  return 0;
}

/// Sums of a regression through the origin: x hops, y bytes, each over the time, which is 1 then.
struct Normal {
  double xx = 0, xy = 0, yy = 0, x = 0, y = 0;
  void add(const RingPoint& point) {
    const double a = point.hops / point.duration_ns;
    const double b = point.bytes / point.duration_ns;
    xx += a * a, xy += a * b, yy += b * b, x += a, y += b;
  }
};

/// Values, half widths and all from the points that are fitted.
void solve(std::span<const RingPoint> points, LevelFit& fit) {
  Normal sums;
  for (const RingPoint& point : points) sums.add(point);
  const double determinant = sums.xx * sums.yy - sums.xy * sums.xy;
  double alpha = determinant > 0 ? (sums.x * sums.yy - sums.y * sums.xy) / determinant : -1;
  double beta = determinant > 0 ? (sums.y * sums.xx - sums.x * sums.xy) / determinant : 0;
  const bool without_latency = alpha < 0;
  if (without_latency) {
    alpha = 0;
    beta = sums.y / sums.yy;
  }
  double squares = 0;
  for (const RingPoint& point : points) {
    const double residual = 1 - (point.hops * alpha + point.bytes * beta) / point.duration_ns;
    squares += residual * residual;
  }
  const std::size_t freedom = points.size() - (without_latency ? 1 : 2);
  const double variance = squares / static_cast<double>(freedom);
  const double t = student_t(freedom);
  const double half_alpha = without_latency ? 0 : t * std::sqrt(variance * sums.yy / determinant);
  const double half_beta =
      t * std::sqrt(variance * (without_latency ? 1 / sums.yy : sums.xx / determinant));
  fit.latency_ns = {alpha, std::max(0.0, alpha - half_alpha), alpha + half_alpha};
  fit.ns_per_byte = {beta, beta - half_beta, beta + half_beta};
}

/// Ranks from the first on of which any two are `level` apart.
std::vector<Rank> group_of_level(NetworkLevel level, const Scenario& scenario) {
  const schedule::NetworkRoutes routes{scenario};
  std::vector<Rank> members{Rank{0}};
  for (int rank = 1; rank < scenario.ranks(); ++rank) {
    const bool fits = std::ranges::all_of(
        members, [&](Rank member) { return routes.level(member, Rank{rank}) == level; });
    if (fits) members.push_back(Rank{rank});
  }
  return members;
}

}  // namespace

RingPoint ring_point(CollectiveKind kind, int members, Bytes size, double duration_ns) {
  const auto n = static_cast<double>(members);
  const int rounds = kind == CollectiveKind::all_reduce ? 2 : 1;
  return {size, rounds * (n - 1), share_of_ring(kind, n) * static_cast<double>(size.count()),
          duration_ns};
}

LevelFit fit_ring(std::span<const RingPoint> points) {
  if (points.size() < kFewestSizes)
    fail(
        "--fit: {} sizes are too few (half of them are left out, to try the fit on). Give {} or "
        "more.",
        points.size(), kFewestSizes);
  LevelFit fit;
  std::vector<RingPoint> fitted;
  for (std::size_t i = 0; i < points.size(); ++i) {
    (i % 2 == 0 ? fit.fitted : fit.left_out).push_back(points[i].size);
    if (i % 2 == 0) fitted.push_back(points[i]);
  }
  solve(fitted, fit);
  if (!(fit.ns_per_byte.value > 0))
    fail(
        "--fit: times do not grow with the size, so that no rate shows (up to {} bytes). Give "
        "larger sizes.",
        points.back().size.count());
  for (std::size_t i = 1; i < points.size(); i += 2)
    fit.error = std::max(fit.error, std::abs(fit.time_ns(points[i]) / points[i].duration_ns - 1));
  return fit;
}

std::vector<plan::Collective> level_rings(const report::CollectiveArguments& given,
                                          const Scenario& scenario) {
  const std::array<std::pair<const char*, const std::string*>, 5> idle{
      {{"--group", &given.group},
       {"--mesh", &given.mesh},
       {"--order", &given.order},
       {"--per-dimension", &given.per_dimension},
       {"--pieces", &given.pieces}}};
  for (const auto& [option, value] : idle)
    if (!value->empty())
      fail("{}: it has no effect here (--fit plays a ring on each level). Leave one out.", option);
  if (!given.algorithm.empty() && given.algorithm != "ring")
    fail("--algorithm {}: --fit plays rings, whose times are sums of hops. Leave one out.",
         given.algorithm);
  if (listed_sizes("--bytes", given.bytes).size() < kFewestSizes)
    fail(
        "--fit: --bytes has {} sizes (half of them are left out, to try the fit on). Give {} or "
        "more, as in 64KiB..4MiB.",
        listed_sizes("--bytes", given.bytes).size(), kFewestSizes);
  report::CollectiveArguments plain = given;
  plain.algorithm = "ring";
  std::vector<plan::Collective> all;
  for (const NetworkLevel level : every<NetworkLevel>()) {
    const std::vector<Rank> members = group_of_level(level, scenario);
    if (members.size() < 2) continue;
    for (plan::Collective& each : listed_collectives(plain, scenario)) {
      each.members = members;
      all.push_back(std::move(each));
    }
  }
  if (all.empty()) fail("--fit: the scenario has one rank, and no level between two. Use more.");
  return all;
}

std::vector<LevelFit> fit_levels(const std::vector<CollectiveMeasurement>& measured,
                                 const Scenario& scenario) {
  const schedule::NetworkRoutes routes{scenario};
  std::vector<LevelFit> fits;
  for (std::size_t first = 0; first < measured.size();) {
    const plan::Collective& what = measured[first].predicted.collective;
    std::vector<RingPoint> points;
    for (; first < measured.size(); ++first) {
      const plan::Collective& each = measured[first].predicted.collective;
      if (each.kind != what.kind || each.members != what.members) break;
      points.push_back(ring_point(each.kind, static_cast<int>(each.members.size()), each.size,
                                  measured[first].summary.median));
    }
    std::ranges::stable_sort(points, {}, &RingPoint::size);
    LevelFit fit = fit_ring(points);
    fit.level = routes.level(what.members[0], what.members[1]);
    fit.kind = what.kind;
    fit.members = static_cast<int>(what.members.size());
    fits.push_back(std::move(fit));
  }
  return fits;
}

}  // namespace longhaul::harness
