#include "collective/iteration/lower_iteration.hpp"

#include <algorithm>
#include <utility>

#include "collective/iteration/iteration_lowering.hpp"
#include "plan/lowering/count_ops.hpp"
#include "plan/lowering/step_lowering.hpp"
#include "plan/rewrite/renumber.hpp"

namespace longhaul::collective {
namespace {

/// Every rank, and every message of every group.
class AllRanks final : public IterationTarget {
public:
  AllRanks(const IterationPlan& plan, LoweredIteration& made)
      : iteration_{plan},
        scenario_{*plan.scenario},
        made_{made},
        network_{plan::Network::extending(scenario_, made.plan)},
        steps_{made.plan, network_, plan::StepLowering::Gates::both_sides} {
    for (const DeviceId stage : plan.stages.ids()) {
      auto& groups = groups_.emplace_back();
      for (const Members members : {Members::tensor, Members::shard, Members::copies,
                                    Members::replicas, Members::node, Members::across})
        groups.push_back(groups_of(scenario_, stage, members));
      stepped_.emplace_back(plan.stages[stage].communications.size());
    }
  }

  [[nodiscard]] bool has(Rank) const override { return true; }
  [[nodiscard]] OpId standing_for(OpId side) const override { return side; }
  [[nodiscard]] ResourceSetId resources(std::size_t base_lane) override {
    const Lane& lane = iteration_.base->lanes[base_lane];
    return lane.count == 0 ? ResourceSetId{} : iteration_.base->op(lane.first).resources;
  }

  [[nodiscard]] std::optional<Refusal> add(DeviceId stage, CommunicationId id) override {
    const Communication& each = iteration_.stages[stage].communications[id];
    const auto& groups = groups_[index(stage)][static_cast<std::size_t>(each.members)];
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const plan::Collective collective{
          each.kind,      groups[g], size_in_group(each, scenario_, g),
          each.algorithm, each.mesh, each.pieces};
      if (auto why = plan::why_no_steps(collective)) return why;
      if (each.algorithm == plan::CollectiveAlgorithm::ring &&
          messages_ + plan::count_messages_of_ring(collective) > kMostMessagesOfIteration)
        return too_many_messages();
      stepped_[index(stage)][index(id)].push_back(made_.plan.stepped.size());
      steps_.add(collective, each.chunk, each.queue);
      messages_ += made_.plan.stepped.back().steps->messages.size();
      if (messages_ > kMostMessagesOfIteration) return too_many_messages();
      made_.communication_of.push_back({stage, id, each.traffic});
    }
    return std::nullopt;
  }

  void lay_out(Rank rank) override { steps_.lay_out(rank); }
  [[nodiscard]] std::vector<OpId> arrivals(Rank rank, CommunicationId id) const override {
    return steps_.arrivals_at(stepped_of(rank, id), rank);
  }
  [[nodiscard]] std::vector<OpId> last_ops(Rank rank, CommunicationId id) const override {
    return steps_.last_ops(stepped_of(rank, id), rank);
  }
  void gate(Rank rank, CommunicationId id, OpId before) override {
    steps_.gate(stepped_of(rank, id), rank, before);
  }
  void fill() override { steps_.fill(); }

  [[nodiscard]] const std::optional<Refusal>& missing_link() const {
    return network_.missing_link();
  }

private:
  [[nodiscard]] std::size_t stepped_of(Rank rank, CommunicationId id) const {
    const DeviceId stage = iteration_.base->ranks[index(rank)].device;
    const Members members = iteration_.stages[stage].communications[id].members;
    const auto& groups = groups_[index(stage)][static_cast<std::size_t>(members)];
    const auto mine = std::ranges::find_if(
        groups, [&](const auto& group) { return std::ranges::binary_search(group, rank); });
    return stepped_[index(stage)][index(id)][to_size(mine - groups.begin())];
  }

  const IterationPlan& iteration_;
  const Scenario& scenario_;
  LoweredIteration& made_;
  plan::Network network_;
  plan::StepLowering steps_;
  std::vector<std::vector<std::vector<std::vector<Rank>>>> groups_;  ///< by stage, Members, group
  /// By stage, communication and group: index into Plan::stepped.
  std::vector<std::vector<std::vector<std::size_t>>> stepped_;
  std::size_t messages_ = 0;
};

}  // namespace

Refusal too_many_messages() {
  return refused(
      "the collectives of an iteration have more than {} messages (a simulation would take "
      "minutes). Take larger units, or fewer ranks or microbatches.",
      kMostMessagesOfIteration);
}

Result<LoweredIteration> lower_iteration(const IterationPlan& plan) {
  LoweredIteration made;
  made.plan = plan::renumbered_frame(*plan.base, [](OpId id) { return id; });
  made.plan.lanes.clear();
  AllRanks ranks{plan, made};
  if (auto why = IterationLowering{plan, ranks, made}.run()) return *std::move(why);
  if (ranks.missing_link()) return *ranks.missing_link();
  return made;
}

}  // namespace longhaul::collective
