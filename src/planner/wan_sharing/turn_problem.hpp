#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::planner {

/// Index into TurnProblem::blocks, messages, queues. -1: none.
using CellBlockId = std::int32_t;
using CellMessageId = std::int32_t;
using CellQueueId = std::int32_t;

/// The elements of the orders of a DP-cell, as flat numbers (times in ns, sizes in bytes): the
/// blocks of its pipelines and their messages. Cells of one size take one order, so that the first
/// one stands for all; a smaller last one, whose messages take longer, is there beside it. Orders
/// change, these do not. It is read from the plan with all relays, so that times are the
/// simulator's where nodes take part in one pair of devices alone; what several pairs or several
/// legs contend for is left out, and times there are too short. The relays' way inside the
/// datacenters counts as if no other message took it.
struct TurnProblem {
  struct OfBlock {
    Block block;
    int row = 0;  ///< pipeline * devices + device
    std::int64_t time = 0;
    std::int64_t taken = 0;    ///< activation memory, at its start
    std::int64_t freed = 0;    ///< at its end
    std::int64_t release = 0;  ///< when the weights of its chunk are gathered
    CellMessageId input = -1;  ///< the message that it waits for
    CellMessageId output = -1;
  };
  struct OfMessage {
    CellBlockId producer = -1, consumer = -1;
    std::int64_t scatter = 0;   ///< from the producer's end to the WAN
    std::int64_t transfer = 0;  ///< on the queue's link: of the piece that takes longest
    std::int64_t latency = 0;   ///< from there to the consumer, the gather included
    CellQueueId queue = -1;
  };
  /// Messages from a device to another. Only turns have an order of their own; the others go in the
  /// order of their producer's row.
  struct Queue {
    bool turns = false;
    int cell = 0;
    DeviceId from{}, to{};
    std::vector<CellMessageId> messages;  ///< of turns: in the order that the schedule states
  };
  /// Reductions of all rows of a device, one after the other.
  struct Reduction {
    ChunkId chunk{};
    std::int64_t time = 0;
  };

  /// `schedule` must be valid, with a row for each (replica, device) and turns.
  TurnProblem(const Schedule& schedule, const Scenario& scenario);
  /// The same, of its lowered plan.
  TurnProblem(const Schedule& schedule, const Scenario& scenario, const Plan& plan);

  /// -1: another cell's stands for it.
  [[nodiscard]] int pipeline_of(ReplicaId replica) const;
  /// Must `a` stay before `b` in their row?
  [[nodiscard]] bool must_precede(CellBlockId a, CellBlockId b) const;
  /// Must `a` stay before `b` in their turns?
  [[nodiscard]] bool must_precede_in_turn(CellMessageId a, CellMessageId b) const;

  int devices = 0;
  int cell = 1;                     ///< of the schedule: pipelines of a cell
  std::vector<ReplicaId> replicas;  ///< index: pipeline
  std::vector<OfBlock> blocks;
  std::vector<OfMessage> messages;
  std::vector<Queue> queues;
  std::vector<std::vector<CellBlockId>> rows;      ///< as in the schedule
  std::vector<std::vector<Reduction>> reductions;  ///< index: device
  std::vector<std::int64_t> memory_limit;          ///< index: device
};

/// An order of the rows and of the turns.
struct TurnOrders {
  std::vector<std::vector<CellBlockId>> rows;
  std::vector<std::vector<CellMessageId>> turns;  ///< index: queue; empty where it has no turns

  explicit TurnOrders(const TurnProblem& problem);
};

/// `like`, which the problem was made of, with these orders in every cell.
[[nodiscard]] Schedule to_schedule(const TurnProblem& problem, const TurnOrders& orders,
                                   const Schedule& like);

}  // namespace longhaul::planner
