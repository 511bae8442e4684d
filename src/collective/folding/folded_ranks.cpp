#include <algorithm>
#include <numeric>
#include <utility>

#include "collective/folding/folded_iteration.hpp"
#include "plan/lowering/lanes.hpp"

namespace longhaul::collective {
namespace {

bool is_ring(const Communication& each) {
  const bool whole = each.kind == CollectiveKind::all_gather ||
                     each.kind == CollectiveKind::reduce_scatter ||
                     each.kind == CollectiveKind::all_reduce;
  return whole && each.algorithm == plan::CollectiveAlgorithm::ring && each.pieces == 1;
}

Bytes rounded_up(Bytes size, std::int64_t parts) {
  return Bytes{(size.count() + parts - 1) / parts};
}

}  // namespace

FoldedRanks::FoldedRanks(const IterationPlan& plan, const RankSymmetry& symmetry, KnownSteps& steps,
                         LoweredIteration& made)
    : iteration_{plan},
      base_{*plan.base},
      scenario_{*plan.scenario},
      symmetry_{symmetry},
      steps_{steps},
      made_{made},
      out_{made.plan},
      routes_{scenario_},
      ranks_(plan.stages.size()),
      place_in_stage_(base_.ranks.size()),
      first_part_(plan.stages.size()) {
  out_.schedule = base_.schedule;
  out_.arrangement = base_.arrangement;
  out_.stages = base_.stages;
  out_.replicas = base_.replicas;
  out_.ranks = base_.ranks;
  out_.datacenters = base_.datacenters;
  out_.granularity = base_.granularity;
  out_.operators = base_.operators;
  out_.set_begin.assign(1, 0);
  for (const Rank rank : ids<Rank>(static_cast<int>(base_.ranks.size()))) {
    made_.representative.push_back(symmetry_.representative(rank));
    if (!has(rank)) continue;
    auto& of_stage = ranks_[index(base_.ranks[index(rank)].device)];
    place_in_stage_[index(rank)] = static_cast<std::uint32_t>(of_stage.size());
    of_stage.push_back(rank);
  }
  for (const DeviceId stage : plan.stages.ids())
    first_part_[index(stage)].resize(plan.stages[stage].communications.size());
  for (std::size_t lane = 0; lane < base_.lanes.size(); ++lane) {
    const Lane& own = base_.lanes[lane];
    failed_ = !base_lanes_.try_emplace({own.rank, own.kind, own.peer}, lane).second || failed_;
  }
}

OpId FoldedRanks::standing_for(OpId side) const {
  const Lane& lane = base_.lane_of(side);
  const int which = symmetry_.to_representative(lane.rank);
  if (which == 0) return side;
  const auto like = base_lanes_.find(
      {symmetry_.image(which, lane.rank), lane.kind, symmetry_.image(which, lane.peer)});
  LONGHAUL_ASSERT(like != base_lanes_.end(), "{} has no like of lane {}", base_.schedule,
                  lane.name);
  return plan::op_at(base_, LaneId{static_cast<std::uint32_t>(like->second)},
                     index(side) - index(lane.first));
}

ResourceSetId FoldedRanks::resources(std::size_t base_lane) {
  const Lane& lane = base_.lanes[base_lane];
  if (lane.kind == OpKind::send) return route_set(lane.rank, lane.peer, nullptr);
  if (lane.kind == OpKind::recv) return ResourceSetId{};  // a message holds what its send does
  out_.resources.push_back({{}, ResourceKind::device, 1, {}, 1});
  out_.set_items.push_back(ResourceId{static_cast<std::uint32_t>(out_.resources.size() - 1)});
  brings_.push_back(0);
  out_.set_begin.push_back(static_cast<std::uint32_t>(out_.set_items.size()));
  return ResourceSetId{static_cast<std::uint32_t>(out_.set_begin.size() - 2)};
}

const FoldedRanks::Groups& FoldedRanks::groups(DeviceId stage, Members members) {
  const auto [known, is_new] = groups_.try_emplace({stage, members});
  Groups& made = known->second;
  if (!is_new) return made;
  made.members = groups_of(scenario_, stage, members);
  made.at.resize(base_.ranks.size());
  for (std::size_t g = 0; g < made.members.size(); ++g)
    for (std::size_t i = 0; i < made.members[g].size(); ++i)
      made.at[index(made.members[g][i])] = {static_cast<int>(g), static_cast<int>(i)};
  const int size = made.members.empty() ? 0 : static_cast<int>(made.members.front().size());
  made.turn = size;
  for (int which = 1; which < symmetry_.count(); ++which)
    for (const std::vector<Rank>& group : made.members)
      made.turn = std::gcd(made.turn, made.at[index(symmetry_.image(which, group.front()))].second);
  if (made.turn == size) made.turn = 0;
  for (const Rank rank : ranks_[index(stage)]) made.places.push_back(made.at[index(rank)].second);
  return made;
}

std::optional<Refusal> FoldedRanks::add(DeviceId stage, CommunicationId id) {
  const Communication& each = iteration_.stages[stage].communications[id];
  const Groups& of = groups(stage, each.members);
  const std::int64_t shards = each.members == Members::copies ? scenario_.parallel.shard : 1;
  const bool in_ring = is_ring(each);
  if (!in_ring && each.size.count() % shards != 0) failed_ = true;
  const std::size_t first = parts_.size();
  first_part_[index(stage)][index(id)] = static_cast<std::uint32_t>(first);
  const auto members = static_cast<std::int64_t>(of.members.front().size());
  const KnownSteps::OfCollective* steps = nullptr;  // of this size
  Bytes size{};
  for (const Rank rank : ranks_[index(stage)]) {
    const auto [group, place] = of.at[index(rank)];
    const Bytes own = size_in_group(each, scenario_, to_size(group));
    if (steps == nullptr || (own != size && !in_ring)) {
      const plan::Collective collective{
          each.kind, of.members[at(group)], own, each.algorithm, each.mesh, each.pieces};
      if (auto why = plan::why_no_steps(collective)) return why;
      steps = &steps_.of(collective, in_ring, of.places, of.turn);
      failed_ = failed_ || !steps->turns;
      size = own;
    }
    Part part;
    part.steps = &steps->by_place.at(place);
    part.rank = rank;
    part.kind = each.kind;
    part.queue = each.queue;
    part.in_ring = in_ring;
    part.least = std::max(each.size / shards, Bytes{1}) / members;
    part.most = rounded_up(std::max(rounded_up(each.size, shards), Bytes{1}), members);
    messages_ += part.steps->sends.size();
    if (messages_ > kMostMessagesOfIteration) return too_many_messages();
    parts_.push_back(std::move(part));
    made_.communication_of.push_back({stage, id, each.traffic});
    out_.stepped.emplace_back().collective.kind = each.kind;  // for messages
  }
  join_lines(first, of);
  if (failed_)
    return refused("no rank can stand for another (messages differ). Simulate all of them.");
  return std::nullopt;
}

/// Of the parts of one communication: what a line out of a rank is to the rank at its other end.
void FoldedRanks::join_lines(std::size_t first_part, const Groups& groups) {
  for (std::size_t p = first_part; p < parts_.size(); ++p) {
    parts_[p].out = static_cast<std::uint32_t>(ranges_.size());
    parts_[p].in = static_cast<std::uint32_t>(ranges_.size() + parts_[p].steps->out.size());
    ranges_.resize(ranges_.size() + parts_[p].steps->out.size() + parts_[p].steps->in.size());
  }
  for (std::size_t p = first_part; p < parts_.size(); ++p) {
    const Part& part = parts_[p];
    const auto& members = groups.members[at(groups.at[index(part.rank)].first)];
    for (std::uint32_t l = 0; l < part.steps->out.size(); ++l) {
      const MemberSteps::Line& line = part.steps->out[l];
      const Rank to = members[at(line.other)];
      const int which = symmetry_.to_representative(to);
      const int sender = groups.at[index(symmetry_.image(which, part.rank))].second;
      const Part& target = parts_[first_part + place_in_stage_[index(symmetry_.image(which, to))]];
      const auto& lines = target.steps->in;
      const auto met = std::ranges::find_if(lines, [&](const MemberSteps::Line& other) {
        return other.other == sender && other.stream == line.stream;
      });
      if (met == lines.end() || met->count != line.count) {
        failed_ = true;
        return;
      }
      const std::uint32_t lane = lane_pair(part.rank, to, part.queue, line.stream);
      ranges_[part.out + l] =
          ranges_[target.in + to_size(met - lines.begin())] = {lane, lanes_[lane].count};
      lanes_[lane].count += line.count;
    }
  }
}

std::uint32_t FoldedRanks::lane_pair(Rank from, Rank to, int queue, int stream) {
  const auto [known, is_new] =
      lane_of_.try_emplace({from, queue, to, stream}, static_cast<std::uint32_t>(lanes_.size()));
  if (is_new) lanes_.push_back({.from = from, .to = to, .queue = queue, .stream = stream});
  return known->second;
}

void FoldedRanks::lay_out(Rank rank) {
  std::vector<std::pair<LaneKey, std::uint32_t>> in;
  for (auto own = lane_of_.lower_bound(LaneKey{rank, -1, Rank{-1}, -1});
       own != lane_of_.end() && std::get<0>(own->first) == rank; ++own) {
    LanePair& pair = lanes_[own->second];
    pair.send = plan::add_lane(out_, {}, OpKind::send, rank, pair.to, pair.count);
    pair.first_send = static_cast<std::uint32_t>(index(out_.lanes.back().first));
    pair.set = route_set(rank, pair.to, &pair);
    pair_of_lane_.resize(out_.lanes.size(), -1);
    pair_of_lane_.back() = static_cast<std::int32_t>(own->second);
  }
  for (std::uint32_t l = 0; l < lanes_.size(); ++l) {
    const LanePair& pair = lanes_[l];
    const int which = symmetry_.to_representative(pair.to);
    if (symmetry_.image(which, pair.to) != rank) continue;
    const Rank peer = symmetry_.image(which, pair.from);
    in.emplace_back(LaneKey{rank, pair.queue, peer, pair.stream}, l);
  }
  std::ranges::sort(in);
  for (const auto& [key, l] : in) {
    LanePair& pair = lanes_[l];
    pair.receive = plan::add_lane(out_, {}, OpKind::recv, rank, std::get<2>(key), pair.count);
    pair.first_receive = static_cast<std::uint32_t>(index(out_.lanes.back().first));
  }
}

/// The resource that stands for it, and the image that brings it there.
std::pair<ResourceId, int> FoldedRanks::held(const schedule::RouteSegment& segment, Rank from,
                                             Rank to) {
  schedule::LinkResource resource = segment.resource;
  int which = 0;
  const auto by_node = [&](Rank rank) {
    which = symmetry_.to_first_node(rank);
    resource.second = routes_.node_of(symmetry_.image(which, rank));
  };
  switch (resource.kind) {
    case ResourceKind::link: break;  // of a rank that stands for others
    case ResourceKind::port_out: break;
    case ResourceKind::port_in:
      which = symmetry_.to_representative(to);
      resource.first = number(symmetry_.image(which, to));
      break;
    case ResourceKind::egress:
    case ResourceKind::internal_out: by_node(from); break;
    case ResourceKind::ingress:
    case ResourceKind::internal_in: by_node(to); break;
    default: failed_ = true;  // there once for all
  }
  const auto [known, is_new] = resource_of_.try_emplace(resource, ResourceId{});
  if (is_new) {
    known->second = ResourceId{static_cast<std::uint32_t>(out_.resources.size())};
    out_.resources.push_back({{}, resource.kind, 1, {}, 0});
  }
  return {known->second, which};
}

ResourceSetId FoldedRanks::route_set(Rank from, Rank to, LanePair* pair) {
  const schedule::NetworkRoute route = routes_.between(from, to);
  failed_ = failed_ || !route.linked;
  for (const schedule::RouteSegment& segment : route.segments) {
    const auto [resource, which] = held(segment, from, to);
    ++out_.resources[index(resource)].lanes;
    out_.set_items.push_back(resource);
    brings_.push_back(which);
  }
  out_.set_begin.push_back(static_cast<std::uint32_t>(out_.set_items.size()));
  if (pair != nullptr) {
    pair->rate = route.rate;
    pair->latency = route.latency;
  }
  return ResourceSetId{static_cast<std::uint32_t>(out_.set_begin.size() - 2)};
}

std::size_t FoldedRanks::part_of(Rank rank, CommunicationId id) const {
  const std::size_t stage = index(base_.ranks[index(rank)].device);
  return first_part_[stage][index(id)] + place_in_stage_[index(rank)];
}

OpId FoldedRanks::op_of(const Part& part, MemberSteps::Ref ref) const {
  const Range range = ranges_[(ref.in ? part.in : part.out) + ref.line];
  const LanePair& lane = lanes_[range.lane];
  return OpId{(ref.in ? lane.first_receive : lane.first_send) + range.offset + ref.position};
}

std::vector<OpId> FoldedRanks::arrivals(Rank rank, CommunicationId id) const {
  const Part& part = parts_[part_of(rank, id)];
  std::vector<OpId> arrivals;
  for (std::uint32_t l = 0; l < part.steps->in.size(); ++l)
    arrivals.push_back(op_of(part, {l, part.steps->in[l].count - 1, true}));
  return arrivals;
}

std::vector<OpId> FoldedRanks::last_of(const Part& part) const {
  std::vector<OpId> last;
  for (const MemberSteps::Ref ref : part.steps->last) last.push_back(op_of(part, ref));
  return last;
}

std::vector<OpId> FoldedRanks::last_ops(Rank rank, CommunicationId id) const {
  return last_of(parts_[part_of(rank, id)]);
}

void FoldedRanks::gate(Rank rank, CommunicationId id, OpId before) {
  parts_[part_of(rank, id)].gates.push_back(before);
}

void FoldedRanks::gate_by_order() {
  std::map<std::pair<Rank, int>, const Part*> latest;
  for (Part& part : parts_) {
    const Part*& before = latest[{part.rank, part.queue}];
    if (before != nullptr) {
      const std::vector<OpId> last = last_of(*before);
      part.gates.insert(part.gates.end(), last.begin(), last.end());
    }
    before = &part;
  }
}

void FoldedRanks::fill() {
  if (failed_) return;
  gate_by_order();
  for (std::size_t p = 0; p < parts_.size(); ++p) fill_part(p);
  look_for_empty_messages();
}

void FoldedRanks::fill_part(std::size_t number) {
  const Part& part = parts_[number];
  const CommunicationRef of = made_.communication_of[number];
  lines_.clear();
  first_in_.clear();
  for (std::uint32_t l = 0; l < part.steps->out.size(); ++l)
    lines_.push_back(line_out(part, l, of));
  for (std::uint32_t l = 0; l < part.steps->in.size(); ++l)
    first_in_.push_back(static_cast<std::uint32_t>(index(op_of(part, {l, 0, true}))));
  for (const MemberSteps::Send& each : part.steps->sends) {
    LineOut& line = lines_[each.line];
    const Bytes size = part.in_ring ? part.most : each.size;
    const OpId send{line.first_send + each.position};
    const OpId receive{line.first_receive + each.position};
    if (line.known != size) make_messages(number, line, each, size);
    Op& op = out_.ops[index(send)];
    Op& other = out_.ops[index(receive)];
    op = line.send;
    const OpId after = other.after;  // its rank's part may have been filled before
    const std::uint16_t after_count = other.after_count;
    other = line.receive;
    other.after = after;
    other.after_count = after_count;
    op.match = static_cast<std::uint32_t>(index(receive));
    other.match = static_cast<std::uint32_t>(index(send));
    op.microbatch = other.microbatch = MicrobatchId{each.step};
    fill_waits(part, each, op);
  }
  // A rank that has not begun has no room for what comes in.
  for (const std::uint32_t first : first_in_)
    for (const OpId before : part.gates) out_.add_after(out_.ops[first], before);
}

/// Of a line all messages of one size are the same but for what they wait for.
void FoldedRanks::make_messages(std::size_t number, LineOut& line, const MemberSteps::Send& first,
                                Bytes size) {
  const OpId send{line.first_send + first.position};
  const OpId receive{line.first_receive + first.position};
  const Block producer{BlockKind::F, 0, 1, chunk_of_steps(number), MicrobatchId{first.step}};
  plan::join_sides(out_, send, receive, producer, size, line.route);
  line.known = size;
  line.send = out_.ops[index(send)];
  line.receive = out_.ops[index(receive)];
  line.receive.chunk = line.chunk;
  line.send.collective = line.receive.collective = parts_[number].kind;
  look_whether_empty(line.send);
}

/// Messages of a ring have one size, or two that take as long.
FoldedRanks::LineOut FoldedRanks::line_out(const Part& part, std::uint32_t line,
                                           const CommunicationRef& of) {
  const Range range = ranges_[part.out + line];
  const LanePair& lane = lanes_[range.lane];
  const Rank target = out_.lanes[index(lane.receive)].rank;
  if (part.in_ring && part.least / lane.rate != part.most / lane.rate) failed_ = true;
  return {lane.first_send + range.offset,
          lane.first_receive + range.offset,
          chunk_of_steps(part_of(target, of.communication)),
          {lane.set, lane.rate, lane.latency},
          std::nullopt,
          {},
          {}};
}

void FoldedRanks::fill_waits(const Part& part, const MemberSteps::Send& send, Op& op) {
  for (const MemberSteps::Ref ref : part.steps->waits_of(send))
    out_.add_after(
        op, OpId{(ref.in ? first_in_[ref.line] : lines_[ref.line].first_send) + ref.position});
  if (!send.is_first) return;
  for (const OpId before : part.gates) out_.add_after(op, before);
}

/// A message that takes no time and passes others in the instant in which these ask, too.
void FoldedRanks::look_whether_empty(const Op& send) {
  failed_ = failed_ || (send.duration == Duration{} && holds_shared(send.resources));
}

/// Of those between stages.
void FoldedRanks::look_for_empty_messages() {
  for (std::size_t l = 0; l < out_.lanes.size(); ++l) {
    const Lane& lane = out_.lanes[l];
    const bool is_of_steps = l < pair_of_lane_.size() && pair_of_lane_[l] >= 0;
    if (lane.kind != OpKind::send || is_of_steps) continue;
    for (const Op& op : std::span{out_.ops}.subspan(index(lane.first), lane.count))
      look_whether_empty(op);
  }
}

}  // namespace longhaul::collective
