#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "collective/iteration/iteration_lowering.hpp"
#include "plan/lowering/lanes.hpp"
#include "plan/rewrite/renumber.hpp"

namespace longhaul::collective {
namespace {

/// Does a rank wait for the same at the same time as all others? One group for each collective,
/// which is all ranks, and no messages between stages.
bool all_do_the_same(const IterationPlan& plan) {
  if (plan.stages.size() != 1) return false;
  const std::size_t ranks = plan.base->ranks.size();
  for (const RankInfo& each : plan.base->ranks)
    if (each.role != RankRole::training) return false;
  for (const Lane& lane : plan.base->lanes)
    if (lane.kind != OpKind::compute && lane.count > 0) return false;
  std::set<Members> used;
  for (const Communication& each : plan.stages[DeviceId{0}].communications)
    used.insert(each.members);
  return std::ranges::all_of(used, [&](Members members) {
    const auto groups = groups_of(*plan.scenario, DeviceId{0}, members);
    return groups.size() == 1 && groups.front().size() == ranks;
  });
}

/// Every rank, or the first for all; of each group of a communication an op for each member that is
/// there, on a lane of its queue.
class WholeCollectives final : public IterationTarget {
public:
  WholeCollectives(const IterationPlan& plan, const plan::TimeAlone& alone, SameRanks same,
                   LoweredIteration& made)
      : iteration_{plan},
        scenario_{*plan.scenario},
        alone_{alone},
        one_for_all_{same == SameRanks::once && all_do_the_same(plan)},
        made_{made},
        network_{plan::Network::extending(scenario_, made.plan)},
        lanes_(plan.base->ranks.size()),
        parts_(plan.base->ranks.size()) {
    if (one_for_all_) made.representative.assign(plan.base->ranks.size(), Rank{0});
    for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
      const DeviceId stage = plan.base->ranks[rank].device;
      if (plan.base->ranks[rank].role == RankRole::training)
        parts_[rank].resize(plan.stages[stage].communications.size());
    }
  }

  [[nodiscard]] bool has(Rank rank) const override { return !one_for_all_ || rank == Rank{0}; }
  [[nodiscard]] OpId standing_for(OpId side) const override { return side; }
  [[nodiscard]] ResourceSetId resources(std::size_t base_lane) override {
    const Lane& lane = iteration_.base->lanes[base_lane];
    return lane.count == 0 ? ResourceSetId{} : iteration_.base->op(lane.first).resources;
  }

  [[nodiscard]] std::optional<Refusal> add(DeviceId stage, CommunicationId id) override {
    const Communication& each = iteration_.stages[stage].communications[id];
    const auto groups = groups_of(scenario_, stage, each.members);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      plan::Collective collective{each.kind,      groups[g], size_in_group(each, scenario_, g),
                                  each.algorithm, each.mesh, each.pieces};
      if (auto why = plan::why_no_steps(collective)) return why;
      for (const Rank member : groups[g]) {
        if (!has(member)) continue;
        std::uint32_t& count = lanes_[index(member)][each.queue].count;
        parts_[index(member)][index(id)] = {
            static_cast<std::uint32_t>(collectives_.size()), each.queue, count++, {}};
      }
      collectives_.push_back(std::move(collective));
      made_.communication_of.push_back({stage, id, each.traffic});
    }
    return std::nullopt;
  }

  void lay_out(Rank rank) override {
    for (auto& [queue, lane] : lanes_[index(rank)])
      lane.first =
          index(made_.plan
                    .lanes[index(plan::add_lane(
                        made_.plan, queue > 0 ? fmt::format("collective:{}", queue) : "collective",
                        OpKind::collective, rank, kNone<Rank>, lane.count))]
                    .first);
  }

  [[nodiscard]] std::vector<OpId> arrivals(Rank rank, CommunicationId id) const override {
    return {op_of(rank, part_of(rank, id))};
  }
  [[nodiscard]] std::vector<OpId> last_ops(Rank rank, CommunicationId id) const override {
    return {op_of(rank, part_of(rank, id))};
  }
  void gate(Rank rank, CommunicationId id, OpId before) override {
    parts_[index(rank)][index(id)].gates.push_back(before);
  }

  void fill() override {
    made_.plan.collectives.resize(collectives_.size());
    std::vector<Duration> times;
    std::vector<std::uint32_t> held;  // by collective: which of lists_
    std::map<std::vector<Rank>, std::uint32_t> of_ring;
    for (const plan::Collective& each : collectives_) {
      times.push_back(alone_(each));
      if (each.algorithm != plan::CollectiveAlgorithm::ring) {
        held.push_back(list_of(each));
        continue;
      }
      const auto [known, is_new] = of_ring.try_emplace(each.members, 0);
      if (is_new) known->second = list_of(each);
      held.push_back(known->second);
    }
    for (const Rank rank : ids<Rank>(static_cast<int>(parts_.size()))) {
      if (!has(rank)) continue;
      for (const Part& part : parts_[index(rank)]) {
        const plan::Collective& collective = collectives_[part.collective];
        Op& op = made_.plan.ops[index(op_of(rank, part))];
        op.kind = OpKind::collective;
        op.collective = collective.kind;
        op.peer = collective.members.front();
        op.match = part.collective;
        op.resources = resources_of(rank, part.queue, held[part.collective]);
        op.duration = times[part.collective];
        op.size = collective.size;
        for (const OpId before : part.gates) made_.plan.add_after(op, before);
        made_.plan.collectives[part.collective].push_back(op_of(rank, part));
      }
    }
    for (std::vector<OpId>& members : made_.plan.collectives) std::ranges::sort(members);
  }

  [[nodiscard]] const std::optional<Refusal>& missing_link() const {
    return network_.missing_link();
  }

private:
  struct Part {
    std::uint32_t collective = 0;
    int queue = 0;
    std::uint32_t position = 0;
    std::vector<OpId> gates;
  };
  struct QueueLane {
    std::uint32_t count = 0;
    std::size_t first = 0;
  };

  [[nodiscard]] const Part& part_of(Rank rank, CommunicationId id) const {
    return parts_[index(rank)][index(id)];
  }
  [[nodiscard]] OpId op_of(Rank rank, const Part& part) const {
    const std::size_t first = lanes_[index(rank)].at(part.queue).first;
    return OpId{static_cast<std::uint32_t>(first + part.position)};
  }

  std::uint32_t list_of(const plan::Collective& collective) {
    std::vector<ResourceId> held = network_.held_between(pairs_of(collective));
    const auto [known, is_new] =
        number_of_.try_emplace(std::move(held), static_cast<std::uint32_t>(lists_.size()));
    if (is_new) lists_.push_back(&known->first);
    return known->second;
  }

  /// Of a lane, one set for all collectives that hold the same.
  ResourceSetId resources_of(Rank rank, int queue, std::uint32_t list) {
    const auto [known, is_new] = sets_.try_emplace({rank, queue, list}, ResourceSetId{});
    if (is_new) known->second = network_.all_of(*lists_[list], rank);
    return known->second;
  }

  /// Who sends to whom.
  [[nodiscard]] std::vector<plan::RankPair> pairs_of(const plan::Collective& collective) const {
    std::vector<plan::RankPair> pairs;
    const std::size_t count = collective.members.size();
    if (collective.algorithm == plan::CollectiveAlgorithm::ring) {
      for (std::size_t i = 0; i < count && count > 1; ++i)
        pairs.push_back({collective.members[i], collective.members[(i + 1) % count]});
      return pairs;
    }
    std::set<std::pair<std::int32_t, std::int32_t>> hops;
    for (const plan::StepMessage& message : plan::steps_of(collective).messages)
      hops.emplace(message.from, message.to);
    for (const auto& [from, to] : hops)
      pairs.push_back({collective.members[at(from)], collective.members[at(to)]});
    return pairs;
  }

  const IterationPlan& iteration_;
  const Scenario& scenario_;
  const plan::TimeAlone& alone_;
  bool one_for_all_;
  LoweredIteration& made_;
  plan::Network network_;
  std::vector<plan::Collective> collectives_;
  std::vector<std::map<int, QueueLane>> lanes_;                 ///< by rank and queue
  std::vector<std::vector<Part>> parts_;                        ///< by rank and communication
  std::map<std::vector<ResourceId>, std::uint32_t> number_of_;  ///< lists of what is held
  std::vector<const std::vector<ResourceId>*> lists_;           ///< by number
  std::map<std::tuple<Rank, int, std::uint32_t>, ResourceSetId> sets_;
};

}  // namespace

Result<LoweredIteration> lower_whole_collectives(const IterationPlan& plan,
                                                 const plan::TimeAlone& alone, SameRanks same) {
  LoweredIteration made;
  made.plan = plan::renumbered_frame(*plan.base, [](OpId id) { return id; });
  made.plan.lanes.clear();
  WholeCollectives ranks{plan, alone, same, made};
  if (auto why = IterationLowering{plan, ranks, made}.run()) return *std::move(why);
  if (ranks.missing_link()) return *ranks.missing_link();
  return made;
}

}  // namespace longhaul::collective
