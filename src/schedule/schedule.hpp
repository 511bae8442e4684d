#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/index.hpp"
#include "schedule/block.hpp"

namespace longhaul {

/// A message as a schedule names it: the output that `producer` of `replica` sends on.
struct OrderedMessage {
  ReplicaId replica{};
  Block producer;
  friend bool operator==(const OrderedMessage&, const OrderedMessage&) = default;
};

enum class LinkOrderKind : std::uint8_t {
  resource,  ///< of a resource of the plan: "link west>east", "egress west/0"
  turns,     ///< of the messages of a DP-cell: turns_name()
};

/// The order in which messages take a shared resource, where a generator decided one.
struct LinkOrder {
  std::string resource;
  std::vector<OrderedMessage> messages;
  LinkOrderKind kind = LinkOrderKind::resource;
  friend bool operator==(const LinkOrder&, const LinkOrder&) = default;
};

/// When an R may run. Frameworks recompute inside the backward pass, so when the gradient is there
/// (CrossPipe's case 2); Varuna and Atlas recompute ahead, while they wait for it.
enum class RecomputeTiming : std::uint8_t { on_arrival, ahead };

/// An order, with no times and no ranks: per (replica, device), an ordered list of blocks.
///
///     const Schedule schedule = generate("1f1b", scenario);
///     for (const Block& block : schedule.row(ReplicaId{0}, DeviceId{2}))
///       fmt::print("{} ", to_text(block));  // F(chunk 2, microbatch 0) first
struct Schedule {
  std::string name;
  int devices = 0;       ///< P
  int chunks = 0;        ///< of all copies: v * P for schedules of v chunks a device
  int microbatches = 0;  ///< M; of several counts the largest
  int replicas = 1;
  std::vector<int> replica_microbatches{};  ///< M of each replica; empty: all have the same
  /// Copies of the model inside one pipeline; 2 for bidirectional schedules. Chunks are numbered
  /// copy by copy, microbatch m runs in copy m mod copies, and no dependency leaves a copy.
  int copies = 1;
  IndexedVector<ChunkId, DeviceId> device_of_chunk;
  /// Either `devices` rows, which every replica follows, or `replicas * devices`, replica-major.
  std::vector<std::vector<Block>> rows;
  std::vector<LinkOrder> link_orders;
  /// Pipelines of a DP-cell, that take turns on the WAN: replicas [k * cell, (k + 1) * cell) are
  /// cell k, the last one may be smaller (Atlas section 4.4). A message between datacenters leaves
  /// in as many pieces as its cell has pipelines, over all their nodes at once; `link_orders`
  /// states the turns of every cell and pair of devices. 1: each pipeline sends for itself.
  int cell = 1;
  RecomputeTiming recompute_timing = RecomputeTiming::on_arrival;

  [[nodiscard]] IdRange<ReplicaId> replica_ids() const { return ids<ReplicaId>(replicas); }
  [[nodiscard]] IdRange<DeviceId> device_ids() const { return ids<DeviceId>(devices); }
  [[nodiscard]] IdRange<ChunkId> chunk_ids() const { return ids<ChunkId>(chunks); }
  [[nodiscard]] IdRange<MicrobatchId> microbatch_ids() const {
    return ids<MicrobatchId>(microbatches);
  }
  /// The DP-cell of a pipeline.
  [[nodiscard]] int cell_of(ReplicaId replica) const { return number(replica) / cell; }
  [[nodiscard]] int chunks_of_copy() const { return chunks / copies; }
  [[nodiscard]] int copy_of(ChunkId chunk) const { return chunk / chunks_of_copy(); }
  /// The part of the model that the chunk is: the same number in every copy.
  [[nodiscard]] StageId stage_of(ChunkId chunk) const { return StageId{chunk % chunks_of_copy()}; }
  /// Has no chunk before it: its F needs no input, its gradient goes nowhere.
  [[nodiscard]] bool is_first(ChunkId chunk) const { return stage_of(chunk) == 0; }
  /// Has no chunk after it: its D or B needs its own F alone.
  [[nodiscard]] bool is_last(ChunkId chunk) const {
    return stage_of(chunk) + 1 == chunks_of_copy();
  }
  /// Does the microbatch run through the chunk, that is, through its copy?
  [[nodiscard]] bool runs(ChunkId chunk, MicrobatchId microbatch) const {
    return microbatch % copies == copy_of(chunk);
  }
  /// How many microbatches run through the chunk: ceil((M - copy) / copies).
  [[nodiscard]] int microbatches_of(ChunkId chunk) const {
    return (microbatches - copy_of(chunk) + copies - 1) / copies;
  }
  /// The rows of one replica, as those of the only one.
  [[nodiscard]] Schedule of_replica(ReplicaId replica) const;
  [[nodiscard]] bool replicas_share_rows() const { return std::ssize(rows) == devices; }
  [[nodiscard]] std::span<const Block> row(ReplicaId replica, DeviceId device) const {
    return rows[at(replicas_share_rows() ? number(device)
                                         : number(replica) * devices + number(device))];
  }
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// Name of the LinkOrder with the turns that the messages of one DP-cell take from a device to
/// another in a different datacenter: "turns 0/1>2" (cell 0, device 1 to device 2).
[[nodiscard]] std::string turns_name(int cell, DeviceId from, DeviceId to);
/// The LinkOrder of that name, without messages yet.
[[nodiscard]] LinkOrder turns_order(int cell, DeviceId from, DeviceId to);
/// The LinkOrder of a name in a text, which says its kind.
[[nodiscard]] LinkOrder order_named(std::string name);

/// Replicas of a DP-cell: `count` of them from `first` on, numbered there by LocalDPRank.
struct CellReplicas {
  ReplicaId first{};
  int count = 1;

  [[nodiscard]] ReplicaId operator[](int local_dp_rank) const {
    return ReplicaId{number(first) + local_dp_rank};
  }
  [[nodiscard]] int local_dp_rank(ReplicaId replica) const {
    return number(replica) - number(first);
  }
  [[nodiscard]] IdRange<ReplicaId> ids() const { return {first, (*this)[count]}; }
  [[nodiscard]] bool contains(ReplicaId replica) const {
    return first <= replica && replica < (*this)[count];
  }
};
[[nodiscard]] CellReplicas cell_replicas(const Schedule& schedule, int cell);

/// The chunk that takes over what `block` produced, once its last part has run; kNone: no one.
[[nodiscard]] ChunkId taker_of(const Schedule& schedule, const Block& block);

/// Chunks of `device`, ascending.
[[nodiscard]] std::vector<ChunkId> chunks_on(const Schedule& schedule, DeviceId device);

/// How a chunk shares its device's costs with the other chunks of its copy there: share(cost, of,
/// place). Copies share nothing: a chunk of a bidirectional schedule costs a whole stage.
struct ChunkShare {
  int of = 1;
  int place = 0;
};
/// The shares of all chunks.
[[nodiscard]] IndexedVector<ChunkId, ChunkShare> chunk_shares(const Schedule& schedule);

}  // namespace longhaul
