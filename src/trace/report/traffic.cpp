#include "trace/report/traffic.hpp"

#include <algorithm>
#include <tuple>

#include "base/index.hpp"

namespace longhaul::trace {
namespace {

/// What the members of a collective have in common: its kind, its lowest rank, and the place among
/// those of a member that are so, since each member has them in one order.
using CollectiveKey = std::tuple<RowKind, std::int32_t, std::int32_t>;

std::map<CollectiveKey, std::vector<const TimelineRow*>> collectives_of(
    std::span<const TimelineRow> rows) {
  std::map<std::tuple<RowKind, std::int32_t, std::int32_t>, std::int32_t>
      seen;  // by kind, peer, rank
  std::map<CollectiveKey, std::vector<const TimelineRow*>> members;
  for (const TimelineRow& row : rows) {
    const std::int32_t place = seen[{row.kind, row.peer, row.rank}]++;
    members[{row.kind, row.peer, place}].push_back(&row);
  }
  for (auto& [key, group] : members) std::ranges::sort(group, {}, &TimelineRow::rank);
  return members;
}

/// How often all bytes go around the ring.
int rounds_of(RowKind kind) {
  for (const CollectiveKind each : every<CollectiveKind>())
    if (row_kind_of(each) == kind) return facts_of(each).rounds;
  return 0;
}

}  // namespace

void TrafficTotals::add_collectives(std::span<const TimelineRow> rows) {
  for (const auto& [key, group] : collectives_of(rows)) {
    const auto members = static_cast<std::int64_t>(group.size());
    if (members < 2) continue;
    for (std::size_t i = 0; i < group.size(); ++i) {
      const TimelineRow& row = *group[i];
      const std::int32_t next = group[(i + 1) % group.size()]->datacenter;
      totals_[{row.datacenter, next}].data_parallel_bytes +=
          rounds_of(row.kind) * (row.size_bytes * (members - 1) / members);
    }
  }
}

std::vector<Traffic> TrafficTotals::named(std::span<const std::string> datacenters) && {
  std::vector<Traffic> traffic;
  const auto name = [&](std::int32_t number) {
    const bool known = number >= 0 && std::cmp_less(number, datacenters.size());
    return known ? datacenters[at(number)] : std::string{"?"};
  };
  for (auto& [pair, sums] : totals_) {
    if (sums.message_bytes == 0 && sums.data_parallel_bytes == 0) continue;
    sums.from = name(pair.first);
    sums.to = name(pair.second);
    traffic.push_back(sums);
  }
  return traffic;
}

}  // namespace longhaul::trace
