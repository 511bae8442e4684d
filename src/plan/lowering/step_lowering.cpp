#include "plan/lowering/step_lowering.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/index.hpp"
#include "plan/lowering/lanes.hpp"

namespace longhaul::plan {

/// Stages of one size have the same steps: they share them.
std::shared_ptr<const CollectiveSteps> StepLowering::steps_for(const Collective& collective) {
  auto& steps = known_[{collective.kind, collective.members.size(), collective.size.count(),
                        collective.algorithm, collective.mesh.sizes, collective.mesh.order,
                        collective.mesh.algorithms, collective.pieces}];
  if (!steps) steps = std::make_shared<const CollectiveSteps>(steps_of(collective));
  return steps;
}

void StepLowering::add(const Collective& collective, ChunkId chunk, int queue) {
  const auto number = static_cast<std::uint32_t>(plan_.stepped.size());
  std::shared_ptr<const CollectiveSteps> steps = steps_for(collective);
  const auto count = static_cast<std::uint32_t>(steps->messages.size());
  Adding adding;
  adding.queue = queue;
  adding.sends.resize(collective.members.size());
  adding.receives.resize(collective.members.size());
  adding.waited_for.assign(count, 0);
  adding.followed.assign(count, 0);
  for (std::uint32_t m = 0; m < count; ++m) {
    const StepMessage& message = steps->messages[m];
    sends_[collective.members[at(message.from)]].push_back({number, m});
    receives_[collective.members[at(message.to)]].push_back({number, m});
    adding.sends[at(message.from)].push_back(m);
    adding.receives[at(message.to)].push_back(m);
    for (const std::uint32_t before : steps->after_of(message)) adding.waited_for[before] = 1;
    for (const std::int32_t left : {message.left_before, message.left_of_piece})
      if (left >= 0) adding.followed[at(left)] = 1;
  }
  collectives_.push_back(std::move(adding));
  plan_.stepped.push_back(
      {collective, chunk, std::move(steps), std::vector<OpId>(count), std::vector<OpId>(count)});
}

std::size_t StepLowering::ops() const {
  std::size_t count = 0;
  for (const SteppedCollective& each : plan_.stepped) count += 2 * each.steps->messages.size();
  return count;
}

void StepLowering::lay_out(Rank rank) {
  lay_out_side(rank, OpKind::send);
  lay_out_side(rank, OpKind::recv);
}

void StepLowering::lay_out_side(Rank rank, OpKind kind) {
  const bool sends = kind == OpKind::send;
  const auto found = (sends ? sends_ : receives_).find(rank);
  if (found == (sends ? sends_ : receives_).end()) return;
  std::vector<MessageRef>& mine = found->second;
  const auto lane_key = [&](MessageRef ref) {
    const StepMessage& m = message(ref);
    return std::tuple{collectives_[ref.collective].queue, rank_of(ref, sends ? m.to : m.from),
                      m.stream};
  };
  std::ranges::stable_sort(mine, {}, lane_key);
  for (std::size_t first = 0; first < mine.size();) {
    const auto key = lane_key(mine[first]);
    std::size_t end = first;
    while (end < mine.size() && lane_key(mine[end]) == key) ++end;
    const auto [queue, peer, stream] = key;
    const LaneId lane =
        add_lane(plan_,
                 fmt::format("{}{}{}{}", sends ? "send>" : "recv<", index(peer),
                             queue > 0 ? fmt::format(":{}", queue) : std::string{},
                             stream > 0 ? fmt::format("/{}", stream) : std::string{}),
                 kind, rank, peer, end - first);
    if (sends) route_of_[lane] = network_.route(rank, peer);
    for (std::size_t i = first; i < end; ++i) {
      SteppedCollective& collective = plan_.stepped[mine[i].collective];
      (sends ? collective.sends : collective.receives)[mine[i].message] =
          op_at(plan_, lane, i - first);
    }
    first = end;
  }
}

void StepLowering::gate(std::size_t collective, Rank rank, OpId before) {
  collectives_[collective].gates[place_of(collective, rank)].push_back(before);
}

std::int32_t StepLowering::place_of(std::size_t collective, Rank rank) const {
  const std::vector<Rank>& members = plan_.stepped[collective].collective.members;
  return static_cast<std::int32_t>(std::ranges::lower_bound(members, rank) - members.begin());
}

std::vector<OpId> StepLowering::receives_at(std::size_t collective, Rank rank) const {
  std::vector<OpId> receives;
  for (const std::uint32_t m : collectives_[collective].receives[at(place_of(collective, rank))])
    receives.push_back(plan_.stepped[collective].receives[m]);
  return receives;
}

std::vector<OpId> StepLowering::arrivals_at(std::size_t collective, Rank rank) const {
  std::map<LaneId, OpId> last;
  for (const OpId receive : receives_at(collective, rank)) {
    OpId& of_lane = last.try_emplace(plan_.op(receive).lane, receive).first->second;
    of_lane = std::max(of_lane, receive);
  }
  std::vector<OpId> arrivals;
  for (const auto& [lane, receive] : last) arrivals.push_back(receive);
  return arrivals;
}

std::vector<OpId> StepLowering::last_ops(std::size_t collective, Rank rank) const {
  const SteppedCollective& stepped = plan_.stepped[collective];
  const Adding& adding = collectives_[collective];
  const std::size_t place = at(place_of(collective, rank));
  std::vector<OpId> last;
  for (const std::uint32_t m : adding.receives[place])
    if (adding.waited_for[m] == 0) last.push_back(stepped.receives[m]);
  for (const std::uint32_t m : adding.sends[place])
    if (adding.followed[m] == 0) last.push_back(stepped.sends[m]);
  return last;
}

void StepLowering::gate_by_order() {
  std::map<std::pair<Rank, int>, std::size_t> latest;  // collective so far, by rank and queue
  for (std::size_t c = 0; c < plan_.stepped.size(); ++c) {
    for (const Rank rank : plan_.stepped[c].collective.members) {
      const auto [before, is_first] = latest.try_emplace({rank, collectives_[c].queue}, c);
      if (is_first) continue;
      for (const OpId last : last_ops(before->second, rank)) gate(c, rank, last);
      before->second = c;
    }
  }
}

void StepLowering::fill() {
  gate_by_order();
  for (std::uint32_t c = 0; c < plan_.stepped.size(); ++c) {
    for (std::uint32_t m = 0; m < plan_.stepped[c].sends.size(); ++m) fill_message({c, m});
    if (gates_ == Gates::both_sides) gate_receives(c);
  }
}

void StepLowering::gate_receives(std::uint32_t collective) {
  const SteppedCollective& stepped = plan_.stepped[collective];
  const Adding& adding = collectives_[collective];
  for (const auto& [place, gates] : adding.gates) {
    std::set<LaneId> seen;
    for (const std::uint32_t m : adding.receives[at(place)]) {
      Op& receive = plan_.ops[index(stepped.receives[m])];
      if (!seen.insert(receive.lane).second) continue;
      for (const OpId before : gates) plan_.add_after(receive, before);
    }
  }
}

void StepLowering::fill_message(MessageRef ref) {
  const SteppedCollective& stepped = plan_.stepped[ref.collective];
  const StepMessage& step = message(ref);
  const OpId send = stepped.sends[ref.message];
  const OpId receive = stepped.receives[ref.message];
  const Block producer{BlockKind::F, 0, 1, chunk_of_steps(ref.collective), MicrobatchId{step.step}};
  join_sides(plan_, send, receive, producer, step.size, route_of_.at(plan_.op(send).lane));
  for (const OpId side : {send, receive}) {
    Op& op = plan_.ops[index(side)];
    op.collective = stepped.collective.kind;
    op.piece = static_cast<std::uint8_t>(step.piece % 255);
    op.pieces = static_cast<std::uint8_t>(std::min(stepped.steps->pieces, 255));
  }
  add_waits(ref);
}

void StepLowering::add_waits(MessageRef ref) {
  const SteppedCollective& stepped = plan_.stepped[ref.collective];
  const StepMessage& step = message(ref);
  Op& send = plan_.ops[index(stepped.sends[ref.message])];
  for (const std::uint32_t before : stepped.steps->after_of(step))
    plan_.add_after(send, stepped.receives[before]);
  for (const std::int32_t left : {step.left_before, step.left_of_piece})
    if (left >= 0) plan_.add_after(send, stepped.sends[at(left)]);
  if (step.left_before >= 0) return;
  const auto& gates = collectives_[ref.collective].gates;
  if (const auto gate = gates.find(step.from); gate != gates.end())
    for (const OpId before : gate->second) plan_.add_after(send, before);
}

}  // namespace longhaul::plan
