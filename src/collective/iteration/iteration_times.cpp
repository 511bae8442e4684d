#include "collective/iteration/iteration_times.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace longhaul::collective {
namespace {

/// Ascending, without overlaps.
std::vector<Span> joined(std::vector<Span> spans) {
  std::ranges::sort(spans, {}, &Span::start);
  std::vector<Span> result;
  for (const Span& each : spans) {
    if (each.start == each.end) continue;
    if (!result.empty() && each.start <= result.back().end)
      result.back().end = std::max(result.back().end, each.end);
    else
      result.push_back(each);
  }
  return result;
}

Duration length(const std::vector<Span>& spans) {
  return std::accumulate(
      spans.begin(), spans.end(), Duration{},
      [](Duration sum, const Span& each) { return sum + each.end - each.start; });
}

/// What of `spans` lies outside `busy`; both ascending and without overlaps.
Duration outside(const std::vector<Span>& spans, const std::vector<Span>& busy) {
  Duration covered{};
  auto next = busy.begin();
  for (const Span& each : spans) {
    while (next != busy.end() && next->end <= each.start) ++next;
    for (auto over = next; over != busy.end() && over->start < each.end; ++over)
      covered += std::min(over->end, each.end) - std::max(over->start, each.start);
  }
  return length(spans) - covered;
}

Span span_of(const OpTime& time) { return {time.start, time.end}; }

constexpr std::size_t kNoPart = std::numeric_limits<std::size_t>::max();

}  // namespace

Duration Exposure::total() const {
  return std::accumulate(communication.begin(), communication.end(), Duration{});
}

Duration Exposure::total_exposed() const {
  return std::accumulate(exposed.begin(), exposed.end(), Duration{});
}

IterationTimes::IterationTimes(const LoweredIteration& lowered, const OpTimes& times)
    : lowered_{lowered},
      times_{times},
      spans_(lowered.plan.ranks.size()),
      between_stages_(lowered.plan.ranks.size()) {
  std::vector<std::size_t> part(lowered.communication_of.size(), kNoPart);
  const std::span<const Lane> lanes{lowered.plan.lanes};
  for (std::size_t first = 0; first < lanes.size();) {
    std::size_t end = first;
    while (end < lanes.size() && lanes[end].rank == lanes[first].rank) ++end;
    take_rank(lanes.subspan(first, end - first), part);
    first = end;
  }
}

/// `part`: by collective, where in the rank's spans its part is; none before and after the call.
void IterationTimes::take_rank(std::span<const Lane> lanes, std::vector<std::size_t>& part) {
  const std::size_t rank = index(lanes.front().rank);
  std::vector<std::size_t> seen;
  for (const Lane& lane : lanes) {
    for (std::size_t i = index(lane.first); i < index(lane.first) + lane.count; ++i) {
      const Op& op = lowered_.plan.ops[i];
      const Span own = span_of(times_[i]);
      makespan_ = std::max(makespan_, own.end);
      if (op.kind == OpKind::compute) continue;
      const bool whole = op.kind == OpKind::collective;
      if (!whole && !is_step(op)) {
        between_stages_[rank].push_back(own);
        continue;
      }
      const std::size_t c = whole ? op.match : stepped_of(op);
      if (part[c] == kNoPart) {
        part[c] = spans_[rank].size();
        seen.push_back(c);
        spans_[rank].push_back({lowered_.communication_of[c], own});
      }
      Span& span = spans_[rank][part[c]].span;
      span = {std::min(span.start, own.start), std::max(span.end, own.end)};
    }
  }
  for (const std::size_t c : seen) part[c] = kNoPart;
}

std::vector<Rank> IterationTimes::ranks() const {
  std::vector<Rank> ranks;
  for (const Lane& lane : lowered_.plan.lanes)
    if (lane.kind == OpKind::compute &&
        lowered_.plan.ranks[index(lane.rank)].role == RankRole::training)
      ranks.push_back(lane.rank);
  return ranks;
}

Span IterationTimes::operation(Rank rank, std::uint32_t place) const {
  return span_of(times_[index(lowered_.op_of(rank, place))]);
}

std::vector<Span> IterationTimes::operations(Rank rank) const {
  std::vector<Span> spans;
  const OpId first = lowered_.first_operation[index(lowered_.standing_for(rank))];
  const Lane& lane = lowered_.plan.lane_of(first);
  for (std::uint32_t place = 0; place < lane.count; ++place)
    spans.push_back(operation(rank, place));
  return joined(std::move(spans));
}

Duration IterationTimes::computation(Rank rank) const { return length(operations(rank)); }

Exposure IterationTimes::exposure(Rank rank) const {
  const std::vector<Span> busy = operations(rank);
  std::array<std::vector<Span>, kCountOf<Traffic>> spans;
  for (const CommunicationSpan& each : communications(rank))
    spans[static_cast<std::size_t>(each.of.traffic)].push_back(each.span);
  spans[static_cast<std::size_t>(Traffic::pp)] =
      between_stages_[index(lowered_.standing_for(rank))];
  Exposure exposure;
  for (std::size_t t = 0; t < spans.size(); ++t) {
    const std::vector<Span> own = joined(std::move(spans[t]));
    exposure.communication[t] = length(own);
    exposure.exposed[t] = outside(own, busy);
  }
  return exposure;
}

}  // namespace longhaul::collective
