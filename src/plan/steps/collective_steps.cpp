#include "plan/steps/collective_steps.hpp"

#include <algorithm>
#include <functional>
#include <ranges>

#include "base/error.hpp"
#include "base/index.hpp"
#include "plan/steps/line_steps.hpp"

namespace longhaul::plan {
namespace {

using Algorithm = CollectiveAlgorithm;
using Items = StepLine::Items;

/// Coordinates of members; along a free dimension all of them are meant.
constexpr int kFree = -1;
using Coordinates = std::vector<int>;

/// The members at these coordinates, from `first` on along the dimensions from `dimension` on.
void append_places(const Mesh& mesh, const Coordinates& where, int dimension, std::uint32_t first,
                   Items& to) {
  const bool all = std::ranges::all_of(where.begin() + dimension, where.end(),
                                       [](int coordinate) { return coordinate == kFree; });
  const auto stride = [&](int of) { return static_cast<std::uint32_t>(mesh.stride(of)); };
  if (all) {
    const std::uint32_t count =
        dimension == 0 ? static_cast<std::uint32_t>(mesh.members()) : stride(dimension - 1);
    if (!to.empty() && to.back().end() == first) {
      to.back().count += count;
    } else {
      to.push_back({first, count});
    }
    return;
  }
  const int fixed = where[at(dimension)];
  const int begin = fixed == kFree ? 0 : fixed;
  const int end = fixed == kFree ? mesh.sizes[at(dimension)] : fixed + 1;
  for (int coordinate = begin; coordinate < end; ++coordinate)
    append_places(mesh, where, dimension + 1,
                  first + static_cast<std::uint32_t>(coordinate) * stride(dimension), to);
}

Items places(const Mesh& mesh, const Coordinates& where) {
  Items items;
  append_places(mesh, where, 0, 0, items);
  return items;
}

/// The phases of a collective, one after another along the dimensions of its mesh.
class MeshSteps {
public:
  MeshSteps(CollectiveSteps& steps, const Collective& collective)
      : collective_{collective},
        mesh_{mesh_of(collective)},
        to_{steps, collective.size},
        done_(mesh_.sizes.size(), false) {}

  void add_piece(int piece) {
    if (mesh_.dimensions() == 1 && mesh_.algorithms.front() == Algorithm::double_tree)
      return add_two_trees(piece);
    to_.begin_stream(piece);
    if (collective_.kind == CollectiveKind::all_reduce) return add_all_reduce();
    done_.assign(done_.size(), false);
    for (const int dimension : mesh_.order) {
      add_phase(dimension);
      done_[at(dimension)] = true;
    }
  }

private:
  using AddLine = std::function<void(const StepLine&)>;

  /// Each line along the dimension; `items` says what goes with a coordinate of the line of
  /// `member`.
  template <typename ItemsOf, typename Add>
  void add_lines(int dimension, const ItemsOf& items_of, const Add& add) {
    to_.begin_phase();
    for (int member = 0; member < mesh_.members(); ++member) {
      if (mesh_.coordinate(member, dimension) != 0 || !takes_part(member, dimension)) continue;
      StepLine line;
      for (int i = 0; i < mesh_.sizes[at(dimension)]; ++i)
        line.members.push_back(member + i * mesh_.stride(dimension));
      line.items = items_of(member);
      add(line);
    }
  }

  /// Where data comes from one member or goes to one, lines take part that it has reached, or that
  /// still have some.
  [[nodiscard]] bool takes_part(int member, int dimension) const {
    const auto zero = [&](bool done) {
      for (int other = 0; other < mesh_.dimensions(); ++other)
        if (other != dimension && done_[at(other)] == done && mesh_.coordinate(member, other) != 0)
          return false;
      return true;
    };
    switch (collective_.kind) {
      case CollectiveKind::broadcast:
      case CollectiveKind::scatter: return zero(false);
      case CollectiveKind::reduce:
      case CollectiveKind::gather: return zero(true);
      default: return true;
    }
  }

  /// The coordinates of `member`; free along the dimensions that are done, or that are not.
  [[nodiscard]] Coordinates place_of(int member, bool done_is_free) const {
    Coordinates where;
    for (int dimension = 0; dimension < mesh_.dimensions(); ++dimension)
      where.push_back(done_[at(dimension)] == done_is_free ? kFree
                                                           : mesh_.coordinate(member, dimension));
    return where;
  }

  /// By coordinate of the line of `member` along `dimension`.
  [[nodiscard]] std::vector<Items> items_along(int member, int dimension, bool done_is_free) const {
    std::vector<Items> items;
    Coordinates where = place_of(member, done_is_free);
    for (int i = 0; i < mesh_.sizes[at(dimension)]; ++i) {
      where[at(dimension)] = i;
      items.push_back(places(mesh_, where));
    }
    return items;
  }

  /// Of an all-to-all, by coordinates of source and destination: those that come from members
  /// elsewhere along done dimensions and go on along the others.
  [[nodiscard]] std::vector<Items> items_between(int member, int dimension) const {
    const std::vector<Items> sources = items_along(member, dimension, true);
    const std::vector<Items> targets = items_along(member, dimension, false);
    const auto row = static_cast<std::uint32_t>(mesh_.members());
    std::vector<Items> items;
    for (const Items& source : sources) {
      for (const Items& target : targets) {
        items.emplace_back();
        for (const ItemRange& from : source)
          for (std::uint32_t s = from.first; s < from.end(); ++s)
            for (const ItemRange& range : target)
              items.back().push_back({s * row + range.first, range.count});
      }
    }
    return items;
  }

  [[nodiscard]] std::vector<Items> whole() const {
    return {Items{{0, static_cast<std::uint32_t>(mesh_.members())}}};
  }

  /// Along one dimension, the dimensions before it being done.
  void add_phase(int dimension) {
    const Algorithm algorithm = mesh_.algorithms[at(dimension)];
    const auto brought = [&](int member) { return items_along(member, dimension, true); };
    const auto wanted = [&](int member) { return items_along(member, dimension, false); };
    const auto all = [&](int) { return whole(); };
    switch (collective_.kind) {
      case CollectiveKind::all_gather:
        return add_lines(dimension, brought, [&](const StepLine& line) {
          longhaul::plan::add_all_gather(to_, line, algorithm);
        });
      case CollectiveKind::reduce_scatter:
        return add_lines(dimension, wanted,
                         [&](const StepLine& line) { add_reduce_scatter(to_, line, algorithm); });
      case CollectiveKind::all_to_all:
        return add_lines(
            dimension, [&](int member) { return items_between(member, dimension); },
            [&](const StepLine& line) { add_all_to_all(to_, line, algorithm); });
      case CollectiveKind::broadcast:
        return add_lines(dimension, all,
                         [&](const StepLine& line) { add_broadcast(to_, line, algorithm); });
      case CollectiveKind::reduce:
        return add_lines(dimension, all,
                         [&](const StepLine& line) { add_reduce(to_, line, algorithm); });
      case CollectiveKind::gather:
        return add_lines(dimension, brought,
                         [&](const StepLine& line) { add_gather(to_, line, algorithm); });
      case CollectiveKind::scatter:
        return add_lines(dimension, wanted,
                         [&](const StepLine& line) { add_scatter(to_, line, algorithm); });
      case CollectiveKind::all_reduce: return;
    }
  }

  /// Scatters sums in the order of dimensions and gathers them in reverse; what is exchanged whole
  /// comes between.
  void add_all_reduce() {
    if (mesh_.dimensions() == 1 && mesh_.algorithms.front() == Algorithm::tree) {
      const auto all = [&](int) { return whole(); };
      add_lines(0, all, [&](const StepLine& line) { add_reduce(to_, line, Algorithm::tree); });
      add_lines(0, all, [&](const StepLine& line) { add_broadcast(to_, line, Algorithm::tree); });
      return;
    }
    done_.assign(done_.size(), false);
    for (const int dimension : mesh_.order) {
      const Algorithm algorithm = mesh_.algorithms[at(dimension)];
      if (algorithm == Algorithm::exchange) {
        const auto held = [&](int member) {
          return std::vector<Items>{places(mesh_, place_of(member, false))};
        };
        add_lines(dimension, held, [&](const StepLine& line) { add_exchange(to_, line); });
        continue;
      }
      const auto wanted = [&](int member) { return items_along(member, dimension, false); };
      add_lines(dimension, wanted,
                [&](const StepLine& line) { add_reduce_scatter(to_, line, algorithm); });
      done_[at(dimension)] = true;
    }
    for (const int dimension : std::views::reverse(mesh_.order)) {
      const Algorithm algorithm = mesh_.algorithms[at(dimension)];
      if (algorithm == Algorithm::exchange) continue;
      // Still scattered along the dimensions before it, whole again along those after it.
      done_[at(dimension)] = false;
      const auto brought = [&](int member) { return items_along(member, dimension, false); };
      add_lines(dimension, brought,
                [&](const StepLine& line) { add_all_gather(to_, line, algorithm); });
    }
  }

  /// Each tree carries one half of the shards.
  void add_two_trees(int piece) {
    const int n = mesh_.members();
    const auto items = static_cast<std::uint32_t>(n);
    const std::uint32_t half = (items + 1) / 2;
    for (int which = 0; which < 2 && n > 1; ++which) {
      to_.begin_stream(piece, which);
      StepLine line;
      const Items part{which == 0 ? ItemRange{0, half} : ItemRange{half, items - half}};
      line.items = {part};
      const bool from_one = collective_.kind != CollectiveKind::all_reduce;
      for (int i = from_one ? 1 : 0; i < n; ++i) line.members.push_back(i);
      const std::vector<int> parents = binary_tree(line.size(), which);
      const int root = line.members[at(std::ranges::find(parents, -1) - parents.begin())];
      to_.begin_phase();
      if (collective_.kind == CollectiveKind::broadcast) {
        to_.send(0, root, part, 0, StepWaits::steps, false);
        to_.begin_phase();
      } else {
        add_tree_reduce(to_, line, parents);
        to_.begin_phase();
      }
      if (collective_.kind == CollectiveKind::reduce) {
        to_.send(root, 0, part, 0, StepWaits::steps, true);
      } else {
        add_tree_broadcast(to_, line, parents);
      }
    }
  }

  const Collective& collective_;
  Mesh mesh_;
  StepBuilder to_;
  std::vector<bool> done_;  ///< by dimension
};

}  // namespace

CollectiveSteps steps_of(const Collective& collective) {
  if (const auto why = why_no_steps(collective))
    LONGHAUL_ASSERT(false, "a collective that has no steps: {}", why->reason);
  CollectiveSteps steps;
  steps.kind = collective.kind;
  steps.members = static_cast<int>(collective.members.size());
  steps.pieces = collective.pieces;
  MeshSteps mesh{steps, collective};
  for (int piece = 0; piece < collective.pieces; ++piece) mesh.add_piece(piece);
  return steps;
}

bool brings(const CollectiveSteps& steps, int member, std::uint32_t item) {
  const CollectiveFacts& facts = facts_of(steps.kind);
  if (facts.merging == Merging::sum) return true;
  if (facts.merging == Merging::transposed) return static_cast<int>(item) / steps.members == member;
  return facts.brings == Portion::share ? static_cast<int>(item) == member : member == 0;
}

bool gets(const CollectiveSteps& steps, int member, std::uint32_t item) {
  const CollectiveFacts& facts = facts_of(steps.kind);
  if (facts.merging == Merging::transposed) return static_cast<int>(item) % steps.members == member;
  if (facts.gets == Portion::share) return static_cast<int>(item) == member;
  return facts.gets == Portion::whole || member == 0;
}

}  // namespace longhaul::plan
