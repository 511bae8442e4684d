#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "base/result.hpp"
#include "plan/network/network.hpp"
#include "plan/parts/set_exchange.hpp"
#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "schedule/network_routes.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::plan {

/// Weights of one rank that are exchanged and updated together: a chunk, or where all its blocks
/// are cut into the same parts, part `part` of `parts` of it.
struct TrainedPart {
  ChunkId chunk{};
  std::uint8_t part = 0, parts = 1;
  int number = 0;  ///< of all parts of the model, in its order
  /// Positions in the row of its device: of the block that uses the weights first, and of the one
  /// that makes the last of their gradients.
  std::int32_t first_forward = -1, last_gradient = -1;
  /// Iterations between an update and the F that waits for it; 0 in the middle of one.
  int iterations_back = 1;
};

/// The parts of a device in the row of a replica, in the order of the model. With fragments the
/// blocks are those after which a part is exchanged, and before which its update is awaited.
[[nodiscard]] std::vector<TrainedPart> trained_parts(const Schedule& schedule, ReplicaId replica,
                                                     DeviceId device,
                                                     const PartExchanges& exchanges = {});

/// Train.gather: of each of these ranks, which hold copies of the same weights, the first that lies
/// in its node, by their places. Empty: none is gathered, or no two of them share a node.
[[nodiscard]] std::vector<std::int32_t> leaders_of_nodes(const Scenario& scenario,
                                                         std::span<const Rank> members);

/// Why the gradients of this schedule cannot be exchanged part by part; nullopt where they can, and
/// for another GradientSync.
[[nodiscard]] std::optional<Refusal> why_no_parts(const Schedule& schedule,
                                                  const Scenario& scenario);
/// Why its parts cannot be exchanged so: sizes or fragments that are not of them.
[[nodiscard]] std::optional<Refusal> why_no_exchanges(const Schedule& schedule,
                                                      const PartExchanges& exchanges);

/// As lower(), with exchanges that [train] does not say. Throws Error where there are none.
[[nodiscard]] Plan lower_exchanges(const Schedule& schedule, const Scenario& scenario,
                                   const PartExchanges& exchanges);

/// Exchange and update of the parts of replicas that train together (GradientSync::compressed), as
/// tasks and messages beside the blocks (docs/training.md). For each rank lay_out(), then one
/// fill().
///
/// Of a part, on each rank: copy_out, gather and compress follow its last gradient, on lanes `out`
/// and `host`; sets travel; merge and optimize follow the last of them on `host:update`, copy_in on
/// `in`. Tasks without a time are left out, but for `optimize`. F of iteration n waits for the
/// update of iteration n - 1 - staleness, and its version is that of the newest. Lanes and links
/// serve by (iteration, part), or by arrival. Of PartExchanges, a task on `host:answer` makes of
/// each round but the last what is sent in the next, in the time of a merge and a compression;
/// fragments are exchanged in the middle of an iteration, where F may wait for its own iteration's
/// update.
///
/// With train.gather the ranks of a node send their gradients to the first of them, whose `gather`
/// waits for them; it alone compresses, exchanges and steps, and sends them its weights, which are
/// theirs with copy_in, whatever that takes.
class PartLowering {
public:
  /// All outlive this; the schedule is one that why_no_parts() says nothing about.
  PartLowering(const Schedule& schedule, const Scenario& scenario, const PartExchanges& exchanges,
               Plan& plan, Network& network);
  /// Of all ranks.
  [[nodiscard]] std::size_t ops() const;
  /// Adds the lanes of a rank.
  void lay_out(Rank rank);
  /// The compute lanes (index: rank) must be laid out.
  void fill(const std::vector<LaneId>& compute_lane_of_rank);

private:
  struct MemberOps {
    OpId copy_out = kNone<OpId>, gather = kNone<OpId>, compress = kNone<OpId>;
    std::vector<OpId> choices, answers;  ///< by round: SiteChoice; what is sent then, but in 0
    OpId merge = kNone<OpId>, optimize = kNone<OpId>, copy_in = kNone<OpId>;
  };
  struct Part {
    int number = 0;
    SetExchangeSteps steps;
    std::vector<OpId> sends, receives;  ///< by message
    std::vector<MemberOps> members;
  };
  /// Ranks that hold copies of the same weights, by replica.
  struct Group {
    std::vector<Rank> members;
    std::vector<std::int32_t> leaders;           ///< SetExchangeSteps::leaders
    std::vector<std::vector<TrainedPart>> rows;  ///< of each member
    std::vector<Part> parts;

    [[nodiscard]] bool leads(std::size_t member) const {
      return leaders.empty() || to_size(leaders[member]) == member;
    }
  };
  struct Place {
    std::size_t group = 0, member = 0;
  };
  struct PartMessage {
    std::size_t part = 0, message = 0;
  };

  void add_group(DeviceId device, int tensor);
  [[nodiscard]] std::int64_t numbers_of(const TrainedPart& part, DeviceId device) const;
  [[nodiscard]] SetSizes sizes_of(std::int64_t numbers, int sets, int sites) const;
  [[nodiscard]] SetExchangeSteps steps_of(const TrainedPart& part, DeviceId device,
                                          const std::vector<std::int32_t>& leaders,
                                          const std::vector<DatacenterId>& sites) const;
  [[nodiscard]] Duration cost(std::vector<Duration> PartCosts::*task, int number) const;
  [[nodiscard]] bool has(std::vector<Duration> PartCosts::*task) const {
    return !(scenario_.train.costs.*task).empty();
  }
  [[nodiscard]] bool keeps_one_buffer() const;

  /// A lane of tasks of every part of the rank, all kinds of `kinds` for each part.
  struct TaskOf {
    TaskKind kind;
    OpId MemberOps::*op;
  };
  void add_tasks(Place place, const std::string& name, ResourceId held,
                 const std::vector<TaskOf>& tasks);
  /// Those of the host, of a rank that leads.
  void add_host_tasks(Place place);
  void add_choices(Place place, ResourceId held);
  void add_answers(Place place, ResourceId held);
  /// Tasks that sum and compress: parts of the group, and their rounds.
  void add_sums(Place place, const char* name, ResourceId held, std::vector<OpId> MemberOps::*ops,
                const std::vector<std::pair<std::size_t, int>>& sums);
  void add_messages(Place place, OpKind kind);
  void add_message_lane(Place place, OpKind kind, int hop, Rank peer,
                        const std::vector<PartMessage>& messages, bool holds);
  [[nodiscard]] ResourceSetId hold(ResourceId resource);
  ResourceId add_resource(std::string name, ResourceKind kind, int capacity = 1);
  void set_task(OpId id, TaskKind kind, Duration time, const TrainedPart& part, ResourceSetId held,
                int round = 0);

  void fill_part(const Group& group, std::size_t p);
  /// An op that sums what a member has and got in a round, its own site's choice where there is
  /// one.
  void wait_for_round(const Group& group, std::size_t p, std::size_t m, int round, OpId sum);
  /// Merge and optimize, of a rank that leads; the op after which the update is on the host.
  OpId fill_step(const Group& group, std::size_t p, std::size_t m);
  void fill_update(const Group& group, std::size_t p, std::size_t m);
  void fill_forward(const Group& group, std::size_t p, std::size_t m);
  void fill_message(const Group& group, std::size_t p, std::size_t message);
  /// Makes the tasks before the exchange wait for each other; the op after which the member's own
  /// set can be sent.
  OpId fill_own_set(const Group& group, std::size_t p, std::size_t m);
  /// The op after which the member can send what is its own in a round.
  [[nodiscard]] OpId set_of(const Group& group, std::size_t p, std::size_t m, int round) const {
    return round == 0 ? own_set_[p][m] : group.parts[p].members[m].answers[to_size(round)];
  }
  [[nodiscard]] OpId block_at(const Group& group, std::size_t m, std::int32_t position) const;

  const Schedule& schedule_;
  const Scenario& scenario_;
  PartExchanges exchanges_;
  int rounds_;
  Plan& plan_;
  Network& network_;
  schedule::NetworkRoutes routes_;
  std::vector<Group> groups_;
  std::map<Rank, Place> place_of_;
  std::map<LaneId, Route> route_of_;
  std::vector<LaneId> compute_;                 ///< by rank
  std::vector<std::vector<OpId>> own_set_;      ///< of a group: by part, member
  std::map<ResourceId, ResourceSetId> set_of_;  ///< of a resource alone
};

}  // namespace longhaul::plan
