#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/plan.hpp"

namespace longhaul::bench {

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

  Handle block(int rank, Duration duration, int microbatch = 0);
  /// Holds the resources named, or the pair's own link; arrives `latency` behind its transfer.
  Message message(int from, int to, Duration transfer, Duration latency, Bytes size,
                  std::vector<std::string> resources = {});
  /// One op for each member, in their order.
  std::vector<Handle> collective(CollectiveKind kind, std::vector<int> members, Duration duration,
                                 Bytes size);
  /// `op` waits for `before`; both are of one rank.
  void after(Handle op, Handle before);

  /// Call last.
  [[nodiscard]] Plan build();
  /// Of an op, behind build().
  [[nodiscard]] OpId id(Handle op) const { return ids_[static_cast<std::size_t>(op)]; }

private:
  struct Draft {
    Op op;
    int rank = 0;
    LaneKind lane = LaneKind::compute;
    Handle other{};  ///< of a message
    std::vector<Handle> after;
  };
  Handle add(Draft draft);
  ResourceSetId set_of(const std::vector<std::string>& names);
  void lay_out_lanes();
  void connect();

  Plan plan_;
  int messages_ = 0;
  std::vector<Draft> drafts_;
  std::vector<std::vector<Handle>> groups_;
  std::vector<OpId> ids_;
};

}  // namespace longhaul::bench
