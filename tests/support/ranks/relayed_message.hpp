#pragma once

#include "harness/profile/plan_builder.hpp"

namespace longhaul::testing {

/// A message of one of two pipelines that share the WAN, from device 0 (one datacenter) to device 1
/// (another), in two pieces: `own` goes straight, the other over the pipeline beside. Ranks 0 and 1
/// are devices 0 and 1 of replica 0, ranks 2 and 3 of replica 1.
struct RelayedMessage {
  /// Adds it to nothing yet: `owner` is the replica whose message it is. More ranks stay idle.
  explicit RelayedMessage(int owner, int iterations_of_message = 1, int ranks = 4)
      : builder{"relayed", ranks} {
    using namespace std::chrono_literals;
    for (int rank = 0; rank < 4; ++rank)
      builder.place(rank, ReplicaId{rank / 2}, DeviceId{rank % 2}, rank % 2);
    builder.share_wan(2);
    for (int i = 0; i < iterations_of_message; ++i) add(owner, 7 + i, 200us);
  }

  void add(int owner, int microbatch, Duration transfer) {
    const int other = 1 - owner;
    const auto rank = [](int replica, int device) { return 2 * replica + device; };
    const auto piece = [&](int k) {
      return harness::PlanBuilder::Piece{owner, k, 2, ChunkId{}, MicrobatchId{microbatch}};
    };
    const auto leg = [&](int from, int to, MessageLeg which, int k) {
      return builder.leg(from, to, which, piece(k), transfer, transfer, Bytes{5000});
    };
    producer = builder.block(rank(owner, 0), transfer, MicrobatchId{microbatch});
    own = leg(rank(owner, 0), rank(owner, 1), MessageLeg::wan, owner);
    scatter = leg(rank(owner, 0), rank(other, 0), MessageLeg::scatter, other);
    wan = leg(rank(other, 0), rank(other, 1), MessageLeg::wan, other);
    gather = leg(rank(other, 1), rank(owner, 1), MessageLeg::gather, other);
    consumer = builder.block(rank(owner, 1), transfer, MicrobatchId{microbatch});
    builder.after(own.send, producer);
    builder.after(scatter.send, producer);
    builder.after(wan.send, scatter.recv);
    builder.after(gather.send, wan.recv);
    builder.after(consumer, own.recv);
    builder.after(consumer, gather.recv);
  }

  harness::PlanBuilder builder;
  harness::PlanBuilder::Handle producer{}, consumer{};  ///< of the message that was added last
  harness::PlanBuilder::Message own, scatter, wan, gather;
};

}  // namespace longhaul::testing
