#include <algorithm>
#include <numeric>
#include <optional>

#include "base/index.hpp"
#include "planner/collectives/collective_times.hpp"

namespace longhaul::planner {
namespace {

using plan::Collective;
using plan::CollectiveAlgorithm;

constexpr int kMostDimensions = 3;
/// The shapes that are tried in pieces, besides every algorithm.
constexpr std::size_t kInPieces = 6;
/// In pieces that make more messages than this the search does not look.
constexpr std::size_t kMostSearched = 400'000;

/// All ways to write `members` as a product of `dimensions` sizes of 2 or more, in order.
void append_sizes(int members, int dimensions, std::vector<int>& sizes,
                  std::vector<std::vector<int>>& to) {
  if (dimensions == 1) {
    if (members < 2) return;
    sizes.push_back(members);
    to.push_back(sizes);
    sizes.pop_back();
    return;
  }
  for (int size = 2; size < members; ++size) {
    if (members % size != 0) continue;
    sizes.push_back(size);
    append_sizes(members / size, dimensions - 1, sizes, to);
    sizes.pop_back();
  }
}

class CollectiveSearch {
public:
  CollectiveSearch(const Collective& collective, const Scenario& scenario)
      : collective_{collective}, scenario_{scenario} {}

  Result<CollectiveTime> run() {
    for (Collective each : every_algorithm(collective_, scenario_)) {
      each.pieces = 1;
      try_one(each);
    }
    if (found_.empty()) return *why_none_;
    std::vector<CollectiveTime> in_pieces = found_;
    try_meshes();
    std::ranges::stable_sort(found_, {}, &CollectiveTime::duration);
    for (std::size_t i = 0; i < found_.size() && i < kInPieces; ++i) in_pieces.push_back(found_[i]);
    std::ranges::stable_sort(in_pieces, {}, &CollectiveTime::duration);
    for (const CollectiveTime& each : in_pieces) try_pieces(each);
    return best();
  }

private:
  [[nodiscard]] const CollectiveTime& best() const {
    return *std::ranges::min_element(found_, {}, &CollectiveTime::duration);
  }

  /// Its time; none: it cannot be made so.
  std::optional<Duration> try_one(const Collective& collective) {
    Result<CollectiveTime> played = play_collective(collective, scenario_);
    if (!played) {
      if (!why_none_) why_none_ = played.refusal();
      return std::nullopt;
    }
    found_.push_back(*std::move(played));
    return found_.back().duration;
  }

  void try_meshes() {
    const auto members = static_cast<int>(collective_.members.size());
    std::vector<std::vector<int>> meshes;
    std::vector<int> sizes;
    for (int dimensions = 2; dimensions <= kMostDimensions; ++dimensions)
      append_sizes(members, dimensions, sizes, meshes);
    for (const auto& mesh : meshes) {
      std::vector<int> order(mesh.size());
      std::iota(order.begin(), order.end(), 0);
      do try_along(mesh, order);
      while (std::ranges::next_permutation(order).found);
    }
  }

  /// Every algorithm along each dimension.
  void try_along(const std::vector<int>& sizes, const std::vector<int>& order) {
    Collective each = collective_;
    each.pieces = 1;
    each.algorithm = CollectiveAlgorithm::hierarchical;
    std::size_t combinations = 1;
    for (std::size_t i = 0; i < sizes.size(); ++i) combinations *= kCountOf<CollectiveAlgorithm>;
    for (std::size_t k = 0; k < combinations; ++k) {
      std::size_t rest = k;
      each.mesh = {sizes, order, {}};
      for (std::size_t i = 0; i < sizes.size(); ++i, rest /= kCountOf<CollectiveAlgorithm>)
        each.mesh.algorithms.push_back(
            static_cast<CollectiveAlgorithm>(rest % kCountOf<CollectiveAlgorithm>));
      if (!says_the_same(each.mesh) && !plan::why_no_steps(each)) try_one(each);
    }
  }

  /// Between two members a ring, halving, direct messages and a tree are one.
  [[nodiscard]] static bool says_the_same(const plan::Mesh& mesh) {
    for (int d = 0; d < mesh.dimensions(); ++d)
      if (mesh.sizes[at(d)] == 2 && mesh.algorithms[at(d)] != CollectiveAlgorithm::ring &&
          mesh.algorithms[at(d)] != CollectiveAlgorithm::exchange)
        return true;
    return false;
  }

  /// 2, 4 and 8, and twice as many as long as they gain a thousandth. Pieces change no resource's
  /// work: a collective of more work than the best takes cannot become better.
  void try_pieces(const CollectiveTime& whole) {
    if (whole.least >= best().duration) return;
    constexpr int kAlways = 8;
    Duration before = whole.duration;
    Collective each = whole.collective;
    for (each.pieces = 2; each.pieces <= collective_.size.count(); each.pieces *= 2) {
      if (whole.messages * to_size(each.pieces) > kMostSearched) return;
      const std::optional<Duration> duration = try_one(each);
      if (!duration || (each.pieces > kAlways && *duration > before - before / 1000)) return;
      before = std::min(before, *duration);
    }
  }

  const Collective& collective_;
  const Scenario& scenario_;
  std::vector<CollectiveTime> found_;
  std::optional<Refusal> why_none_;
};

}  // namespace

Result<CollectiveTime> best_collective(const Collective& collective, const Scenario& scenario) {
  Collective flat = collective;
  flat.algorithm = CollectiveAlgorithm::ring;
  flat.mesh = {};
  flat.pieces = 1;
  if (auto why = plan::why_no_steps(flat)) return *std::move(why);
  return CollectiveSearch{flat, scenario}.run();
}

}  // namespace longhaul::planner
