#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "collective/iteration/communications.hpp"
#include "collective/overlap/pieces.hpp"
#include "collective/partition/partition.hpp"
#include "collective/partition/workload_chain.hpp"

namespace longhaul::collective {
namespace {

/// Queues of the collectives inside nodes lie above those of the ones that they belong to.
constexpr int kNearQueues = 64;

/// Where pieces stand in the order after `with`, loop by loop: the pieces with the same number of
/// all operations of the chain follow each other.
void loop_over_chain(StageWork& work, const std::vector<std::vector<OperationId>>& pieces_of) {
  std::vector<OperationId> looped;
  for (std::size_t piece = 0; piece < pieces_of.front().size(); ++piece)
    for (std::size_t link = 0; link < pieces_of.size(); ++link) {
      const OperationId id = pieces_of[link][piece];
      looped.push_back(id);
      if (link == 0) continue;
      // It needs its piece of the operator before instead of all pieces.
      std::ranges::replace(work.operations[id].needs, pieces_of[link - 1].back(),
                           pieces_of[link - 1][piece]);
      if (piece > 0) work.operations[id].needs.push_back(pieces_of[link - 1][piece]);
    }
  const auto first = std::ranges::find(work.order, pieces_of.front().front());
  std::ranges::copy(looped, first);
}

/// Of one communication.
class Partitioning {
public:
  Partitioning(const IterationPlan& plan, StageWork& work, const Partition& partition,
               const std::optional<LevelSizes>& levels)
      : plan_{plan}, work_{work}, partition_{partition}, levels_{levels} {}

  void run(CommunicationId id) {
    for (const CommunicationId piece : cut(id)) {
      if (partition_.grouping != Grouping::flat) {
        group(piece);
        continue;
      }
      for (const CommunicationId each : substituted(piece)) shape(work_.communications[each]);
    }
  }

private:
  [[nodiscard]] std::vector<CommunicationId> cut(CommunicationId id) {
    if (partition_.pieces < 2) return {id};
    const Communication& own = work_.communications[id];
    const Traffic traffic = own.traffic;
    const std::optional<OperationId> partner = partner_of(plan_, work_, own);
    if (!partner) return {id};
    if (own.kind != CollectiveKind::all_gather)
      return cut_with_producer(plan_, work_, id, partition_.pieces, partner);
    const int longest = work_.operations[*partner].pieces > 1 ? 1 : partition_.chain;
    const std::vector<OperationId> chain = chain_from(plan_, work_, *partner, longest, own.traffic);
    const std::vector<CommunicationId> made =
        cut_with_operation(plan_, work_, id, partition_.pieces, partner);
    if (made.size() > 1 && chain.size() > 1)
      cut_chain(chain, traffic, static_cast<int>(made.size()));
    return made;
  }

  void cut_chain(const std::vector<OperationId>& chain, Traffic traffic, int pieces) {
    std::vector<std::vector<OperationId>> all(1);
    const std::uint32_t position = work_.operations[chain.front()].position;
    for (const OperationId id : work_.order)
      if (work_.operations[id].position == position) all.front().push_back(id);
    for (std::size_t link = 1; link < chain.size(); ++link)
      all.push_back(
          cut_operation(work_, chain[link],
                        piece_durations(plan_, work_.operations[chain[link]], traffic, pieces)));
    loop_over_chain(work_, all);
  }

  /// The collectives that take its place, each after the one before.
  std::vector<CommunicationId> in_sequence(CommunicationId id, std::vector<Communication> parts) {
    const Communication whole = work_.communications[id];
    std::vector<CommunicationId> made{id};
    for (std::size_t i = 0; i < parts.size(); ++i) {
      Communication& part = parts[i];
      if (i > 0) {
        part.follows = {made.back()};
        part.input = -1;
        part.at_start_of = kNone<OperationId>;
        part.after.clear();
        made.push_back(work_.communications.push_back(std::move(part)));
      } else {
        work_.communications[id] = std::move(part);
      }
    }
    const auto place = std::ranges::find(work_.issue, id);
    work_.issue.insert(place + 1, made.begin() + 1, made.end());
    const auto is_own = [&](CommunicationId each) {
      return std::ranges::find(made, each) != made.end();
    };
    for (const CommunicationId each : work_.communications.ids())
      if (!is_own(each)) std::ranges::replace(work_.communications[each].follows, id, made.back());
    return made;
  }

  std::vector<CommunicationId> substituted(CommunicationId id) {
    const Communication whole = work_.communications[id];
    const std::vector<CollectiveKind> kinds = kinds_of(partition_.substitution, whole.kind);
    if (kinds.size() < 2) return {id};
    Communication first = whole;
    Communication second = whole;
    first.kind = kinds.front();
    first.completes = -1;
    second.kind = kinds.back();
    // Of sums what they hold is released by the last, of gathers taken by the first.
    if (whole.holds != Holds::weights) first.needed_by.clear();
    if (whole.holds == Holds::weights) second.holds = Holds::nothing;
    if (whole.holds == Holds::gradients) first.holds = Holds::nothing;
    if (whole.holds != Holds::gradients) second.needs.clear();
    return in_sequence(id, {first, second});
  }

  void shape(Communication& communication) const {
    if (partition_.mesh.sizes.empty()) return;
    communication.algorithm = plan::CollectiveAlgorithm::hierarchical;
    communication.mesh = partition_.mesh;
    if (is_before_forward(communication.kind)) std::ranges::sort(communication.mesh.order);
    communication.pieces = static_cast<int>(
        std::min<std::int64_t>(partition_.shard_pieces, communication.size.count()));
  }

  [[nodiscard]] Communication near(const Communication& whole, Bytes size) const {
    Communication part = whole;
    part.members = Members::node;
    part.size = size;
    part.queue = whole.queue + kNearQueues;
    return part;
  }
  [[nodiscard]] Communication far(const Communication& whole) const {
    Communication part = whole;
    part.members = Members::across;
    part.size = Bytes{(whole.size.count() + levels_->near - 1) / levels_->near};
    return part;
  }

  void group(CommunicationId id) {
    const Communication whole = work_.communications[id];
    const Bytes own_node{whole.size.count() / levels_->far};
    std::vector<Communication> parts;
    if (whole.kind != CollectiveKind::all_gather) {
      parts = {near(whole, whole.size), far(whole)};
      parts.front().needed_by.clear();
      parts.front().completes = -1;
    } else if (partition_.grouping == Grouping::far_first) {
      parts = {far(whole), near(whole, whole.size)};
    } else {
      parts = {near(whole, own_node), far(whole), near(whole, whole.size - own_node)};
    }
    if (whole.kind == CollectiveKind::all_gather)
      for (std::size_t i = 1; i < parts.size(); ++i) parts[i].needs.clear();
    const std::vector<CommunicationId> made = in_sequence(id, std::move(parts));
    if (partition_.group_parts > 0) cut_by_group(made);
  }

  /// The first user starts with what the first sub-group brings.
  void cut_by_group(const std::vector<CommunicationId>& made) {
    const OperationId user = *partner_of(plan_, work_, work_.communications[made.front()]);
    if (work_.operations[user].pieces > 1) return;
    const auto positions = work_.positions();
    for (std::size_t i = 1; i < made.size(); ++i)  // users before it take what comes first
      std::erase_if(work_.communications[made[i]].needed_by,
                    [&](OperationId each) { return positions[each] < positions[user]; });
    const Duration whole = work_.operations[user].duration;
    const std::int64_t near = levels_->near, far = levels_->far, world = near * far;
    std::vector<std::int64_t> ends{world};
    if (made.size() == 3 && partition_.group_parts == 3) ends.insert(ends.begin(), near + far - 1);
    ends.insert(ends.begin(), made.size() == 2 ? far : near);
    std::vector<Duration> parts;
    Duration before{};
    for (const std::int64_t end : ends) {
      const Duration until = portion(whole, Duration{end}, Duration{world});
      parts.push_back(until - before +
                      (parts.empty() ? Duration{} : plan_.scenario->pieces.overhead));
      before = until;
    }
    const std::vector<OperationId> pieces = cut_operation(work_, user, parts);
    for (std::size_t i = 1; i < made.size(); ++i)
      std::ranges::replace(work_.communications[made[i]].needed_by, user,
                           pieces[std::min(i, pieces.size() - 1)]);
  }

  const IterationPlan& plan_;
  StageWork& work_;
  const Partition& partition_;
  const std::optional<LevelSizes>& levels_;
};

}  // namespace

void partition_communication(const IterationPlan& plan, StageWork& work,
                             CommunicationId communication, const Partition& partition,
                             const std::optional<LevelSizes>& levels) {
  if (!applies_to(partition, work.communications[communication], levels)) return;
  Partitioning{plan, work, partition, levels}.run(communication);
}

void sum_by_units(StageWork& work) {
  for (const CommunicationId id : std::vector<CommunicationId>{work.issue}) {
    const Communication whole = work.communications[id];
    if (whole.members != Members::copies || whole.follows.empty()) continue;
    std::map<std::int32_t, Communication> sums;
    for (const CommunicationId before : whole.follows) {
      const Communication& scatter = work.communications[before];
      const auto [found, is_new] = sums.try_emplace(scatter.unit, whole);
      Communication& sum = found->second;
      if (is_new) {
        sum.size = work.units[at(scatter.unit)].gradients;
        sum.unit = scatter.unit;
        sum.follows.clear();
        sum.needs.clear();
      }
      sum.follows.push_back(before);
      sum.needs.insert(sum.needs.end(), scatter.needs.begin(), scatter.needs.end());
    }
    bool is_first = true;
    for (auto& [unit, sum] : sums) {
      if (std::exchange(is_first, false))
        work.communications[id] = std::move(sum);
      else
        work.add(std::move(sum));
    }
  }
}

namespace {
constexpr std::int64_t kUnitsBeyond = 31;  ///< the bit of all further ones
}

void put_wgrads_first(StageWork& work, std::uint32_t from_end) {
  using Place = std::tuple<ChunkId, MicrobatchId, std::int32_t>;
  std::map<Place, std::vector<OperationId>> wgrads;
  std::vector<std::int32_t> units;
  for (auto id = work.order.rbegin(); id != work.order.rend(); ++id) {
    const Operation& operation = work.operations[*id];
    if (operation.work != BlockKind::W || operation.place < 0) continue;
    if (std::ranges::find(units, operation.unit) == units.end()) units.push_back(operation.unit);
    const auto bit = std::min<std::int64_t>(
        std::ranges::find(units, operation.unit) - units.begin(), kUnitsBeyond);
    if ((from_end >> bit & 1U) == 0) continue;
    wgrads[{operation.chunk, operation.microbatch, operation.place}].push_back(*id);
  }
  std::vector<OperationId> order;
  std::vector<bool> placed(work.operations.size(), false);
  const auto put = [&](OperationId id) {
    if (!placed[index(id)]) order.push_back(id);
    placed[index(id)] = true;
  };
  for (const OperationId id : work.order) {
    const Operation& operation = work.operations[id];
    if (operation.work == BlockKind::D)
      if (const auto own = wgrads.find({operation.chunk, operation.microbatch, operation.place});
          own != wgrads.end() && work.operations[own->second.front()].block == operation.block)
        for (const OperationId wgrad : own->second) put(wgrad);
    put(id);
  }
  work.order = std::move(order);
}

}  // namespace longhaul::collective
