#include "planner/overlap/overlap_bound.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/unit_text.hpp"
#include "collective/iteration/lower_iteration.hpp"
#include "planner/collectives/one_way.hpp"

namespace longhaul::planner {
namespace {

using collective::Communication;
using collective::IterationPlan;
using collective::Members;
using collective::Operation;
using collective::StageWork;

/// Ranks on one side of a cut.
struct RankCut {
  std::string name;
  std::vector<bool> inside;  ///< by rank
};

class OverlapCuts {
public:
  explicit OverlapCuts(const IterationPlan& plan)
      : plan_{plan}, scenario_{*plan.scenario}, routes_{scenario_} {
    find_totals();
    find_messages();
  }

  OverlapBound run() {
    for (const DeviceId stage : plan_.stages.ids()) {
      consider_work(stage);
      consider_first_gathers(stage);
    }
    consider_ranks();
    consider_datacenters();
    consider_all();
    return best_;
  }

private:
  /// What the collectives of one kind of a group move in sum: which of them moves it is open.
  struct Total {
    DeviceId stage{};
    CollectiveKind kind{};
    Members members{};
    std::vector<Rank> group;
    Bytes size;
    std::int64_t count = 0;
  };

  void find_totals() {
    for (const DeviceId stage : plan_.stages.ids()) {
      std::map<std::tuple<CollectiveKind, Members, std::size_t>, Total> totals;
      for (const Communication& each : plan_.stages[stage].communications) {
        const auto groups = collective::groups_of(scenario_, stage, each.members);
        for (std::size_t g = 0; g < groups.size(); ++g) {
          Total& total = totals
                             .try_emplace({each.kind, each.members, g},
                                          Total{stage, each.kind, each.members, groups[g], {}, 0})
                             .first->second;
          total.size += collective::size_in_group(each, scenario_, g);
          ++total.count;
        }
      }
      for (auto& [key, total] : totals) totals_.push_back(std::move(total));
    }
  }

  void find_messages() {
    const Plan& base = *plan_.base;
    for (const Op& op : base.ops)
      if (op.kind == OpKind::send) messages_[{base.lanes[index(op.lane)].rank, op.peer}] += op.size;
  }

  /// After the forwards of one microbatch on all stages of the model before its own.
  void consider_work(DeviceId stage) {
    const StageWork& work = plan_.stages[stage];
    Duration sum{};
    for (const collective::OperationId id : work.order) sum += work.operations[id].duration;
    const std::vector<ChunkId> chunks = chunks_on(*plan_.schedule, stage);
    Duration head{};
    for (const StageWork& other : plan_.stages)
      for (const collective::OperationId id : other.order) {
        const Operation& operation = other.operations[id];
        if (operation.work == BlockKind::F && operation.microbatch == MicrobatchId{0} &&
            !chunks.empty() && operation.chunk < chunks.front())
          head += operation.duration;
      }
    raise(head + sum, [&] {
      return fmt::format("work of stage {}{}", index(stage),
                         head > Duration{} ? " after the stages before it" : "");
    });
  }

  /// A stage of one chunk passes an operator first when the weights of all units before it have
  /// come. What is left then is all work but the forwards before that operator.
  void consider_first_gathers(DeviceId stage) {
    if (chunks_on(*plan_.schedule, stage).size() != 1) return;
    const Rank first = scenario_.rank(ReplicaId{0}, stage, 0);
    std::vector<Rank> node;
    for (const Rank rank : ids<Rank>(scenario_.training_ranks()))
      if (scenario_.datacenter_of(rank) == scenario_.datacenter_of(first) &&
          routes_.node_of(rank) == routes_.node_of(first))
        node.push_back(rank);
    for (const RankCut& cut :
         {RankCut{fmt::format("rank {}", index(first)), side_of({first})},
          RankCut{fmt::format("the node of rank {}", index(first)), side_of(node)}})
      consider_first_gathers(stage, cut);
  }

  void consider_first_gathers(DeviceId stage, const RankCut& cut) {
    std::set<std::pair<Rank, Rank>> in;
    const std::map<std::int32_t, Bytes> units = first_gathers(stage, cut, in);
    if (in.empty()) return;
    const OneWay way = way_of(in);
    std::map<std::int32_t, std::vector<std::int32_t>> ending;  // units, by their last place
    std::map<std::int32_t, Duration> forwards;                 // of all microbatches, by place
    std::map<std::int32_t, std::int32_t> last_of;
    Duration left{};
    for (const collective::OperationId id : plan_.stages[stage].order) {
      const Operation& each = plan_.stages[stage].operations[id];
      left += each.duration;
      if (each.work != BlockKind::F || each.place < 0) continue;
      forwards[each.place] += each.duration;
      if (units.contains(each.unit)) last_of[each.unit] = std::max(last_of[each.unit], each.place);
    }
    for (const auto& [unit, place] : last_of) ending[place].push_back(unit);
    Bytes come{};
    for (const auto& [place, duration] : forwards) {
      left -= duration;
      if (!ending.contains(place)) continue;
      for (const std::int32_t unit : ending[place]) come += units.at(unit);
      raise(way.time(come) + left, [&] {
        return fmt::format("{} of weights into {} at {}, and the work of stage {} after them",
                           to_text(come), cut.name, to_text(way.rate()), index(stage));
      });
    }
  }

  /// Of each unit, what must come across the cut before its operators' first forwards can end.
  [[nodiscard]] std::map<std::int32_t, Bytes> first_gathers(
      DeviceId stage, const RankCut& cut, std::set<std::pair<Rank, Rank>>& in) const {
    std::map<std::int32_t, std::map<MicrobatchId, Bytes>> of_unit;
    for (const Communication& each : plan_.stages[stage].communications) {
      if (each.kind != CollectiveKind::all_gather || each.unit < 0 ||
          each.holds != collective::Holds::weights || !is_for_forward(stage, each))
        continue;
      Bytes& bytes = of_unit[each.unit][each.microbatch];
      const auto groups = collective::groups_of(scenario_, stage, each.members);
      for (std::size_t g = 0; g < groups.size(); ++g) {
        const std::vector<bool> inside = inside_of(groups[g], cut);
        if (!is_crossed(inside)) continue;
        const Bytes own = bytes_across({.kind = each.kind,
                                        .members = groups[g],
                                        .size = collective::size_in_group(each, scenario_, g)},
                                       inside)
                              .in;
        bytes += std::max(Bytes{}, own - Bytes{scenario_.pieces.most});
        add_pairs_into(groups[g], inside, in);
      }
    }
    std::map<std::int32_t, Bytes> least;
    for (const auto& [unit, by_microbatch] : of_unit)
      least[unit] = std::ranges::min_element(by_microbatch, {}, [](const auto& each) {
                      return each.second;
                    })->second;
    return least;
  }

  [[nodiscard]] bool is_for_forward(DeviceId stage, const Communication& each) const {
    return std::ranges::any_of(each.needed_by, [&](collective::OperationId id) {
      return plan_.stages[stage].operations[id].work == BlockKind::F;
    });
  }

  [[nodiscard]] static std::vector<bool> inside_of(const std::vector<Rank>& group,
                                                   const RankCut& cut) {
    std::vector<bool> inside;
    for (const Rank member : group) inside.push_back(cut.inside[index(member)]);
    return inside;
  }
  /// Has the group members on both sides?
  [[nodiscard]] static bool is_crossed(const std::vector<bool>& inside) {
    return std::ranges::find(inside, true) != inside.end() &&
           std::ranges::find(inside, false) != inside.end();
  }
  static void add_pairs_into(const std::vector<Rank>& group, const std::vector<bool>& inside,
                             std::set<std::pair<Rank, Rank>>& in) {
    for (std::size_t i = 0; i < inside.size(); ++i)
      for (std::size_t j = 0; j < inside.size(); ++j)
        if (!inside[i] && inside[j]) in.emplace(group[i], group[j]);
  }

  /// Around each rank, of many around one of each stage; around each node.
  void consider_ranks() {
    constexpr int kMostRanks = 64;
    const int ranks = scenario_.training_ranks();
    std::map<std::pair<DatacenterId, int>, std::vector<Rank>> nodes;
    for (const Rank rank : ids<Rank>(ranks)) {
      nodes[{scenario_.datacenter_of(rank), routes_.node_of(rank)}].push_back(rank);
      const RankPlace place = scenario_.place_of(rank);
      if (ranks > kMostRanks && (place.replica != ReplicaId{0} || place.tensor != 0)) continue;
      consider({fmt::format("rank {}", index(rank)), side_of({rank})});
    }
    for (const auto& [node, members] : nodes)
      if (members.size() > 1)
        consider({fmt::format("the node of rank {}", index(members.front())), side_of(members)});
  }

  /// Each one against the others.
  void consider_datacenters() {
    if (scenario_.datacenters.size() < 2) return;
    for (std::size_t d = 0; d < scenario_.datacenters.size(); ++d) {
      std::vector<Rank> members;
      for (const Rank rank : ids<Rank>(scenario_.training_ranks()))
        if (index(scenario_.datacenter_of(rank)) == d) members.push_back(rank);
      consider({fmt::format("datacenter {}", scenario_.datacenters[d].name), side_of(members)});
    }
  }

  [[nodiscard]] std::vector<bool> side_of(const std::vector<Rank>& members) const {
    std::vector<bool> inside(to_size(scenario_.training_ranks()), false);
    for (const Rank member : members) inside[index(member)] = true;
    return inside;
  }

  void consider(const RankCut& cut) {
    Crossing bytes;
    std::set<std::pair<Rank, Rank>> out, in;  // who may send to whom
    for (const Total& total : totals_) {
      const std::vector<bool> inside = inside_of(total.group, cut);
      if (!is_crossed(inside)) continue;
      const Crossing own =
          bytes_across({.kind = total.kind, .members = total.group, .size = total.size}, inside);
      // Cut into pieces, one shard of each may have a byte more.
      const Bytes slack{total.count * scenario_.pieces.most};
      bytes.out += std::max(Bytes{}, own.out - slack);
      bytes.in += std::max(Bytes{}, own.in - slack);
      for (std::size_t i = 0; i < inside.size(); ++i)
        for (std::size_t j = 0; j < inside.size(); ++j)
          if (inside[i] != inside[j])
            (inside[i] ? out : in).emplace(total.group[i], total.group[j]);
    }
    for (const auto& [pair, size] : messages_) {
      if (cut.inside[index(pair.first)] == cut.inside[index(pair.second)]) continue;
      const bool leaves = cut.inside[index(pair.first)];
      (leaves ? bytes.out : bytes.in) += size;
      (leaves ? out : in).insert(pair);
    }
    raise(out, bytes.out, fmt::format("out of {}", cut.name));
    raise(in, bytes.in, fmt::format("into {}", cut.name));
  }

  /// A number that n ranks sum must be sent n - 1 times until someone has the sum, and n - 1 times
  /// until all have.
  void consider_all() {
    Bytes sent;
    std::set<std::pair<Rank, Rank>> pairs;
    for (const Total& total : totals_) {
      const auto others = static_cast<std::int64_t>(total.group.size()) - 1;
      sent += total.size * others * (total.kind == CollectiveKind::all_reduce ? 2 : 1);
      if (total.group.size() > kMostInGroup) return;
      for (const Rank from : total.group)
        for (const Rank to : total.group)
          if (from != to) pairs.emplace(from, to);
    }
    for (const auto& [pair, size] : messages_) {
      sent += size;
      pairs.insert(pair);
    }
    if (pairs.empty()) return;
    Capacity capacity;
    for (const auto& [from, to] : pairs)
      capacity.add(routes_.between(from, to), {ResourceKind::port_out, ResourceKind::internal_out,
                                               ResourceKind::egress, ResourceKind::link});
    const Bandwidth rate{capacity.rate()};
    if (rate.is_unlimited()) return;
    const double time = static_cast<double>(sent.count()) * 8e9 / rate.bits_per_second();
    raise(Duration{static_cast<std::int64_t>(time)}, [&] {
      return fmt::format("{} that all ranks send at {}", to_text(sent), to_text(rate));
    });
  }

  [[nodiscard]] OneWay way_of(const std::set<std::pair<Rank, Rank>>& pairs) const {
    OneWay way;
    for (const auto& [from, to] : pairs)
      way.add(routes_.between(from, to), {static_cast<int>(index(scenario_.datacenter_of(from))),
                                          static_cast<int>(index(scenario_.datacenter_of(to)))});
    return way;
  }

  void raise(const std::set<std::pair<Rank, Rank>>& pairs, Bytes size, const std::string& where) {
    if (size == Bytes{} || pairs.empty()) return;
    const OneWay way = way_of(pairs);
    raise(way.time(size),
          [&] { return fmt::format("{} {} at {}", to_text(size), where, to_text(way.rate())); });
  }

  template <typename Reason>
  void raise(Duration time, Reason reason) {
    if (time <= best_.lower_bound) return;
    best_ = {time, reason()};
  }

  static constexpr std::size_t kMostInGroup = 512;
  const IterationPlan& plan_;
  const Scenario& scenario_;
  schedule::NetworkRoutes routes_;
  std::vector<Total> totals_;
  std::map<std::pair<Rank, Rank>, Bytes> messages_;  ///< between stages
  OverlapBound best_;
};

}  // namespace

OverlapBound bound_of_overlaps(const IterationPlan& plan) { return OverlapCuts{plan}.run(); }

}  // namespace longhaul::planner
