#include "planner/orders/order_problem.hpp"

#include <algorithm>
#include <map>

#include "base/index.hpp"
#include "plan/lowering/lower.hpp"
#include "planner/collectives/time_alone.hpp"
#include "schedule/block_costs.hpp"
#include "schedule/memory.hpp"

namespace longhaul::planner {
namespace {

bool recomputes(const Schedule& schedule) {
  return std::ranges::any_of(schedule.rows, [](const auto& row) {
    return std::ranges::any_of(row, [](const Block& b) { return b.kind == BlockKind::R; });
  });
}

/// Is each link held by one lane alone, or by collectives of one group alone, which come one after
/// the other anyway?
bool has_private_links(const Plan& plan) {
  struct Holders {
    std::uint32_t lanes = 0;                   ///< of blocks and messages
    const std::vector<OpId>* group = nullptr;  ///< members of a collective
  };
  std::vector<Holders> of_resource(plan.resources.size());
  const auto ranks_of = [&](const std::vector<OpId>& group) {
    std::vector<Rank> ranks;
    for (const OpId id : group) ranks.push_back(plan.rank_of(id));
    return ranks;
  };
  for (const std::vector<OpId>& group : plan.collectives) {
    for (const ResourceId resource : plan.resources_of(group.front())) {
      Holders& holders = of_resource[index(resource)];
      if (holders.group != nullptr && ranks_of(*holders.group) != ranks_of(group)) return false;
      holders.group = &group;
    }
  }
  for (const Lane& lane : plan.lanes) {
    if (lane.count == 0 || lane.kind == OpKind::collective || lane.kind == OpKind::recv) continue;
    for (const ResourceId resource : plan.resources_of(lane.first)) {
      Holders& holders = of_resource[index(resource)];
      if (holders.group != nullptr || ++holders.lanes > 1) return false;
    }
  }
  return std::ranges::all_of(plan.resources, [](const Resource& r) { return r.order.empty(); });
}

}  // namespace

OrderProblem::OrderProblem(const Schedule& like, const Scenario& scenario, Arrangement arrangement)
    : devices_{like.devices},
      microbatches_{like.microbatches},
      recomputes_{planner::recomputes(like)},
      chunks_(like.chunks),
      chunks_on_(like.devices) {
  read_costs(like, scenario);
  fill_infos();
  read_limits(like, scenario);
  const Parallel& parallel = scenario.parallel;
  const bool one_group = parallel.shard == 1 || parallel.shard == parallel.replicas;
  exact_ = arrangement == Arrangement::decoupled && one_group;
  read_plan(like, plan::lower(like, scenario, Arrangement::decoupled, time_alone(scenario)));
}

void OrderProblem::read_costs(const Schedule& like, const Scenario& scenario) {
  using enum BlockKind;
  const schedule::BlockCosts costs{like, scenario};
  const schedule::ActivationModel memory{like, scenario};
  for (const ChunkId c : chunks_.ids()) {
    OfChunk& chunk = chunks_[c];
    const auto block = [c](BlockKind kind) { return Block{kind, 0, 1, c, MicrobatchId{}}; };
    chunk.device = like.device_of_chunk[c];
    chunks_on_[chunk.device].push_back(c);
    constexpr BlockKind kKinds[] = {F, D, W, B};
    for (std::size_t k = 0; k < 4; ++k) {
      chunk.time[k] = costs.duration(block(kKinds[k])).count();
      chunk.freed[k] = -memory.effect(block(kKinds[k])).at_end.count();
    }
    chunk.taken = memory.effect(block(F)).at_start.count();
    chunk.is_first = like.is_first(c);
    chunk.is_last = like.is_last(c);
    if (!chunk.is_first) chunk.input_here = like.device_of_chunk[previous(c)] == chunk.device;
    if (!recomputes_) continue;
    chunk.again = memory.effect(block(R)).at_start.count();
    const std::int64_t again = costs.duration(block(R)).count();
    chunk.time[1] += again;
    chunk.time[3] += again;
  }
}

void OrderProblem::fill_infos() {
  infos_.resize(at(blocks() + 1));
  for (const ChunkId c : chunks_.ids()) {
    for (MicrobatchId m{}; m < microbatches_; ++m) {
      const auto set = [&](Kind kind) -> Info& {
        Info& info = infos_[at(id(kind, c, m))];
        info.kind = kind;
        info.chunk = c;
        info.microbatch = m;
        return info;
      };
      Info& forward = set(Kind::F);
      if (chunk(c).input_here) forward.needs[0] = id(Kind::F, previous(c), m);
      Info& gradient = set(Kind::G);
      gradient.needs[0] = id(Kind::F, c, m);
      if (!chunk(c).is_last && chunk(next(c)).input_here)
        gradient.needs[1] = id(Kind::G, next(c), m);
      set(Kind::W).needs[0] = id(Kind::G, c, m);
    }
  }
}

void OrderProblem::read_limits(const Schedule& like, const Scenario& scenario) {
  const std::int64_t allowed = schedule::allowed_activation(like, scenario).count();
  for (const schedule::DeviceNeed& memory : schedule::device_memory(like, scenario)) {
    limit_.push_back(allowed);
    if (!memory.capacity) continue;
    const Bytes others = memory.total() - memory.activations;
    limit_.back() = std::min(allowed, (*memory.capacity - others).count());
  }
}

void OrderProblem::read_plan(const Schedule& like, const Plan& plan) {
  for (const ReplicaId replica : plan.replica_ids()) {
    Links links = links_of(like, plan, replica);
    if (std::ranges::find(links_, links) == links_.end()) links_.push_back(std::move(links));
  }
  // Copies gather and reduce together: other devices decide when, unless it takes no time.
  if (like.copies == 1) read_collectives(plan);
  const bool own_collectives =
      like.copies == 1 || std::ranges::all_of(plan.ops, [](const Op& op) {
        return op.kind != OpKind::collective || op.duration == Duration::zero();
      });
  const bool private_links = has_private_links(plan);
  // Blocks that take no time may wait for each other without anyone noticing.
  const bool takes_time = std::ranges::all_of(chunks_, [](const OfChunk& chunk) {
    return std::ranges::all_of(chunk.time, [](std::int64_t time) { return time > 0; });
  });
  exact_ = exact_ && private_links && takes_time && own_collectives && plan.extras.overlap.none();
}

void OrderProblem::read_collectives(const Plan& plan) {
  IndexedVector<DeviceId, std::int64_t> gathered(devices_);
  for (const Op& op : plan.ops) {
    if (op.kind != OpKind::collective) continue;
    const RankInfo& rank = plan.ranks[index(plan.lanes[index(op.lane)].rank)];
    if (rank.replica != ReplicaId{0} || rank.tensor > 0) continue;
    if (is_before_forward(op.collective)) {
      chunks_[op.chunk].gathered = gathered[rank.device] += op.duration.count();
    } else {
      chunks_[op.chunk].reduction += op.duration.count();  // of sharded weights there are two
      reduces_ = true;
    }
  }
}

OrderProblem::Links OrderProblem::links_of(const Schedule& like, const Plan& plan,
                                           ReplicaId replica) const {
  Links links;
  for (auto& of_kind : links.messages) of_kind.resize(chunks());
  for (auto& queue : links.queue) queue.assign(chunks(), -1);
  for (const Op& op : plan.ops) {
    if (op.kind != OpKind::send) continue;
    const Lane& lane = plan.lanes[index(op.lane)];
    const RankInfo& rank = plan.ranks[index(lane.rank)];
    if (rank.replica != replica || rank.tensor > 0) continue;
    const std::size_t kind = op.block_kind == BlockKind::F ? 0 : 1;
    links.messages[kind][op.chunk] = {op.duration.count(), plan.ops[op.match].duration.count()};
    const int to = number(plan.ranks[index(lane.peer)].device);
    links.queue[kind][op.chunk] = number(like.device_of_chunk[op.chunk]) * devices_ + to;
  }
  drop_idle_queues(links);
  return links;
}

/// Where no transfer takes longer than the shortest block that sends on the link, the link is free
/// whenever a message is ready: its queue needs no book-keeping.
void OrderProblem::drop_idle_queues(Links& links) const {
  std::map<std::int32_t, std::pair<std::int64_t, std::int64_t>> of_queue;  // transfer, block
  const auto each = [&](const auto& visit) {
    for (std::size_t kind = 0; kind < 2; ++kind) {
      for (const ChunkId c : chunks_.ids()) {
        if (links.queue[kind][c] >= 0) visit(kind, c, links.queue[kind][c]);
      }
    }
  };
  each([&](std::size_t kind, ChunkId c, std::int32_t queue) {
    const auto& time = chunks_[c].time;
    const std::int64_t block = kind == 0 ? time[0] : std::min(time[1], time[3]);
    const auto [found, is_new] = of_queue.try_emplace(queue, 0, block);
    found->second.first = std::max(found->second.first, links.messages[kind][c].transfer);
    found->second.second = std::min(found->second.second, block);
  });
  each([&](std::size_t kind, ChunkId c, std::int32_t queue) {
    const auto [transfer, block] = of_queue.at(queue);
    if (transfer <= block) links.queue[kind][c] = -1;
  });
}

}  // namespace longhaul::planner
