#include "collective/iteration/iteration_times.hpp"

#include <algorithm>
#include <map>
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
  const Plan& plan = lowered.plan;
  for (std::size_t c = 0; c < plan.stepped.size(); ++c) {
    std::map<Rank, Span> parts;
    for (const std::vector<OpId>* side : {&plan.stepped[c].sends, &plan.stepped[c].receives}) {
      for (const OpId op : *side) {
        const Span own = span_of(times[index(op)]);
        const auto [part, is_new] = parts.try_emplace(plan.rank_of(op), own);
        part->second.start = std::min(part->second.start, own.start);
        part->second.end = std::max(part->second.end, own.end);
      }
    }
    for (const auto& [rank, span] : parts)
      spans_[index(rank)].push_back({lowered.communication_of[c], span});
  }
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    makespan_ = std::max(makespan_, times[i].end);
    const Op& op = plan.ops[i];
    if (op.kind == OpKind::compute || is_step(op)) continue;
    between_stages_[index(plan.lanes[index(op.lane)].rank)].push_back(span_of(times[i]));
  }
}

Span IterationTimes::operation(Rank rank, std::uint32_t place) const {
  return span_of(times_[index(lowered_.op_of(rank, place))]);
}

std::vector<Span> IterationTimes::operations(Rank rank) const {
  std::vector<Span> spans;
  const OpId first = lowered_.first_operation[index(rank)];
  const Lane& lane = lowered_.plan.lane_of(first);
  for (std::uint32_t place = 0; place < lane.count; ++place)
    spans.push_back(operation(rank, place));
  return joined(std::move(spans));
}

Duration IterationTimes::computation(Rank rank) const { return length(operations(rank)); }

Exposure IterationTimes::exposure(Rank rank) const {
  const std::vector<Span> busy = operations(rank);
  std::array<std::vector<Span>, kCountOf<Traffic>> spans;
  for (const CommunicationSpan& each : spans_[index(rank)])
    spans[static_cast<std::size_t>(each.of.traffic)].push_back(each.span);
  spans[static_cast<std::size_t>(Traffic::pp)] = between_stages_[index(rank)];
  Exposure exposure;
  for (std::size_t t = 0; t < spans.size(); ++t) {
    const std::vector<Span> own = joined(std::move(spans[t]));
    exposure.communication[t] = length(own);
    exposure.exposed[t] = outside(own, busy);
  }
  return exposure;
}

}  // namespace longhaul::collective
