#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/plan.hpp"

namespace longhaul::harness {

/// Makes a plan by hand, op by op: for benchmarks that ask about a link rather than a schedule, and
/// for tests. Ops of a lane run in the order in which they were added.
class PlanBuilder {
public:
  /// Names an op until build() gives it its id.
  enum class Handle : std::size_t {};
  struct Message {
    Handle send{}, recv{};
  };

  /// Rank r is device r of one replica, in datacenter "dc<r>".
  PlanBuilder(std::string name, int ranks, Arrangement arrangement = Arrangement::decoupled);

  Handle block(int rank, Duration duration, MicrobatchId microbatch = MicrobatchId{});
  /// Holds the resources named, or the pair's own link; arrives `latency` after its transfer.
  Message message(int from, int to, Duration transfer, Duration latency, Bytes size,
                  std::vector<std::string> resources = {});
  /// The rank is that device of that replica, in the datacenter of that number.
  void place(int rank, ReplicaId replica, DeviceId device, int datacenter);
  /// Makes the replicas share the WAN, in consecutive cells of `cell` replicas.
  void share_wan(int cell) { plan_.cell = cell; }
  /// The message of which another is a leg: piece `piece` of the message that `owner` (its place in
  /// the cell) sends of (chunk, microbatch).
  struct Piece {
    int owner = 0, piece = 0, pieces = 1;
    ChunkId chunk{};
    MicrobatchId microbatch{};
  };
  /// A message of that leg; on lanes of its own ("wan>3").
  Message leg(int from, int to, MessageLeg leg, const Piece& piece, Duration transfer,
              Duration latency, Bytes size, std::vector<std::string> resources = {});
  /// One op for each member, in their order.
  std::vector<Handle> collective(CollectiveKind kind, std::vector<int> members, Duration duration,
                                 Bytes size);
  /// `op` waits for `before`; both are of one rank.
  void after(Handle op, Handle before);

  /// Call last.
  [[nodiscard]] Plan build();
  /// Id of an op. Precondition: build() was called.
  [[nodiscard]] OpId id(Handle op) const { return ids_[static_cast<std::size_t>(op)]; }

private:
  struct Draft {
    Op op;
    int rank = 0;
    OpKind lane = OpKind::compute;
    Handle other{};  ///< of a message
    std::vector<Handle> after;
  };
  Handle add(Draft draft);
  ResourceSetId set_of(ResourceKind kind, const std::vector<std::string>& names);
  void lay_out_lanes();
  void connect();

  Plan plan_;
  int messages_ = 0;
  std::vector<Draft> drafts_;
  std::vector<std::vector<Handle>> groups_;
  std::vector<OpId> ids_;
};

}  // namespace longhaul::harness
