#include "plan/steps/collective.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>

#include "base/index.hpp"

namespace longhaul::plan {
namespace {

using Algorithm = CollectiveAlgorithm;

std::optional<Refusal> why_no_group(const Collective& collective) {
  if (collective.members.empty()) return refused("a collective has no members. Name its group.");
  for (std::size_t i = 1; i < collective.members.size(); ++i) {
    const Rank before = collective.members[i - 1];
    const Rank member = collective.members[i];
    if (member == before)
      return refused("rank {} stands twice in the group. Name each once.", index(member));
    if (member < before)
      return refused("rank {} stands after rank {} in the group. Name them in ascending order.",
                     index(member), index(before));
  }
  return std::nullopt;
}

std::optional<Refusal> why_no_order(const Mesh& mesh) {
  std::vector<int> order = mesh.order;
  std::ranges::sort(order);
  std::vector<int> all(mesh.sizes.size());
  std::iota(all.begin(), all.end(), 0);
  if (order == all) return std::nullopt;
  return refused("the order {} does not name each of the {} dimensions once (0 to {}).",
                 fmt::join(mesh.order, ","), mesh.dimensions(), mesh.dimensions() - 1);
}

std::optional<Refusal> why_no_mesh(const Mesh& mesh, std::size_t members) {
  const std::string text = fmt::format("{}", fmt::join(mesh.sizes, "x"));
  if (std::ranges::any_of(mesh.sizes, [](int size) { return size < 1; }))
    return refused("a mesh of {} has a dimension without members. Give sizes from 1 on.", text);
  std::int64_t places = 1;
  for (const int size : mesh.sizes) {
    places *= size;
    if (places > std::numeric_limits<int>::max())
      return refused(
          "a mesh of {} has more than {} places and the group {} members. Give sizes "
          "whose product is {}.",
          text, std::numeric_limits<int>::max(), members, members);
  }
  if (!std::cmp_equal(places, members))
    return refused(
        "a mesh of {} has {} places and the group {} members. Give sizes whose product is {}.",
        text, places, members, members);
  if (mesh.algorithms.size() != mesh.sizes.size())
    return refused("a mesh of {} has {} dimensions and {} algorithms. Name one for each.", text,
                   mesh.sizes.size(), mesh.algorithms.size());
  return why_no_order(mesh);
}

std::string algorithms_of(CollectiveKind kind, bool flat) {
  std::vector<const char*> names;
  for (const Algorithm each : every<Algorithm>())
    if (has_algorithm(kind, each, flat)) names.push_back(to_string(each));
  if (flat) names.push_back(to_string(Algorithm::hierarchical));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::optional<Refusal> why_not_along(const Collective& collective, const Mesh& mesh,
                                     int dimension) {
  const Algorithm algorithm = mesh.algorithms[at(dimension)];
  const bool flat = mesh.dimensions() == 1;
  if (!has_algorithm(collective.kind, algorithm, flat))
    return refused("{} has no algorithm {}{}. It has {}.", to_text(collective.kind),
                   to_string(algorithm), flat ? "" : " along a dimension of a mesh",
                   algorithms_of(collective.kind, flat));
  const auto size = static_cast<unsigned>(mesh.sizes[at(dimension)]);
  const bool doubles = algorithm == Algorithm::halving || algorithm == Algorithm::exchange;
  if (doubles && !std::has_single_bit(size))
    return refused(
        "{} halves and doubles, and {} members are no power of 2. Use ring or direct, or a mesh.",
        to_string(algorithm), size);
  if (algorithm == Algorithm::exchange && dimension != mesh.order.back())
    return refused(
        "dimension {} is exchanged whole, which comes last, and the order {} goes on after it. "
        "Put it last.",
        dimension, fmt::join(mesh.order, ","));
  return std::nullopt;
}

}  // namespace

int Mesh::members() const {
  return std::accumulate(sizes.begin(), sizes.end(), 1, std::multiplies<>{});
}

int Mesh::stride(int dimension) const {
  return std::accumulate(sizes.begin() + dimension + 1, sizes.end(), 1, std::multiplies<>{});
}

int Mesh::coordinate(int member, int dimension) const {
  return member / stride(dimension) % sizes[at(dimension)];
}

Bytes shard_size(Bytes size, std::int64_t shards, std::int64_t shard) {
  return Bytes{size.count() / shards + (shard < size.count() % shards ? 1 : 0)};
}

Mesh mesh_of(const Collective& collective) {
  if (collective.algorithm == Algorithm::hierarchical) return collective.mesh;
  return {{static_cast<int>(collective.members.size())}, {0}, {collective.algorithm}};
}

bool has_algorithm(CollectiveKind kind, CollectiveAlgorithm algorithm, bool flat) {
  switch (algorithm) {
    case Algorithm::ring:
    case Algorithm::direct: return true;
    case Algorithm::halving:
      return kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter ||
             kind == CollectiveKind::all_reduce;
    case Algorithm::exchange: return kind == CollectiveKind::all_reduce;
    case Algorithm::tree:
      if (kind == CollectiveKind::all_reduce) return flat;
      return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce ||
             kind == CollectiveKind::gather || kind == CollectiveKind::scatter;
    case Algorithm::double_tree:
      return flat && (kind == CollectiveKind::all_reduce || kind == CollectiveKind::broadcast ||
                      kind == CollectiveKind::reduce);
    case Algorithm::hierarchical: return false;
  }
  return false;
}

std::optional<Refusal> why_no_steps(const Collective& collective) {
  if (auto why = why_no_group(collective)) return why;
  const Mesh mesh = mesh_of(collective);
  if (auto why = why_no_mesh(mesh, collective.members.size())) return why;
  for (int dimension = 0; dimension < mesh.dimensions(); ++dimension)
    if (auto why = why_not_along(collective, mesh, dimension)) return why;
  if (collective.size < Bytes{1})
    return refused("a collective of {} bytes has nothing to send. Give a size from 1 byte on.",
                   collective.size.count());
  if (collective.pieces < 1)
    return refused("{} pieces carry nothing. Give 1 or more.", collective.pieces);
  if (collective.pieces > collective.size.count())
    return refused("{} pieces are more than {} bytes. Use fewer pieces.", collective.pieces,
                   collective.size.count());
  return std::nullopt;
}

}  // namespace longhaul::plan
