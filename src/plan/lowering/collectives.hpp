#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "plan/lowering/step_lowering.hpp"
#include "plan/network/network.hpp"
#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::plan {

/// What a collective takes that is played alone.
using TimeAlone = std::function<Duration(const Collective&)>;

/// Data-parallel communication of one stage of the model.
struct StageCollective {
  StageId stage{};
  Collective collective;          ///< over ranks that hold a copy of the stage, ascending
  std::vector<DeviceId> devices;  ///< that hold it, ascending
  std::vector<ChunkId> chunks;    ///< the first of the stage on each of these devices
  [[nodiscard]] bool is_of(Rank rank) const {
    return std::ranges::binary_search(collective.members, rank);
  }
};

/// The collectives of training, in the order in which every rank runs its own: gathers by the first
/// F of their stage, then reductions by the last W or B of theirs, in the rows of replica 0. Each
/// of the tensor ranks of a stage has its own, with the same of other replicas. A schedule with
/// copies of the model sums the gradients of the copies, with one replica too. Sharded weights are
/// gathered, and gradients scattered, among the Parallel::shard replicas that hold a copy together,
/// and then each shard is summed over the copies. Empty where no stage is held twice or has no
/// weights, and for GradientSync::none and compressed.
[[nodiscard]] std::vector<StageCollective> find_collectives(const Schedule& schedule,
                                                            const Scenario& scenario);

/// Is data-parallel communication a named estimate that holds nothing (GradientSync::ring_rate,
/// two_datacenter) instead of messages?
[[nodiscard]] bool is_estimate(GradientSync sync);
/// The duration of a collective by such an estimate over a ring of these hops.
[[nodiscard]] Duration estimated_time(Bytes size, std::size_t members,
                                      const schedule::RingHop& ring, GradientSync sync);

/// Puts the collectives of training into a plan: as messages, or, where a `time_alone` is given, as
/// one op a member that holds what its messages would hold for that time; estimates as one op a
/// member that holds nothing. For each rank lay_out(), then waits_of() for its row, then one
/// fill().
class CollectiveLowering {
public:
  /// All outlive this.
  CollectiveLowering(const Schedule& schedule, const Scenario& scenario,
                     const TimeAlone& time_alone, Plan& plan, Network& network);
  /// Ops of all ranks, and an upper bound on the dependencies that they and blocks get.
  [[nodiscard]] std::size_t ops() const;
  [[nodiscard]] std::size_t waits() const;
  /// Adds the lanes of a rank.
  void lay_out(Rank rank);
  /// A block of a row waits for an op: (row position, op).
  using Wait = std::pair<std::int32_t, OpId>;
  void append_waits(Rank rank, std::vector<Wait>& waits) const;
  /// The compute lanes (index: rank) must be laid out.
  void fill(const std::vector<LaneId>& compute_lane_of_rank);

private:
  [[nodiscard]] bool in_steps() const { return !whole_ && !estimates_; }
  /// The last W or B of the stage in the row of the rank; nullopt where a copy of the model has no
  /// microbatch.
  [[nodiscard]] std::optional<OpId> last_gradient(LaneId compute, StageId stage) const;
  /// By its messages; the same for all members.
  [[nodiscard]] std::vector<ResourceId> held_by(const StageCollective& collective);
  void fill_one(std::uint32_t number, Rank member, LaneId compute,
                const std::vector<ResourceId>& held);
  /// Position of the rank's first F of the stage.
  [[nodiscard]] std::optional<std::int32_t> first_forward(const RankInfo& rank,
                                                          StageId stage) const;

  const Schedule& schedule_;
  const Scenario& scenario_;
  const TimeAlone& time_alone_;
  bool whole_, estimates_;
  Plan& plan_;
  Network& network_;
  std::vector<StageCollective> all_;
  StepLowering steps_;
  std::vector<std::vector<OpId>> op_of_;  ///< one op a member: by collective, member
  std::vector<Duration> duration_;        ///< by collective, of one op
};

}  // namespace longhaul::plan
