#pragma once

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
  Collective collective;          ///< over all ranks that hold a copy of the stage
  std::vector<DeviceId> devices;  ///< that hold it, ascending
  std::vector<ChunkId> chunks;    ///< the first of the stage on each of these devices
};

/// The collectives of training, in the order in which every rank runs its own: gathers by the first
/// F of their stage, then reductions by the last W or B of theirs, in the rows of replica 0. A
/// schedule with copies of the model sums the gradients of the copies, with one replica too. Empty
/// where no stage is held twice or has no weights, and for GradientSync::none.
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
  void lay_out(Rank rank, DeviceId device);
  /// A block of a row waits for an op: (row position, op).
  using Wait = std::pair<std::int32_t, OpId>;
  void append_waits(ReplicaId replica, DeviceId device, std::vector<Wait>& waits) const;
  /// The compute lanes (index: rank) must be laid out.
  void fill(const std::vector<LaneId>& compute_lane_of_rank);

private:
  [[nodiscard]] bool in_steps() const { return !whole_ && !estimates_; }
  /// The last W or B of the stage in the row of the rank; nullopt where a copy of the model has no
  /// microbatch.
  [[nodiscard]] std::optional<OpId> last_gradient(LaneId compute, StageId stage) const;
  [[nodiscard]] ResourceSetId held_by(const StageCollective& collective, Rank member);
  void fill_one(std::uint32_t number, Rank member, LaneId compute);
  /// Position of the device's first F of the stage.
  [[nodiscard]] std::optional<std::int32_t> first_forward(ReplicaId replica, DeviceId device,
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
