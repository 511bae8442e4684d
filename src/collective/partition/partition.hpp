#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/listed_enum.hpp"
#include "base/vocabulary.hpp"
#include "collective/iteration/iteration_plan.hpp"

namespace longhaul::collective {

/// What a collective is replaced by (Centauri, table 2, row by row), or nothing.
#define LONGHAUL_SUBSTITUTIONS(X)                           \
  X(none, "none")                                           \
  X(reduce_and_broadcast, "reduce + broadcast")             \
  X(scatter_and_gather, "reduce-scatter + all-gather")      \
  X(reduce_and_scatter, "reduce + scatter")                 \
  X(reduces_of_distinct_roots, "reduces of distinct roots") \
  X(gather_and_broadcast, "gather + broadcast")             \
  X(broadcasts_of_distinct_roots, "broadcasts of distinct roots")
LONGHAUL_LISTED_ENUM(Substitution, LONGHAUL_SUBSTITUTIONS);

/// The rows of table 2 for a kind, `none` first.
[[nodiscard]] std::vector<Substitution> substitutions_of(CollectiveKind kind);
/// The collectives that follow each other in its place; of distinct roots and of none: the kind
/// itself, whose ring sends the same messages (a chain from each root, or to it).
[[nodiscard]] std::vector<CollectiveKind> kinds_of(Substitution substitution, CollectiveKind kind);

/// Sub-groups of the ranks that hold a copy of the weights, each with a collective of its own:
/// those of a node (near) and those at one place in their nodes (far).
#define LONGHAUL_GROUPINGS(X) X(flat, "flat") X(far_first, "far first") X(near_first, "near first")
LONGHAUL_LISTED_ENUM(Grouping, LONGHAUL_GROUPINGS);

/// How many of those that hold a copy together lie in each node, and in how many nodes.
struct LevelSizes {
  int near = 1, far = 1;
  [[nodiscard]] bool are_two() const { return near > 1 && far > 1; }
};
/// Nothing where nodes hold different numbers of them.
[[nodiscard]] std::optional<LevelSizes> levels_of_shard(const Scenario& scenario, DeviceId stage);

/// How a communication is partitioned: primitive, then group, then workload (Centauri 3.1).
struct Partition {
  Substitution substitution = Substitution::none;
  Grouping grouping = Grouping::flat;  ///< of gathers and scatters of a copy's ranks
  plan::Mesh mesh{};                   ///< of one collective along these levels; empty: a ring
  int shard_pieces = 1;                ///< Communication::pieces, of a mesh
  int pieces = 1;                      ///< of the workload, and of the operations of the chain
  int chain = 1;                       ///< operations that are cut with it
  /// Of a grouped gather, 2 or 3: its user is cut into what sub-groups bring (Algorithm 1, lines 9
  /// to 22) instead of even pieces; into 2: what the first brings, and the rest. 0: it is not.
  int group_parts = 0;
  friend bool operator==(const Partition&, const Partition&) = default;
};
/// "far first, 4 pieces".
[[nodiscard]] std::string to_text(const Partition& partition);

/// Does it say something of such a communication? A grouping needs ranks on two levels.
[[nodiscard]] bool applies_to(const Partition& partition, const Communication& communication,
                              const std::optional<LevelSizes>& levels);

/// Partitions a communication of the work where that applies. Pieces of operations cost
/// `[overlap] split_overhead`. What it moves, who needs it and its place in the order of issue
/// stay.
void partition_communication(const IterationPlan& plan, StageWork& work,
                             CommunicationId communication, const Partition& partition,
                             const std::optional<LevelSizes>& levels);

/// Of hybrid sharding: the sum of a chunk's shards over the copies, which waits for all scatters,
/// becomes one sum for each unit, which waits for those of its unit.
void sum_by_units(StageWork& work);

/// In each block the wgrad of an operator runs ahead of its dgrad, of the units that are chosen:
/// bit i is the i-th from the end of the iteration, bit 31 all further ones.
void put_wgrads_first(StageWork& work, std::uint32_t from_end = 0xffffffff);

}  // namespace longhaul::collective
