#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/index.hpp"
#include "base/units.hpp"
#include "base/vocabulary.hpp"
#include "plan/extras/extras.hpp"
#include "plan/operators/operator_lists.hpp"
#include "plan/steps/collective_steps.hpp"
#include "schedule/block.hpp"

namespace longhaul {

/// How communication is arranged: see lower() (plan/lowering/lower.hpp).
#define LONGHAUL_ARRANGEMENTS(X) X(decoupled, "decoupled") X(grouped, "grouped")
LONGHAUL_LISTED_ENUM(Arrangement, LONGHAUL_ARRANGEMENTS);

/// What a compute op of a plan is: a block, one of the operators below it, or one of the kernels
/// (tasks) below these.
#define LONGHAUL_GRANULARITIES(X) X(blocks, "block") X(operators, "operator") X(tasks, "task")
LONGHAUL_LISTED_ENUM(Granularity, LONGHAUL_GRANULARITIES);

/// Index into Plan's table of resource sets.
enum class ResourceSetId : std::uint32_t {};

/// An operation of a rank, done once. Compact: a plan may have 10^7 of them.
///  - compute: `block()`, or one operator of it, takes `duration` on its device. Without a
///    microbatch it is the optimizer's step on the weights of `chunk` (is_optimizer_step()).
///  - send, recv: two sides of one message, joined by `match`. The transfer starts when both sides
///    are ready and the send's resources are free; it holds them for the send's `duration` and
///    arrives the recv's `duration` (the latency) later. `block()` is the producer. A piece's wan
///    send comes after its scatter's recv and its gather send after its wan recv, on the relay's
///    rank; the block that needs the message waits for all pieces.
///    A message may be a step of a collective instead (is_step()).
///  - collective: all members (Plan::collectives[match]) start together when the last is ready and
///    end `duration` later.
struct Op {
  OpKind kind = OpKind::compute;
  BlockKind block_kind = BlockKind::F;
  CollectiveKind collective = CollectiveKind::all_gather;
  std::uint8_t part = 0;
  std::uint8_t parts = 1;
  MessageLeg leg = MessageLeg::whole;  ///< of a send or recv
  std::uint16_t after_count = 0;
  ChunkId chunk{-1};
  MicrobatchId microbatch{-1};
  LaneId lane{};
  Rank peer = kNone<Rank>;
  /// OpId of the other side, or index into Plan::collectives. Of a block its OperatorListId, of an
  /// operator 1 + its index into OperatorLists::steps; 0: nothing is known below it.
  std::uint32_t match = 0;
  OpId after{};  ///< the only one that it depends on, or of several the position: Plan::after_of()
  ResourceSetId resources{};
  std::uint8_t piece = 0;   ///< which one of the message: the LocalDPRank of the ranks that take it
  std::uint8_t pieces = 1;  ///< of the message; `size` is the piece's
  std::uint8_t owner = 0;   ///< LocalDPRank of the replica whose message it is: see owner_of()
  Duration duration{};
  Bytes size;  ///< message or collective: payload; compute: see TimelineRow::size_bytes

  [[nodiscard]] Block block() const { return {block_kind, part, parts, chunk, microbatch}; }
  friend bool operator==(const Op&, const Op&) = default;
};
static_assert(sizeof(Op) <= 56);

/// Is it a side of a message that a collective is made of (Plan::stepped)? Its `microbatch` is the
/// step then, its `piece` that of the collective (modulo 255), and its `chunk` says which
/// collective: stepped_of().
[[nodiscard]] inline bool is_step(const Op& op) {
  return (op.kind == OpKind::send || op.kind == OpKind::recv) && number(op.chunk) < 0;
}
/// Does it keep the stated order of a resource (Resource::order)? Collectives take what is free
/// beside the messages that an order is of.
[[nodiscard]] inline bool keeps_order(const Op& op) {
  return op.kind != OpKind::collective && !is_step(op);
}
/// Is it the step of the optimizer on the weights of a chunk? A W without a microbatch.
[[nodiscard]] inline bool is_optimizer_step(const Op& op) {
  return op.kind == OpKind::compute && number(op.microbatch) < 0;
}
/// The chunk field of the steps of Plan::stepped[collective].
[[nodiscard]] inline ChunkId chunk_of_steps(std::size_t collective) {
  return ChunkId{-1 - static_cast<int>(collective)};
}
/// Index into Plan::stepped of a step.
[[nodiscard]] inline std::size_t stepped_of(const Op& step) { return to_size(-1 - step.chunk); }

/// An order: its ops start in turn, unless it chooses (`serve`). They have consecutive ids, from
/// `first` on. A rank may have several lanes of any kind. Two lanes of kind compute that hold one
/// device take turns on it; one that holds a resource of kind `workers` and capacity k has k of its
/// ops run at a time. A lane that chooses is not an exclusion: what its ops hold is.
struct Lane {
  std::string name;  ///< "compute", "send>3", "recv<3", "collective"
  OpKind kind = OpKind::compute;
  Rank rank{};
  Rank peer = kNone<Rank>;
  OpId first{};
  std::uint32_t count = 0;
  Serve serve = Serve::order;
};

/// An exclusion: at most `capacity` holders at a time. Serves in order of readiness (ties: op id),
/// each from the instant on at which all that it needs is free of those served before it, unless
/// `order` states one. One that chooses (`serve`) picks when it is free, among ops that have all
/// else that they need; what its users hold beside it chooses by the same rule or is their lane's
/// alone.
struct Resource {
  std::string name;  ///< "device 3", "link 3>4", "link west>east", "egress west/0"
  ResourceKind kind = ResourceKind::device;
  std::uint32_t capacity = 1;
  std::vector<OpId> order;  ///< of all its users that keeps_order(), where the plan states one
  /// How many lanes hold it. One: it is private to its lane, whose ops all hold the same set.
  std::uint32_t lanes = 0;
  Serve serve = Serve::order;
};

/// A collective that is messages of the plan.
struct SteppedCollective {
  plan::Collective collective;
  ChunkId chunk{-1};                                   ///< whose weights or gradients; -1: none's
  std::shared_ptr<const plan::CollectiveSteps> steps;  ///< shared with those like it
  std::vector<OpId> sends, receives;                   ///< by message of `steps`
};

struct RankInfo {
  ReplicaId replica{};
  DeviceId device{};
  DatacenterId datacenter{};
  std::int32_t node = 0;    ///< of its datacenter
  std::int32_t tensor = 0;  ///< which of the ranks that share the device's stage
  RankRole role = RankRole::training;
};

/// The ops of each rank with dependencies, bytes and peers. The same for simulator and ranks.
/// For example, the ops of one lane, and those that each waits for:
///     const Plan plan = lower(schedule, scenario);
///     for (std::uint32_t i = 0; i < lane.count; ++i) {
///       const OpId id{static_cast<std::uint32_t>(index(lane.first)) + i};
///       for (const OpId before : plan.after_of(id)) fmt::print("{}\n", describe(plan, before));
///     }
struct Plan {
  std::string schedule;
  Arrangement arrangement = Arrangement::decoupled;
  int stages = 0;
  int replicas = 1;
  int microbatches = 0;
  int cell = 1;  ///< Schedule::cell
  std::vector<std::string> datacenters;
  std::vector<RankInfo> ranks;
  std::vector<Op> ops;      ///< index: OpId; a lane's ops lie together, a rank's lanes lie together
  std::vector<OpId> after;  ///< what ops with several dependencies wait for; on the same rank
  std::vector<Lane> lanes;  ///< a rank's lanes lie together, its compute lane first
  std::vector<Resource> resources;
  std::vector<ResourceId> set_items;     ///< resource sets, one after the other
  std::vector<std::uint32_t> set_begin;  ///< index: ResourceSetId; one more than sets at the end
  std::vector<std::vector<OpId>> collectives;  ///< of collectives that are one op: its members
  std::vector<SteppedCollective> stepped;      ///< those that are messages
  std::shared_ptr<const plan::OperatorLists> operators;  ///< below its blocks; nullptr: not known
  Granularity granularity = Granularity::blocks;
  plan::PlanExtras extras;  ///< what few ops have

  [[nodiscard]] IdRange<ReplicaId> replica_ids() const { return ids<ReplicaId>(replicas); }
  [[nodiscard]] const Op& op(OpId id) const { return ops[index(id)]; }
  [[nodiscard]] const Lane& lane_of(OpId id) const { return lanes[index(ops[index(id)].lane)]; }
  [[nodiscard]] Rank rank_of(OpId id) const { return lane_of(id).rank; }
  /// The ops that it depends on. Most have one at most, which is kept in the op itself: less memory
  /// and one look-up less.
  [[nodiscard]] std::span<const OpId> after_of(OpId id) const {
    const Op& own = op(id);
    return {own.after_count > 1 ? after.data() + index(own.after) : &own.after, own.after_count};
  }
  [[nodiscard]] std::span<const ResourceId> resources_of(OpId id) const {
    const std::size_t set = index(op(id).resources);
    return {set_items.data() + set_begin[set], set_begin[set + 1] - set_begin[set]};
  }
  /// The operator that an op is; nullptr: it is none, but a block or no computation.
  [[nodiscard]] const plan::OperatorStep* operator_of(const Op& of) const {
    if (granularity == Granularity::blocks || of.kind != OpKind::compute || of.match == 0)
      return nullptr;
    return &operators->steps[of.match - 1];
  }
  /// The replica whose block or message it is: a relay's ops serve the others of its cell.
  [[nodiscard]] ReplicaId owner_of(OpId id) const {
    const ReplicaId own = ranks[index(rank_of(id))].replica;
    if (op(id).leg == MessageLeg::whole)
      return op(id).kind == OpKind::recv ? ranks[index(op(id).peer)].replica : own;
    return ReplicaId{number(own) / cell * cell + op(id).owner};
  }
  [[nodiscard]] bool crosses_datacenters(OpId id) const;
  /// How far a message goes. Header: rows of large traces ask for it.
  [[nodiscard]] NetworkLevel level_of(OpId message) const {
    const RankInfo& from = ranks[index(rank_of(message))];
    const RankInfo& to = ranks[index(op(message).peer)];
    if (from.datacenter != to.datacenter) return NetworkLevel::wan;
    return from.node == to.node ? NetworkLevel::node : NetworkLevel::datacenter;
  }
  /// Adds a dependency to an op of this plan; all of one op's must be added one after the other.
  void add_after(Op& op, OpId before) {
    if (op.after_count++ == 0) {
      op.after = before;
      return;
    }
    if (op.after_count == 2) {
      after.push_back(op.after);
      op.after = OpId{static_cast<std::uint32_t>(after.size() - 1)};
    }
    after.push_back(before);
  }
};

/// Consecutive op ids.
struct OpRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};
/// A rank's ops lie together; empty for a rank without ops.
[[nodiscard]] OpRange ops_of_rank(const Plan& plan, Rank rank);

/// For messages: "rank 3 (west, stage 3): F(chunk 3, microbatch 5)" or "... send of F(...) to rank
/// 4".
[[nodiscard]] std::string to_text(const Plan& plan, OpId id);

}  // namespace longhaul
