#include "harness/ranks/host_segment.hpp"

#include <cstring>
#include <span>

#include "plan/rank_ops.hpp"
#include "plan/rows.hpp"
#include "trace/file/trace_file.hpp"

namespace longhaul::harness {
namespace {

/// The times of all of this host's ranks, on its first one; ops of others are left alone.
OpTimes gather_on_host(const comm::HostRanks& host_ranks, const Plan& plan, const OpTimes& mine) {
  const plan::OpRange range = plan::ops_of_rank(plan, host_ranks.self());
  std::vector<int> counts;
  const auto bytes = host_ranks.host().gather(
      std::as_bytes(std::span{mine}.subspan(range.first, range.count)), counts);
  if (host_ranks.self() != host_ranks.local().front()) return {};
  OpTimes all(plan.ops.size());
  const std::byte* at = bytes.data();
  for (const Rank rank : host_ranks.local()) {
    const plan::OpRange ops = plan::ops_of_rank(plan, rank);
    std::memcpy(all.data() + ops.first, at, ops.count * sizeof(OpTime));
    at += ops.count * sizeof(OpTime);
  }
  return all;
}

/// On a network as it is no message holds what the plan names: two may be on their way at once.
void leave_resources_out(Timeline& timeline) {
  for (TimelineRow& row : timeline.rows)
    if (row.kind == RowKind::send || row.kind == RowKind::recv) row.resource = -1;
}

}  // namespace

void write_host_segment(const engine::Ranks& ranks, const Plan& plan, const OpTimes& times,
                        const std::filesystem::path& directory, const IterationKey& key,
                        bool emulates) {
  const comm::HostRanks& host_ranks = ranks.host_ranks();
  const OpTimes all = gather_on_host(host_ranks, plan, times);
  if (all.empty()) return;
  Timeline rows;
  std::vector<int> local;
  for (const Rank rank : host_ranks.local()) local.push_back(static_cast<int>(rank));
  if (host_ranks.all_local()) {
    plan::append_rows(rows, plan, all, key.iteration);
  } else {
    for (const Rank rank : host_ranks.local())
      plan::append_rows(rows, plan, all, key.iteration, rank);
  }
  if (!emulates) leave_resources_out(rows);
  trace::write_segment(directory, key, local, rows);
}

}  // namespace longhaul::harness
