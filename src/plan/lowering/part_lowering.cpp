#include "plan/lowering/part_lowering.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/index.hpp"
#include "plan/lowering/lanes.hpp"
#include "plan/parts/set_size.hpp"
#include "scenario/training/read_train.hpp"

namespace longhaul::plan {

PartLowering::PartLowering(const Schedule& schedule, const Scenario& scenario,
                           const PartExchanges& exchanges, Plan& plan, Network& network)
    : schedule_{schedule},
      scenario_{scenario},
      exchanges_{exchanges},
      rounds_{exchanges.rounds()},
      plan_{plan},
      network_{network},
      routes_{scenario} {
  if (scenario.parallel.gradient_sync != GradientSync::compressed) return;
  for (const DeviceId device : schedule.device_ids())
    for (int tensor = 0; tensor < scenario.parallel.tensor; ++tensor) add_group(device, tensor);
}

void PartLowering::add_group(DeviceId device, int tensor) {
  Group group;
  std::vector<DatacenterId> sites;
  for (const ReplicaId replica : schedule_.replica_ids()) {
    const Rank rank = scenario_.rank(replica, device, tensor);
    place_of_[rank] = {groups_.size(), group.members.size()};
    group.members.push_back(rank);
    group.rows.push_back(trained_parts(schedule_, replica, device, exchanges_));
    sites.push_back(scenario_.datacenter_of(rank));
  }
  group.leaders = leaders_of_nodes(scenario_, group.members);
  for (const TrainedPart& each : group.rows.front()) {
    Part part;
    part.number = each.number;
    part.steps = steps_of(each, device, group.leaders, sites);
    part.sends.assign(part.steps.messages.size(), kNone<OpId>);
    part.receives = part.sends;
    MemberOps member;
    member.choices = member.answers = std::vector<OpId>(to_size(rounds_), kNone<OpId>);
    part.members.assign(group.members.size(), member);
    group.parts.push_back(std::move(part));
  }
  groups_.push_back(std::move(group));
}

std::int64_t PartLowering::numbers_of(const TrainedPart& part, DeviceId device) const {
  const ChunkShare chunk = chunk_shares(schedule_)[part.chunk];
  const Bytes weights = share(scenario_.costs.weights[index(device)], chunk.of, chunk.place);
  const std::int64_t all = scenario::gradient_numbers(scenario_, weights);
  return all / part.parts + (part.part < all % part.parts ? 1 : 0);
}

SetSizes PartLowering::sizes_of(std::int64_t numbers, int sets, int sites) const {
  const Training& train = scenario_.train;
  if (train.message) return {*train.message, *train.message};
  const auto size = [&](int of) {
    return scenario::nominal_size(scenario_, set_size(train.compress, numbers, of));
  };
  return {size(sets), size(sites)};
}

SetExchangeSteps PartLowering::steps_of(const TrainedPart& part, DeviceId device,
                                        const std::vector<std::int32_t>& leaders,
                                        const std::vector<DatacenterId>& sites) const {
  constexpr std::int64_t kBytesOfNumber = 4;
  const std::int64_t numbers = numbers_of(part, device);
  const SetSizes of_method =
      sizes_of(numbers, count_leaders(leaders, sites.size()), count_sites(sites));
  std::vector<SetSizes> sizes(to_size(rounds_), of_method);
  if (!exchanges_.sizes.empty() && !scenario_.train.message)
    for (std::size_t round = 0; round < sizes.size(); ++round)
      sizes[round].of_member = sizes[round].of_site = exchanges_.sizes[to_size(part.number)][round];
  const Bytes dense = scenario::nominal_size(scenario_, Bytes{kBytesOfNumber * numbers});
  return exchanges_of_nodes(scenario_.train.compress.exchange, sites, leaders, part.number, sizes,
                            dense);
}

Duration PartLowering::cost(std::vector<Duration> PartCosts::*task, int number) const {
  const std::vector<Duration>& times = scenario_.train.costs.*task;
  if (times.empty()) return {};
  return times.size() == 1 ? times.front() : times[to_size(number)];
}

/// Without staleness the only copy of a part's weights is out of use when its update comes.
bool PartLowering::keeps_one_buffer() const {
  return scenario_.train.buffers == 1 && scenario_.train.staleness > 0;
}

std::size_t PartLowering::ops() const {
  std::size_t count = 0;
  for (const Group& group : groups_)
    for (const Part& part : group.parts)
      count += 2 * part.sends.size() + part.steps.choices.size() +
               (5 + to_size(rounds_)) * group.members.size();
  return count;
}

ResourceSetId PartLowering::hold(ResourceId resource) {
  ++plan_.resources[index(resource)].lanes;
  const auto [known, is_new] = set_of_.try_emplace(resource, ResourceSetId{});
  if (!is_new) return known->second;
  plan_.set_items.push_back(resource);
  plan_.set_begin.push_back(static_cast<std::uint32_t>(plan_.set_items.size()));
  return known->second = ResourceSetId{static_cast<std::uint32_t>(plan_.set_begin.size() - 2)};
}

ResourceId PartLowering::add_resource(std::string name, ResourceKind kind, int capacity) {
  plan_.resources.push_back(
      {std::move(name), kind, static_cast<std::uint32_t>(capacity), {}, 0, scenario_.train.serve});
  return ResourceId{static_cast<std::uint32_t>(plan_.resources.size() - 1)};
}

void PartLowering::lay_out(Rank rank) {
  const auto found = place_of_.find(rank);
  if (found == place_of_.end()) return;
  const Place place = found->second;
  const bool leads = groups_[place.group].leads(place.member);
  const auto named = [&](const char* name) { return fmt::format("{} {}", name, index(rank)); };
  if (has(&PartCosts::copy_out))
    add_tasks(place, "out", add_resource(named("out"), ResourceKind::copy_engine),
              {{TaskKind::copy_out, &MemberOps::copy_out}});
  if (leads) add_host_tasks(place);
  if (has(&PartCosts::copy_in) || keeps_one_buffer() || !leads)
    add_tasks(place, "in", add_resource(named("in"), ResourceKind::copy_engine),
              {{TaskKind::copy_in, &MemberOps::copy_in}});
  add_messages(place, OpKind::send);
  add_messages(place, OpKind::recv);
}

void PartLowering::add_host_tasks(Place place) {
  const Group& group = groups_[place.group];
  const auto add = [&](std::vector<TaskOf>& tasks, std::vector<Duration> PartCosts::*task,
                       TaskOf of) {
    if (has(task)) tasks.push_back(of);
  };
  std::vector<TaskOf> before, after;
  if (scenario_.train.gather == GradientGather::none)
    add(before, &PartCosts::gather, {TaskKind::host_gather, &MemberOps::gather});
  else if (std::ranges::count(group.leaders, static_cast<std::int32_t>(place.member)) > 1)
    before.push_back({TaskKind::host_gather, &MemberOps::gather});
  add(before, &PartCosts::compress, {TaskKind::compress, &MemberOps::compress});
  add(after, &PartCosts::merge, {TaskKind::merge, &MemberOps::merge});
  after.push_back({TaskKind::optimize, &MemberOps::optimize});
  const ResourceId workers =
      add_resource(fmt::format("workers {}", index(group.members[place.member])),
                   ResourceKind::workers, scenario_.train.host_threads);
  if (!before.empty()) add_tasks(place, "host", workers, before);
  add_choices(place, workers);
  add_answers(place, workers);
  add_tasks(place, "host:update", workers, after);
}

void PartLowering::set_task(OpId id, TaskKind kind, Duration time, const TrainedPart& part,
                            ResourceSetId held, int round) {
  Op& op = plan_.ops[index(id)];
  // The round in the place of a microbatch: what tells tasks of a part on a lane apart.
  set_block(op, {BlockKind::B, part.part, part.parts, part.chunk, MicrobatchId{round}});
  op.resources = held;
  op.duration = time;
  plan_.extras.tasks.push_back({id, kind});
  plan_.extras.priorities.push_back({id, part.number + 1});
}

void PartLowering::add_tasks(Place place, const std::string& name, ResourceId held,
                             const std::vector<TaskOf>& tasks) {
  constexpr std::pair<TaskKind, std::vector<Duration> PartCosts::*> kTimes[] = {
      {TaskKind::copy_out, &PartCosts::copy_out}, {TaskKind::host_gather, &PartCosts::gather},
      {TaskKind::compress, &PartCosts::compress}, {TaskKind::merge, &PartCosts::merge},
      {TaskKind::optimize, &PartCosts::optimize}, {TaskKind::copy_in, &PartCosts::copy_in}};
  Group& group = groups_[place.group];
  const LaneId lane = add_lane(plan_, name, OpKind::compute, group.members[place.member],
                               kNone<Rank>, tasks.size() * group.parts.size());
  plan_.lanes[index(lane)].serve = scenario_.train.serve;
  const ResourceSetId set = hold(held);
  std::size_t position = 0;
  for (std::size_t p = 0; p < group.parts.size(); ++p) {
    for (const TaskOf& task : tasks) {
      const OpId id = op_at(plan_, lane, position++);
      group.parts[p].members[place.member].*task.op = id;
      const auto time = std::ranges::find(kTimes, task.kind, [](auto& each) { return each.first; });
      set_task(id, task.kind, cost(time->second, group.parts[p].number),
               group.rows[place.member][p], set);
    }
  }
}

void PartLowering::add_choices(Place place, ResourceId held) {
  const Group& group = groups_[place.group];
  std::vector<std::pair<std::size_t, int>> mine;
  for (std::size_t p = 0; p < group.parts.size(); ++p)
    for (const SiteChoice& choice : group.parts[p].steps.choices)
      if (choice.at == static_cast<std::int32_t>(place.member)) mine.emplace_back(p, choice.round);
  add_sums(place, "host:site", held, &MemberOps::choices, mine);
}

void PartLowering::add_answers(Place place, ResourceId held) {
  std::vector<std::pair<std::size_t, int>> all;
  for (std::size_t p = 0; p < groups_[place.group].parts.size(); ++p)
    for (int round = 1; round < rounds_; ++round) all.emplace_back(p, round);
  add_sums(place, "host:answer", held, &MemberOps::answers, all);
}

/// As long as a merge and a compression.
void PartLowering::add_sums(Place place, const char* name, ResourceId held,
                            std::vector<OpId> MemberOps::*ops,
                            const std::vector<std::pair<std::size_t, int>>& sums) {
  if (sums.empty()) return;
  Group& group = groups_[place.group];
  const LaneId lane =
      add_lane(plan_, name, OpKind::compute, group.members[place.member], kNone<Rank>, sums.size());
  plan_.lanes[index(lane)].serve = scenario_.train.serve;
  const ResourceSetId set = hold(held);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const auto [p, round] = sums[i];
    const int number = group.parts[p].number;
    const OpId id = op_at(plan_, lane, i);
    (group.parts[p].members[place.member].*ops)[to_size(round)] = id;
    set_task(id, TaskKind::compress,
             cost(&PartCosts::merge, number) + cost(&PartCosts::compress, number),
             group.rows[place.member][p], set, round);
  }
}

void PartLowering::add_messages(Place place, OpKind kind) {
  const Group& group = groups_[place.group];
  const bool sends = kind == OpKind::send;
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<PartMessage>> by_hop;  // and peer
  for (std::size_t p = 0; p < group.parts.size(); ++p) {
    const std::vector<SetMessage>& messages = group.parts[p].steps.messages;
    for (std::size_t m = 0; m < messages.size(); ++m)
      if ((sends ? messages[m].from : messages[m].to) == static_cast<std::int32_t>(place.member))
        by_hop[{messages[m].hop, sends ? messages[m].to : messages[m].from}].push_back({p, m});
  }
  for (const auto& [key, messages] : by_hop) {
    const Rank own = group.members[place.member];
    const Rank peer = group.members[to_size(key.second)];
    const bool holds =
        !(sends ? routes_.between(own, peer) : routes_.between(peer, own)).segments.empty();
    if (holds) {
      add_message_lane(place, kind, key.first, peer, messages, true);
    } else {
      for (const PartMessage& each : messages)  // nothing to choose for
        add_message_lane(place, kind, key.first, peer, {each}, false);
    }
  }
}

void PartLowering::add_message_lane(Place place, OpKind kind, int hop, Rank peer,
                                    const std::vector<PartMessage>& messages, bool holds) {
  Group& group = groups_[place.group];
  const bool sends = kind == OpKind::send;
  std::string name = fmt::format("{}{}/{}", sends ? "send>" : "recv<", index(peer), hop);
  if (!holds) name += fmt::format(".{}", group.parts[messages.front().part].number);
  const LaneId lane =
      add_lane(plan_, std::move(name), kind, group.members[place.member], peer, messages.size());
  if (holds) plan_.lanes[index(lane)].serve = sends ? scenario_.train.serve : Serve::arrival;
  if (sends) route_of_[lane] = network_.route(group.members[place.member], peer);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    Part& part = group.parts[messages[i].part];
    (sends ? part.sends : part.receives)[messages[i].message] = op_at(plan_, lane, i);
  }
}

}  // namespace longhaul::plan
