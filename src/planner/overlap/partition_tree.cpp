#include "planner/overlap/partition_tree.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/unit_text.hpp"
#include "collective/partition/meshes.hpp"
#include "planner/collectives/collective_times.hpp"

namespace longhaul::planner {
namespace {

using collective::CommunicationClass;
using collective::DimensionType;
using collective::Fraction;
using collective::Grouping;
using collective::OperationId;
using collective::Partition;
using collective::Substitution;
using collective::Tier;
using collective::Traffic;
using collective::WorkloadDimension;

Bytes part_of(Bytes size, const Fraction& part) {
  return std::max(Bytes{1}, Bytes{portion(Duration{size.count()}, Duration{part.numerator},
                                          Duration{part.denominator})
                                      .count()});
}
Duration part_of(Duration time, const Fraction& part) {
  return portion(time, Duration{part.numerator}, Duration{part.denominator});
}

Fraction lowest(std::int64_t numerator, std::int64_t denominator) {
  const std::int64_t common = std::gcd(numerator, denominator);
  return {numerator / common, denominator / common};
}

/// A way to divide the group that survived.
struct MeshGroup {
  Substitution substitution = Substitution::none;
  plan::Mesh mesh{};
  int shard_pieces = 1;
  Duration cost{};
  std::string name;
};

class TreeBuilder {
public:
  TreeBuilder(const OverlapVariant& variant, const CommunicationClass& own, PartitionCosts& costs)
      : variant_{variant},
        scenario_{*variant.plan.scenario},
        own_{own},
        work_{variant.plan.stages[own.all.front().stage]},
        communication_{work_.communications[own.all.front().communication]},
        group_{collective::groups_of(scenario_, own.all.front().stage, own.members).front()},
        size_{collective::size_in_group(communication_, scenario_, 0)},
        costs_{costs} {
    tree_.communications = own;
    tree_.ranks = static_cast<int>(group_.size());
  }

  Result<PartitionTree> run() {
    for (const Substitution each : collective::substitutions_of(own_.kind))
      if (auto why = add_primitive(each)) return *std::move(why);
    find_chain();
    for (const MeshGroup& group : groups_)
      if (auto why = add_leaves(group)) return *std::move(why);
    choose();
    return std::move(tree_);
  }

private:
  void prune(std::string partition, std::string reason) {
    tree_.pruned.push_back({std::move(partition), std::move(reason)});
  }

  [[nodiscard]] Result<Duration> cost_of(Substitution substitution, Bytes size,
                                         const plan::Mesh& mesh, int pieces = 1) {
    Duration sum{};
    for (const CollectiveKind kind : collective::kinds_of(substitution, own_.kind)) {
      plan::Mesh ordered = mesh;
      if (is_before_forward(kind)) std::ranges::sort(ordered.order);
      const Result<Duration> cost = costs_.of(kind, group_, size, ordered, pieces);
      if (!cost) return cost;
      sum += *cost;
    }
    return sum;
  }

  std::optional<Refusal> add_primitive(Substitution substitution) {
    const Result<Duration> cost = cost_of(substitution, size_, {});
    if (!cost) return cost.refusal();
    const std::string name = to_string(substitution);
    if (substitution == Substitution::none) whole_ = *cost;
    if (substitution == Substitution::reduces_of_distinct_roots ||
        substitution == Substitution::broadcasts_of_distinct_roots) {
      prune(name, "a ring sends the same messages: a chain for each root");
      return std::nullopt;
    }
    if (*cost > whole_) {
      prune(name, fmt::format("takes {}, the {} {}", to_text(*cost), to_text(own_.kind),
                              to_text(whole_)));
      return std::nullopt;
    }
    groups_.push_back({substitution, {}, 1, *cost, {}});
    return add_meshes(substitution, *cost);
  }

  std::optional<Refusal> add_meshes(Substitution substitution, Duration flat) {
    for (const collective::GroupMesh& each : collective::meshes_of_group(group_, scenario_)) {
      std::string name = fmt::format("mesh {}", fmt::join(each.mesh.sizes, "x"));
      if (substitution != Substitution::none)
        name = fmt::format("{}, {}", to_string(substitution), name);
      if (!each.unequal.empty()) {
        prune(name, each.unequal);
        continue;
      }
      for (const int pieces :
           own_.members == collective::Members::shard ? std::vector{1} : std::vector{1, 4}) {
        if (size_.count() < pieces * std::ssize(group_)) continue;
        const Result<Duration> cost = cost_of(substitution, size_, each.mesh, pieces);
        if (!cost) return cost.refusal();
        const std::string own = pieces == 1 ? name : fmt::format("{}, shards in {}", name, pieces);
        if (*cost >= flat)
          prune(own, fmt::format("takes {}, the whole group {}", to_text(*cost), to_text(flat)));
        else
          groups_.push_back({substitution, each.mesh, pieces, *cost, own});
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] bool gathers() const { return own_.kind == CollectiveKind::all_gather; }

  /// Of the dimensions that what is moved has, the one whose chain reaches the collective's cost,
  /// or most of it.
  void find_chain() {
    if (own_.tier == Tier::model) return;
    const std::optional<OperationId> partner =
        collective::partner_of(variant_.plan, work_, communication_);
    if (!partner) return;
    const OperationId first = *partner;
    const Operator* const of = collective::operator_of(variant_.plan, work_.operations[first]);
    if (of == nullptr) return;
    for (const collective::WorkloadCut& cut :
         collective::workload_cuts(*of, work_.operations[first].work))
      if (cut.type == DimensionType::none)
        prune(fmt::format("cut along {}", to_string(cut.dimension)),
              fmt::format("{} is not cut along its rows (ND)", of->name));
    Duration most{};
    const Duration enough = std::max(Duration{1}, whole_ - own_.independent);
    for (collective::WorkloadChain& chain :
         collective::workload_chains(variant_.plan, work_, first, enough)) {
      const std::string name = fmt::format("cut along {}", to_string(chain.first.dimension));
      if (!collective::moves_dimension(own_.traffic, chain.first.dimension)) {
        prune(name, own_.traffic == Traffic::tp ? "activations have no such dimension"
                                                : "weights and their gradients have no tokens");
        continue;
      }
      if (chain.first.type == DimensionType::contraction) {
        prune(name, "a contraction: the parts of the result would be added up (CD)");
        continue;
      }
      if (!gathers()) chain.operations.resize(1);
      Duration cost{};
      for (const OperationId each : chain.operations) cost += work_.operations[each].duration;
      if (chain_.empty() || cost > most) {
        if (!chain_.empty())
          prune(fmt::format("cut along {}", to_string(*dimension_)),
                fmt::format("its chain takes {}, along {} {}", to_text(most),
                            to_string(chain.first.dimension), to_text(cost)));
        most = cost;
        chain_ = std::move(chain.operations);
        dimension_ = chain.first.dimension;
      } else {
        prune(name, fmt::format("its chain takes {}, along {} {}", to_text(cost),
                                to_string(*dimension_), to_text(most)));
      }
    }
    chain_cost_ = most;
  }

  [[nodiscard]] bool is_level_mesh(const MeshGroup& group) const {
    return variant_.levels && variant_.levels->are_two() &&
           own_.members == collective::Members::shard &&
           group.mesh.sizes == std::vector{variant_.levels->far, variant_.levels->near};
  }

  [[nodiscard]] PartitionLeaf leaf_of(const MeshGroup& group, const Partition& partition) const {
    PartitionLeaf leaf;
    leaf.partition = partition;
    leaf.partition.substitution = group.substitution;
    leaf.cost = group.cost;
    leaf.exposed = std::max(Duration{}, group.cost - own_.independent);
    return leaf;
  }

  void take_chain(PartitionLeaf& leaf, std::vector<Fraction> granularity,
                  const std::vector<Duration>& times) const {
    leaf.granularity = std::move(granularity);
    leaf.dimension = dimension_;
    for (const OperationId id : chain_)
      leaf.chain.push_back(collective::operator_of(variant_.plan, work_.operations[id])->name);
    leaf.partition.chain = static_cast<int>(chain_.size());
    leaf.cost = std::accumulate(times.begin(), times.end(), Duration{});
    leaf.exposed = exposed(leaf.granularity, times);
  }

  /// Pieces of the collective one after the other, beside independent computation and then the
  /// pieces of the chain; of a sum the chain first.
  [[nodiscard]] Duration exposed(const std::vector<Fraction>& parts,
                                 const std::vector<Duration>& times) const {
    const Duration overhead = scenario_.pieces.overhead;
    Duration communicated{};
    Duration computed = gathers() ? own_.independent : Duration{};
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Duration piece = part_of(chain_cost_, parts[i]) + (i > 0 ? overhead : Duration{});
      if (gathers()) {
        communicated += times[i];
        computed = std::max(computed, communicated) + piece;
      } else {
        computed += piece;
        communicated = std::max(communicated, computed) + times[i];
      }
    }
    const Duration end = gathers() ? computed : std::max(communicated, computed + own_.independent);
    return std::max(Duration{}, end - own_.independent - chain_cost_);  // parts are rounded
  }

  std::optional<Refusal> add_leaves(const MeshGroup& group) {
    std::vector<Partition> shapes;
    if (is_level_mesh(group)) {
      if (gathers()) shapes.push_back({.grouping = Grouping::far_first});
      shapes.push_back({.grouping = Grouping::near_first});
    } else {
      shapes.push_back({.mesh = group.mesh, .shard_pieces = group.shard_pieces});
    }
    for (const Partition& shape : shapes) {
      tree_.leaves.push_back(leaf_of(group, shape));
      if (chain_.empty()) continue;
      for (int pieces = 2; pieces <= scenario_.pieces.most; ++pieces) {
        if (size_.count() < pieces * std::ssize(group_)) break;
        const std::vector<Fraction> even(to_size(pieces), Fraction{1, pieces});
        const Result<Duration> cost = cost_of(group.substitution, part_of(size_, even.front()),
                                              group.mesh, group.shard_pieces);
        if (!cost) return cost.refusal();
        PartitionLeaf leaf = leaf_of(group, shape);
        leaf.partition.pieces = pieces;
        take_chain(leaf, even, std::vector(to_size(pieces), *cost));
        tree_.leaves.push_back(std::move(leaf));
      }
      if (shape.grouping != Grouping::flat && gathers())
        if (auto why = add_group_parts(group, shape)) return why;
    }
    return std::nullopt;
  }

  /// What collectives inside nodes take of a grouped gather; all nodes at a time.
  [[nodiscard]] Result<Duration> near_cost() {
    const auto node =
        collective::groups_of(scenario_, own_.all.front().stage, collective::Members::node);
    return costs_.of(own_.kind, node.front(), size_);
  }

  std::optional<Refusal> add_group_parts(const MeshGroup& group, const Partition& shape) {
    const Result<Duration> near = near_cost();
    if (!near) return near.refusal();
    const std::int64_t inter = variant_.levels->far, intra = variant_.levels->near;
    const std::int64_t world = inter * intra;
    const Duration far = group.cost - *near;
    const Duration own_node = *near / inter;
    const auto add = [&](int parts, std::vector<Fraction> granularity,
                         const std::vector<Duration>& times) {
      PartitionLeaf leaf = leaf_of(group, shape);
      leaf.partition.group_parts = parts;
      take_chain(leaf, std::move(granularity), times);
      leaf.partition.chain = 1;
      tree_.leaves.push_back(std::move(leaf));
    };
    if (shape.grouping == Grouping::far_first) {
      add(2, {lowest(inter, world), lowest(world - inter, world)}, {far, *near});
      return std::nullopt;
    }
    add(2, {lowest(intra, world), lowest(world - intra, world)},
        {own_node, far + *near - own_node});
    add(3,
        {lowest(intra, world), lowest(inter - 1, world), lowest(world - inter - intra + 1, world)},
        {own_node, far, *near - own_node});
    return std::nullopt;
  }

  /// What Algorithm 1 says of a leaf's group.
  [[nodiscard]] std::vector<Fraction> granularity_of(const PartitionLeaf& leaf) {
    collective::OperationCosts costs;
    costs.computation = chain_cost_;
    costs.independent = own_.independent;
    costs.most_chunks = scenario_.pieces.most;
    costs.communication = leaf.cost;
    costs.grouped = leaf.partition.grouping != Grouping::flat;
    if (costs.grouped) {
      costs.intra = near_cost().or_throw();
      costs.inter = std::max(Duration{}, leaf.cost - costs.intra);
      costs.inter_size = variant_.levels->far;
      costs.intra_size = variant_.levels->near;
    }
    return collective::operation_granularity(costs);
  }

  /// In the operation tier of each group what Algorithm 1 says, and of these the one that exposes
  /// least; in the others the least cost, uncut. Of an all-reduce a scatter and a gather, where
  /// they take no longer.
  void choose() {
    std::optional<std::size_t> best;
    const auto rank = [&](std::size_t i) {
      const PartitionLeaf& leaf = tree_.leaves[i];
      const bool is_split = leaf.partition.substitution != Substitution::none;
      return std::tuple{own_.tier == Tier::operation ? leaf.exposed : Duration{}, leaf.cost,
                        !is_split};
    };
    std::vector<Fraction> wanted;
    for (std::size_t i = 0; i < tree_.leaves.size(); ++i) {
      const PartitionLeaf& leaf = tree_.leaves[i];
      const bool is_whole = leaf.partition.pieces == 1 && leaf.partition.group_parts == 0;
      if (own_.tier != Tier::operation || chain_.empty()) {
        if (!is_whole) continue;
      } else {
        if (is_whole) wanted = granularity_of(leaf);
        if (leaf.granularity != wanted) continue;
      }
      if (!best || rank(i) < rank(*best)) best = i;
    }
    tree_.choice = best.value_or(0);
  }

  const OverlapVariant& variant_;
  const Scenario& scenario_;
  const CommunicationClass& own_;
  const collective::StageWork& work_;
  const collective::Communication& communication_;
  std::vector<Rank> group_;
  Bytes size_;
  PartitionCosts& costs_;
  PartitionTree tree_;
  Duration whole_{};
  std::vector<MeshGroup> groups_;
  std::vector<OperationId> chain_;
  std::optional<WorkloadDimension> dimension_;
  Duration chain_cost_{};
};

}  // namespace

Result<Duration> PartitionCosts::of(CollectiveKind kind, const std::vector<Rank>& group, Bytes size,
                                    const plan::Mesh& mesh, int pieces) {
  const Key key{kind, group, size.count(), mesh.sizes, pieces};
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  plan::Collective collective{kind, group, size};
  if (!mesh.sizes.empty()) {
    collective.algorithm = plan::CollectiveAlgorithm::hierarchical;
    collective.mesh = mesh;
    collective.pieces = pieces;
  }
  const Result<CollectiveTime> played = play_collective(collective, scenario_);
  if (!played) return played.refusal();
  known_.emplace(key, played->duration);
  return played->duration;
}

Result<PartitionTree> partition_tree(const OverlapVariant& variant, const CommunicationClass& of,
                                     PartitionCosts& costs) {
  return TreeBuilder{variant, of, costs}.run();
}

}  // namespace longhaul::planner
