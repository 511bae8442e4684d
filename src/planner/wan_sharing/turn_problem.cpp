#include "planner/wan_sharing/turn_problem.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.hpp"
#include "base/index.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/lowering/messages.hpp"
#include "planner/collectives/time_alone.hpp"
#include "schedule/memory.hpp"

namespace longhaul::planner {
namespace {

/// (replica, is it a gradient, chunk, microbatch): what a message is.
using MessageKey = std::tuple<ReplicaId, bool, int, int>;

MessageKey key_of(ReplicaId replica, const Block& block) {
  return {replica, is_backward(block.kind), block.chunk, block.microbatch};
}

/// Adds up what the legs of every message take.
class Legs {
public:
  struct OfMessage {
    std::int64_t transfer = 0, latency = 0;
    std::int64_t scatter = 0, gather = 0;
    bool turns = false;
  };

  Legs(const Plan& plan, const TurnProblem& problem) : plan_{plan} {
    for (std::size_t i = 0; i < plan.ops.size(); ++i) {
      const OpId id{static_cast<std::uint32_t>(i)};
      if (plan.op(id).kind != OpKind::send) continue;
      if (problem.pipeline_of(plan.owner_of(id)) >= 0) add(id);
    }
  }
  [[nodiscard]] const OfMessage& of(const MessageKey& key) const { return of_message_.at(key); }

private:
  void add(OpId id) {
    const Op& op = plan_.op(id);
    const std::int64_t latency = plan_.ops[op.match].duration.count();
    OfMessage& legs = of_message_[key_of(plan_.owner_of(id), op.block())];
    switch (op.leg) {
      case MessageLeg::whole:
        legs.transfer = op.duration.count();
        legs.latency = latency;
        break;
      case MessageLeg::wan:
        legs.turns = true;
        legs.transfer = std::max(legs.transfer, op.duration.count());
        legs.latency = std::max(legs.latency, latency);
        break;
      // Out of one interface or into one: the pieces go one after the other.
      case MessageLeg::scatter: legs.scatter += op.duration.count() + latency; break;
      case MessageLeg::gather: legs.gather += op.duration.count() + latency; break;
    }
  }
  const Plan& plan_;
  std::map<MessageKey, OfMessage> of_message_;
};

class Reader {
public:
  Reader(const Schedule& schedule, const Scenario& scenario, const Plan& plan, TurnProblem& problem)
      : schedule_{schedule},
        problem_{problem},
        plan_{plan},
        legs_{plan_, problem},
        memory_{schedule, scenario} {}

  void read() {
    read_compute();
    for (std::size_t pipeline = 0; pipeline < problem_.replicas.size(); ++pipeline)
      read_messages(static_cast<int>(pipeline));
    read_collectives();
    read_turns();
  }

private:
  void read_compute() {
    for (const Lane& lane : plan_.lanes) {
      const RankInfo& rank = plan_.ranks[index(lane.rank)];
      const int pipeline = problem_.pipeline_of(rank.replica);
      if (lane.kind != OpKind::compute || pipeline < 0) continue;
      const int row = pipeline * problem_.devices + number(rank.device);
      for (std::uint32_t i = 0; i < lane.count; ++i) {
        const Op& op = plan_.ops[index(lane.first) + i];
        const schedule::MemoryEffect effect = memory_.effect(op.block());
        TurnProblem::OfBlock block;
        block.block = op.block();
        block.row = row;
        block.time = op.duration.count();
        block.taken = effect.at_start.count();
        block.freed = -effect.at_end.count();
        problem_.rows[at(row)].push_back(static_cast<CellBlockId>(problem_.blocks.size()));
        problem_.blocks.push_back(block);
      }
    }
  }

  void read_messages(int pipeline) {
    const ReplicaId replica = problem_.replicas[at(pipeline)];
    for (const plan::Message& message : plan::find_messages(schedule_, replica).all) {
      const auto id = static_cast<CellMessageId>(problem_.messages.size());
      const Legs::OfMessage& legs = legs_.of(key_of(replica, message.producer));
      const auto row = [&](DeviceId device) -> const std::vector<CellBlockId>& {
        return problem_.rows[at(pipeline * problem_.devices + number(device))];
      };
      TurnProblem::OfMessage made;
      made.producer = row(message.from)[at(message.sent_after)];
      made.consumer = row(message.to)[at(message.needed_before)];
      made.scatter = legs.scatter;
      made.transfer = legs.transfer;
      made.latency = legs.latency + legs.gather;
      made.queue = queue_of(legs.turns, replica, message.from, message.to);
      problem_.blocks[at(made.producer)].output = id;
      problem_.blocks[at(made.consumer)].input = id;
      message_of_[key_of(replica, message.producer)] = id;
      problem_.messages.push_back(made);
    }
  }

  CellQueueId queue_of(bool turns, ReplicaId replica, DeviceId from, DeviceId to) {
    const int cell = number(replica) / problem_.cell;
    const auto [known, is_new] = queues_.try_emplace(
        {turns ? -1 - cell : number(replica), from, to}, problem_.queues.size());
    if (is_new) problem_.queues.push_back({turns, cell, from, to, {}});
    return static_cast<CellQueueId>(known->second);
  }

  void read_turns() {
    for (const LinkOrder& order : schedule_.link_orders) {
      for (const OrderedMessage& message : order.messages) {
        if (problem_.pipeline_of(message.replica) < 0) break;
        const CellMessageId id = message_of_.at(key_of(message.replica, message.producer));
        problem_.queues[at(problem_.messages[at(id)].queue)].messages.push_back(id);
      }
    }
  }

  void read_collectives() {
    problem_.reductions.resize(at(problem_.devices));
    std::map<std::pair<int, int>, std::int64_t> gathered;  // by device, chunk
    std::vector<std::int64_t> busy(at(problem_.devices));
    for (const Op& op : plan_.ops) {
      const RankInfo& rank = plan_.ranks[index(plan_.lanes[index(op.lane)].rank)];
      if (op.kind != OpKind::collective || rank.replica > ReplicaId{0}) continue;
      const std::int64_t time = op.duration.count();
      if (is_before_forward(op.collective)) {
        gathered[{number(rank.device), op.chunk}] = busy[index(rank.device)] += time;
      } else {
        problem_.reductions[index(rank.device)].push_back({op.chunk, time});
      }
    }
    for (TurnProblem::OfBlock& block : problem_.blocks) {
      const auto found = gathered.find({block.row % problem_.devices, block.block.chunk});
      if (found != gathered.end() && block.block.kind == BlockKind::F)
        block.release = found->second;
    }
  }

  const Schedule& schedule_;
  TurnProblem& problem_;
  const Plan& plan_;
  Legs legs_;
  schedule::ActivationModel memory_;
  std::map<std::tuple<int, DeviceId, DeviceId>, std::size_t> queues_;
  std::map<MessageKey, CellMessageId> message_of_;
};

}  // namespace

TurnProblem::TurnProblem(const Schedule& schedule, const Scenario& scenario)
    : TurnProblem{schedule, scenario,
                  plan::lower(schedule, scenario, Arrangement::decoupled, time_alone(scenario))} {}

TurnProblem::TurnProblem(const Schedule& schedule, const Scenario& scenario, const Plan& plan)
    : devices{schedule.devices}, cell{schedule.cell} {
  LONGHAUL_ASSERT(!schedule.replicas_share_rows() || schedule.replicas == 1,
                  "{} has one row for all replicas", schedule.name);
  const int last = schedule.replicas / cell * cell;  // of a smaller cell
  for (const ReplicaId replica : schedule.replica_ids()) {
    if (number(replica) < cell || number(replica) >= last) replicas.push_back(replica);
  }
  rows.resize(replicas.size() * at(devices));
  Reader{schedule, scenario, plan, *this}.read();
  const std::int64_t allowed = schedule::allowed_activation(schedule, scenario).count();
  for (const schedule::DeviceNeed& memory : schedule::device_memory(schedule, scenario)) {
    memory_limit.push_back(allowed);
    if (!memory.capacity) continue;
    const Bytes others = memory.total() - memory.activations;
    memory_limit.back() = std::min(allowed, (*memory.capacity - others).count());
  }
}

int TurnProblem::pipeline_of(ReplicaId replica) const {
  const auto found = std::ranges::lower_bound(replicas, replica);
  if (found == replicas.end() || *found != replica) return -1;
  return static_cast<int>(found - replicas.begin());
}

bool TurnProblem::must_precede(CellBlockId a, CellBlockId b) const {
  const Block& first = blocks[at(a)].block;
  const Block& second = blocks[at(b)].block;
  if (first.chunk == second.chunk) {
    const auto is_equal = [&](auto kind) { return kind(first.kind) == kind(second.kind); };
    if (first.microbatch == second.microbatch) return true;
    return is_equal([](BlockKind kind) { return kind == BlockKind::D ? BlockKind::B : kind; });
  }
  return first.microbatch == second.microbatch && first.kind != BlockKind::W &&
         second.kind != BlockKind::W;
}

bool TurnProblem::must_precede_in_turn(CellMessageId a, CellMessageId b) const {
  const CellBlockId first = messages[at(a)].producer;
  const CellBlockId second = messages[at(b)].producer;
  return blocks[at(first)].row == blocks[at(second)].row && must_precede(first, second);
}

}  // namespace longhaul::planner
