#pragma once

#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "base/listed_enum.hpp"
#include "base/result.hpp"
#include "base/units.hpp"
#include "base/vocabulary.hpp"

namespace longhaul::plan {

/// How a collective is made of messages. docs/collectives.md has each of them with its times.
///  - ring: each member sends to the next one.
///  - halving: recursive halving of what is scattered, recursive doubling of what is gathered.
///  - exchange: recursive doubling of the whole vector.
///  - direct: each member sends to every other one what that one is to have.
///  - tree: a binomial tree; double-tree: two binary trees, each for one half.
///  - hierarchical: the members as a mesh, an algorithm of its own along each dimension.
#define LONGHAUL_COLLECTIVE_ALGORITHMS(X) \
  X(ring, "ring")                         \
  X(halving, "halving")                   \
  X(exchange, "exchange")                 \
  X(direct, "direct")                     \
  X(tree, "tree") X(double_tree, "double-tree") X(hierarchical, "hierarchical")
LONGHAUL_LISTED_ENUM(CollectiveAlgorithm, LONGHAUL_COLLECTIVE_ALGORITHMS);

/// The members of a collective as the points of a mesh, the last dimension fastest: member m of
/// 2 x 8 lies at (m / 8, m mod 8).
struct Mesh {
  std::vector<int> sizes;  ///< of each dimension
  /// Dimensions, each once, in the order in which data is gathered or scattered along them; an
  /// all-reduce scatters in this order and gathers in reverse.
  std::vector<int> order;
  std::vector<CollectiveAlgorithm> algorithms;  ///< along each dimension

  [[nodiscard]] int dimensions() const { return static_cast<int>(sizes.size()); }
  [[nodiscard]] int members() const;
  /// The distance of members that are neighbours along the dimension.
  [[nodiscard]] int stride(int dimension) const;
  [[nodiscard]] int coordinate(int member, int dimension) const;
  friend bool operator==(const Mesh&, const Mesh&) = default;
};

/// A collective over a group and the way in which it is made of messages. Where data comes from or
/// goes to one member, this is the first.
///
///     Collective gather{CollectiveKind::all_gather, {Rank{0}, Rank{1}, Rank{2}, Rank{3}}, 4_MiB};
///     const CollectiveSteps steps = steps_of(gather);
struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::vector<Rank> members;  ///< ascending, each once
  /// Of the whole vector: all that is gathered, what each member brings to a reduction, what the
  /// first member has to broadcast or scatter, what each member hands out in an all-to-all.
  Bytes size;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  Mesh mesh{};     ///< of a hierarchical one; otherwise empty
  int pieces = 1;  ///< of each shard, that travel one after the other through the levels
};

/// Bytes of shard `shard` of `shards`: size / shards, one more for the first ones that are left.
[[nodiscard]] Bytes shard_size(Bytes size, std::int64_t shards, std::int64_t shard);

/// The mesh along which it goes: its own, or one of a single dimension.
[[nodiscard]] Mesh mesh_of(const Collective& collective);

/// Why it cannot be made: a mesh of another size, halving of 6 members, more pieces than bytes, an
/// algorithm that the kind does not have.
[[nodiscard]] std::optional<Refusal> why_no_steps(const Collective& collective);

/// Can the kind be made so along one dimension of a mesh (flat: of its only one)?
[[nodiscard]] bool has_algorithm(CollectiveKind kind, CollectiveAlgorithm algorithm, bool flat);

}  // namespace longhaul::plan
