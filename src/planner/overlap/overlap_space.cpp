#include "planner/overlap/overlap_space.hpp"

#include <algorithm>
#include <utility>

#include "collective/overlap/overlaps.hpp"
#include "planner/overlap/microbatch_groups.hpp"

namespace longhaul::planner {
namespace {

using collective::CommunicationClass;
using collective::Overlap;
using collective::Partition;

bool has_copies(const Parallel& parallel) {
  return parallel.gradient_sync == GradientSync::zero3 && parallel.shard > 1 &&
         parallel.replicas > parallel.shard;
}

bool divides_the_same(const Parallel& a, const Parallel& b) {
  return a.gradient_sync == b.gradient_sync && a.shard == b.shard && a.sharding == b.sharding;
}

/// OverlapLimits::of_real_layers.
bool is_computed_by_layers(const Partition& option, const CommunicationClass& of) {
  const bool in_two = option.substitution != collective::Substitution::none;
  return option.pieces == 1 && option.group_parts == 0 &&
         option.grouping == collective::Grouping::flat &&
         (!in_two || of.traffic == collective::Traffic::dp);
}

bool are_of_one_kind(const CommunicationClass& a, const CommunicationClass& b) {
  return a.traffic == b.traffic && a.kind == b.kind && a.members == b.members && a.size == b.size &&
         a.tier == b.tier && a.beside == b.beside && a.work == b.work;
}

}  // namespace

OverlapSpace::OverlapSpace(const Schedule& schedule, const Scenario& scenario,
                           Arrangement arrangement, OverlapScope scope, const OverlapLimits& limits)
    : schedule_{schedule}, scenario_{scenario}, arrangement_{arrangement}, limits_{limits} {
  add_shardings(scope);
  add_orders(scope);
  for (std::size_t sharding = 0; sharding < shardings_.size(); ++sharding)
    for (std::size_t order = 0; order < orders_.size(); ++order)
      for (const CopySums sums : {CopySums::of_chunk, CopySums::of_units})
        if (!groups_[order]) add({sharding, order, sums});
  if (!variants_.empty()) why_.reset();
}

/// The schedule as it is, breadth first, and in groups of microbatches.
void OverlapSpace::add_orders(OverlapScope scope) {
  const auto is_new = [&](const Schedule& order) {
    return std::ranges::none_of(orders_, [&](const auto& each) { return each.rows == order.rows; });
  };
  orders_.push_back(schedule_);
  groups_.emplace_back();
  if (!limits_.allows(OverlapIdea::model)) return;
  if (scope == OverlapScope::joint) {
    Schedule other = collective::breadth_first(schedule_);
    if (is_new(other)) {
      orders_.push_back(std::move(other));
      groups_.emplace_back();
    }
  }
  for (const MicrobatchGroup& group : microbatch_groups(schedule_, scenario_)) {
    std::optional<Schedule> order = in_groups(group, scenario_);
    if (!order || !is_new(*order)) continue;
    orders_.push_back(*std::move(order));
    groups_.emplace_back(group);
  }
}

/// The scenario's first.
void OverlapSpace::add_shardings(OverlapScope scope) {
  shardings_.push_back(scenario_.parallel);
  if (scope == OverlapScope::as_given) return;
  const auto add_new = [&](const Parallel& parallel) {
    const auto same = [&](const Parallel& each) { return divides_the_same(each, parallel); };
    if (std::ranges::none_of(shardings_, same)) shardings_.push_back(parallel);
  };
  for (const Overlap& overlap : collective::overlaps())
    if (divides_as(overlap, scenario_.parallel)) add_new(overlap.sharded(scenario_.parallel));
  if (scenario_.parallel.gradient_sync != GradientSync::zero3) return;
  Parallel parallel = scenario_.parallel;
  if (parallel.sharding.regather == Regather::always)
    parallel.sharding.regather = Regather::all_but_last;
  for (const std::optional<int>& layers : {std::optional<int>{}, std::optional<int>{1}}) {
    parallel.sharding.unit_layers = layers;
    add_new(parallel);
  }
}

std::optional<std::size_t> OverlapSpace::add(const VariantPlace& place) {
  Scenario own = scenario_;
  own.parallel = shardings_[place.sharding];
  const bool by_units = place.sums == CopySums::of_units;
  if (by_units && (limits_.of_real_layers || !has_copies(own.parallel))) return std::nullopt;
  if (groups_[place.order]) own.parallel.microbatch_group = groups_[place.order];
  Result<OverlapVariant> made =
      overlap_variant(orders_[place.order], own, arrangement_, place.sums);
  if (!made) {
    if (!why_) why_ = made.refusal();
    return std::nullopt;
  }
  variants_.push_back(*std::move(made));
  places_.push_back(place);
  options_.emplace_back();
  for (const CommunicationClass& each : variants_.back().classes) {
    std::vector<Partition>& of_class = options_.back().emplace_back();
    for (const Partition& option : partition_options(variants_.back(), each))
      if (limits_.allows(option) &&
          (!limits_.of_real_layers || is_computed_by_layers(option, each)))
        of_class.push_back(option);
    if (!limits_.allows(each.tier)) of_class.assign(1, Partition{});
  }
  return variants_.size() - 1;
}

std::optional<std::size_t> OverlapSpace::find_or_add(const VariantPlace& place) {
  const auto found = std::ranges::find(places_, place);
  if (found != places_.end()) return to_size(found - places_.begin());
  return add(place);
}

std::optional<OverlapDecisions> OverlapSpace::in_order(const OverlapDecisions& decisions,
                                                       std::size_t order) {
  VariantPlace place = places_[decisions.variant];
  place.order = order;
  const std::optional<std::size_t> variant = find_or_add(place);
  if (!variant) return std::nullopt;
  OverlapDecisions same = decisions;
  same.variant = *variant;
  same.partitions =
      same_partitions(variants_[*variant], variants_[decisions.variant], decisions.partitions);
  return same;
}

std::vector<Partition> same_partitions(const OverlapVariant& to, const OverlapVariant& from,
                                       const std::vector<Partition>& partitions) {
  std::vector<Partition> same;
  for (const CommunicationClass& each : to.classes) {
    const auto known = std::ranges::find_if(from.classes, [&](const CommunicationClass& other) {
      return are_of_one_kind(each, other);
    });
    const auto c = to_size(known - from.classes.begin());
    same.push_back(c < partitions.size() ? partitions[c] : Partition{});
  }
  return same;
}

OverlapBound OverlapSpace::bound() const {
  return std::ranges::min_element(variants_, {},
                                  [](const OverlapVariant& each) { return each.bound.lower_bound; })
      ->bound;
}

bool divides_as(const Overlap& overlap, const Parallel& parallel) {
  const Parallel own = overlap.sharded(parallel);
  const auto sums_whole = [](GradientSync sync) {
    return sync == GradientSync::all_reduce || divides_optimizer(sync);
  };
  if (sums_whole(parallel.gradient_sync)) return sums_whole(own.gradient_sync);
  return own.gradient_sync == parallel.gradient_sync && own.shard == parallel.shard;
}

}  // namespace longhaul::planner
