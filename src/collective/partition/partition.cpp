#include "collective/partition/partition.hpp"

#include <algorithm>

#include "collective/iteration/lower_iteration.hpp"

namespace longhaul::collective {

std::vector<Substitution> substitutions_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return {Substitution::none, Substitution::reduce_and_broadcast,
              Substitution::scatter_and_gather};
    case CollectiveKind::reduce_scatter:
      return {Substitution::none, Substitution::reduce_and_scatter,
              Substitution::reduces_of_distinct_roots};
    case CollectiveKind::all_gather:
      return {Substitution::none, Substitution::gather_and_broadcast,
              Substitution::broadcasts_of_distinct_roots};
    default: return {Substitution::none};
  }
}

std::vector<CollectiveKind> kinds_of(Substitution substitution, CollectiveKind kind) {
  switch (substitution) {
    case Substitution::reduce_and_broadcast:
      return {CollectiveKind::reduce, CollectiveKind::broadcast};
    case Substitution::scatter_and_gather:
      return {CollectiveKind::reduce_scatter, CollectiveKind::all_gather};
    case Substitution::reduce_and_scatter: return {CollectiveKind::reduce, CollectiveKind::scatter};
    case Substitution::gather_and_broadcast:
      return {CollectiveKind::gather, CollectiveKind::broadcast};
    case Substitution::none:
    case Substitution::reduces_of_distinct_roots:
    case Substitution::broadcasts_of_distinct_roots: return {kind};
  }
  return {kind};
}

std::optional<LevelSizes> levels_of_shard(const Scenario& scenario, DeviceId stage) {
  if (scenario.parallel.gradient_sync != GradientSync::zero3) return std::nullopt;
  const auto across = groups_of(scenario, stage, Members::across);
  if (across.empty()) return std::nullopt;
  const auto far = static_cast<int>(across.front().size());
  return LevelSizes{scenario.parallel.shard / far, far};
}

std::string to_text(const Partition& partition) {
  std::vector<std::string> parts;
  if (partition.substitution != Substitution::none)
    parts.emplace_back(to_string(partition.substitution));
  if (partition.grouping != Grouping::flat) parts.emplace_back(to_string(partition.grouping));
  if (!partition.mesh.sizes.empty())
    parts.push_back(fmt::format("mesh {}", fmt::join(partition.mesh.sizes, "x")));
  if (partition.shard_pieces > 1)
    parts.push_back(fmt::format("shards in {}", partition.shard_pieces));
  if (partition.group_parts > 0)
    parts.push_back(fmt::format("its user in {} by group", partition.group_parts));
  if (partition.pieces > 1) parts.push_back(fmt::format("{} pieces", partition.pieces));
  if (partition.chain > 1) parts.push_back(fmt::format("of {} operators", partition.chain));
  return parts.empty() ? "whole" : fmt::format("{}", fmt::join(parts, ", "));
}

bool applies_to(const Partition& partition, const Communication& communication,
                const std::optional<LevelSizes>& levels) {
  const bool of_shard = communication.members == Members::shard;
  const bool is_gather = communication.kind == CollectiveKind::all_gather;
  const bool is_grouped = partition.grouping != Grouping::flat;
  if (is_grouped && (!of_shard || !levels || !levels->are_two())) return false;
  // A scatter's far ranks have less to send when the near ones have summed.
  if (partition.grouping == Grouping::far_first && !is_gather) return false;
  if (partition.group_parts > 0 && (!is_grouped || !is_gather || partition.pieces > 1))
    return false;
  if (is_gather ? partition.pieces > 1 && communication.needed_by.empty()
                : partition.pieces > 1 && communication.needs.empty())
    return false;
  const std::vector<Substitution> rows = substitutions_of(communication.kind);
  return std::ranges::find(rows, partition.substitution) != rows.end();
}

}  // namespace longhaul::collective
