#pragma once

#include <array>
#include <vector>

#include "plan/plan_draft.hpp"

namespace longhaul::testing {

/// Two replicas apart of three parts with F 10 ms and B 20 ms each. After its B each part is
/// exchanged both ways, `transfer` over the link of that direction and 5 ms of latency; F of a part
/// waits for the part's exchange `1 + stale` iterations before. Part 0 is first by priority.
struct ExchangingReplicas {
  /// Each part's messages on a lane of their own and the link choosing, or on one lane that
  /// chooses.
  enum class Choice { link, lane };

  ExchangingReplicas(Duration transfer, int stale, Serve serve, Choice choice = Choice::link) {
    plan::PlanDraft draft{"exchange"};
    std::array<LaneId, 2> compute{};
    for (const int r : {0, 1}) {
      const Rank rank = draft.add_rank(r == 0 ? "east" : "west");
      compute[at(r)] =
          draft.add_lane(rank, "compute", OpKind::compute,
                         {draft.add_resource(fmt::format("device {}", r), ResourceKind::device)});
    }
    std::array<std::array<plan::PlanDraft::Handle, 3>, 2> f{}, b{};
    for (const int r : {0, 1}) {
      for (const int part : {0, 1, 2}) f[at(r)][at(part)] = draft.add_block(compute[at(r)], 10ms);
      for (const int part : {2, 1, 0}) b[at(r)][at(part)] = draft.add_block(compute[at(r)], 20ms);
    }
    for (const int r : {0, 1}) {
      const bool by_link = choice == Choice::link;
      const ResourceId link =
          draft.add_resource(fmt::format("link {}>{}", r, 1 - r), ResourceKind::shared_link, 1,
                             by_link ? serve : Serve::order);
      LaneId sends{}, receives{};
      for (const int part : {0, 1, 2}) {
        if (part == 0 || by_link) {
          sends = draft.add_lane(Rank{r}, fmt::format("send>{}/{}", 1 - r, part), OpKind::send,
                                 {link}, by_link ? Serve::order : serve);
          receives = draft.add_lane(Rank{1 - r}, fmt::format("recv<{}/{}", r, part), OpKind::recv,
                                    {}, by_link ? Serve::order : Serve::arrival);
        }
        const auto message = draft.add_message(sends, receives, transfer, 5ms);
        draft.after(message.send, b[at(r)][at(part)]);
        draft.priority(message.send, part);
        draft.after(f[at(1 - r)][at(part)], message.recv, 1 + stale);
      }
    }
    plan = draft.make();
    first = draft.id(f[0][0]);
  }

  Plan plan;
  OpId first{};  ///< the first op of each iteration: F of part 0
};

}  // namespace longhaul::testing
