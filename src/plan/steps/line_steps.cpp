#include "plan/steps/line_steps.hpp"

#include <algorithm>
#include <bit>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::plan {
namespace {

using Algorithm = CollectiveAlgorithm;

/// Messages between coordinates of a line.
class OnLine {
public:
  OnLine(StepBuilder& to, const StepLine& line) : to_{to}, line_{line} {}
  [[nodiscard]] int size() const { return line_.size(); }
  [[nodiscard]] int wrapped(int coordinate) const { return (coordinate + size()) % size(); }
  /// The items of the coordinates from `first` up to but without `end`.
  void send(int from, int to, int first, int end, int step, StepWaits waits, bool adds) {
    to_.send(line_.members[at(from)], line_.members[at(to)], line_.items_of(first, end), step,
             waits, adds);
  }

private:
  StepBuilder& to_;
  const StepLine& line_;
};

/// The coordinates of the aligned block of `size` that holds `coordinate`: its first.
int block_of(int coordinate, int size) { return coordinate / size * size; }

/// Half of the smallest power of 2 that is not below.
int first_mask(int size) {
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(size))) / 2;
}

}  // namespace

StepLine::Items StepLine::items_of(int first, int end) const {
  if (end - first == 1) return items[at(first)];
  Items all;
  for (int coordinate = first; coordinate < end; ++coordinate)
    all.insert(all.end(), items[at(coordinate)].begin(), items[at(coordinate)].end());
  std::ranges::sort(all, {}, &ItemRange::first);
  Items joined;
  for (const ItemRange& range : all) {
    if (!joined.empty() && joined.back().end() == range.first) {
      joined.back().count += range.count;
    } else {
      joined.push_back(range);
    }
  }
  return joined;
}

void add_all_gather(StepBuilder& to, const StepLine& line, CollectiveAlgorithm algorithm) {
  OnLine on{to, line};
  const int n = on.size();
  if (algorithm == Algorithm::halving) {
    for (int distance = 1, step = 0; distance < n; distance *= 2, ++step)
      for (int i = 0; i < n; ++i) {
        const int first = block_of(i, distance);
        on.send(i, i ^ distance, first, first + distance, step, StepWaits::steps, false);
      }
    return;
  }
  for (int k = 0; k < n - 1; ++k) {
    for (int i = 0; i < n; ++i) {
      const bool ring = algorithm == Algorithm::ring;
      const int shard = ring ? on.wrapped(i - k) : i;
      on.send(i, on.wrapped(ring ? i + 1 : i + 1 + k), shard, shard + 1, k,
              ring ? StepWaits::steps : StepWaits::phase, false);
    }
  }
}

void add_reduce_scatter(StepBuilder& to, const StepLine& line, CollectiveAlgorithm algorithm) {
  OnLine on{to, line};
  const int n = on.size();
  if (algorithm == Algorithm::halving) {
    for (int distance = n / 2, step = 0; distance > 0; distance /= 2, ++step)
      for (int i = 0; i < n; ++i) {
        const int first = block_of(i ^ distance, distance);
        on.send(i, i ^ distance, first, first + distance, step, StepWaits::steps, true);
      }
    return;
  }
  for (int k = 0; k < n - 1; ++k) {
    for (int i = 0; i < n; ++i) {
      const bool ring = algorithm == Algorithm::ring;
      const int receiver = on.wrapped(ring ? i + 1 : i + 1 + k);
      const int shard = ring ? on.wrapped(i - k - 1) : receiver;
      on.send(i, receiver, shard, shard + 1, k, ring ? StepWaits::steps : StepWaits::phase, true);
    }
  }
}

void add_exchange(StepBuilder& to, const StepLine& line) {
  OnLine on{to, line};
  for (int distance = 1, step = 0; distance < on.size(); distance *= 2, ++step)
    for (int i = 0; i < on.size(); ++i)
      on.send(i, i ^ distance, 0, 1, step, StepWaits::steps, true);
}

void add_all_to_all(StepBuilder& to, const StepLine& line, CollectiveAlgorithm algorithm) {
  OnLine on{to, line};
  const int n = on.size();
  for (int k = 0; k < n - 1; ++k) {
    for (int i = 0; i < n; ++i) {
      if (algorithm == Algorithm::direct) {
        const int receiver = on.wrapped(i + 1 + k);
        on.send(i, receiver, i * n + receiver, i * n + receiver + 1, k, StepWaits::phase, false);
        continue;
      }
      // What started k places back and has not arrived: for the next place and those after it.
      const int source = on.wrapped(i - k);
      StepLine::Items items;
      for (int target = i + 1; target < i - k + n; ++target) {
        const auto& more = line.items[at(source * n + on.wrapped(target))];
        items.insert(items.end(), more.begin(), more.end());
      }
      std::ranges::sort(items, {}, &ItemRange::first);
      to.send(line.members[at(i)], line.members[at(on.wrapped(i + 1))], items, k, StepWaits::steps,
              false);
    }
  }
}

void add_broadcast(StepBuilder& to, const StepLine& line, CollectiveAlgorithm algorithm) {
  OnLine on{to, line};
  const int n = on.size();
  if (algorithm == Algorithm::tree) {
    for (int mask = first_mask(n), step = 0; mask > 0; mask /= 2, ++step)
      for (int i = 0; i + mask < n; i += 2 * mask)
        on.send(i, i + mask, 0, 1, step, StepWaits::steps, false);
    return;
  }
  for (int k = 0; k < n - 1; ++k)
    on.send(algorithm == Algorithm::ring ? k : 0, k + 1, 0, 1, k, StepWaits::steps, false);
}

void add_reduce(StepBuilder& to, const StepLine& line, CollectiveAlgorithm algorithm) {
  OnLine on{to, line};
  const int n = on.size();
  if (algorithm == Algorithm::tree) {
    for (int mask = 1, step = 0; mask < n; mask *= 2, ++step)
      for (int i = mask; i < n; i += 2 * mask)
        on.send(i, i - mask, 0, 1, step, StepWaits::steps, true);
    return;
  }
  for (int k = 0; k < n - 1; ++k) {
    const bool ring = algorithm == Algorithm::ring;
    const int i = n - 1 - k;
    on.send(i, ring ? i - 1 : 0, 0, 1, ring ? k : 0, StepWaits::steps, true);
  }
}

void add_gather(StepBuilder& to, const StepLine& line, CollectiveAlgorithm algorithm) {
  OnLine on{to, line};
  const int n = on.size();
  if (algorithm == Algorithm::tree) {
    for (int mask = 1, step = 0; mask < n; mask *= 2, ++step)
      for (int i = mask; i < n; i += 2 * mask)
        on.send(i, i - mask, i, std::min(i + mask, n), step, StepWaits::steps, false);
    return;
  }
  for (int k = 0; k < n - 1; ++k) {
    const bool ring = algorithm == Algorithm::ring;
    const int i = n - 1 - k;
    on.send(i, ring ? i - 1 : 0, i, ring ? n : i + 1, ring ? k : 0, StepWaits::steps, false);
  }
}

void add_scatter(StepBuilder& to, const StepLine& line, CollectiveAlgorithm algorithm) {
  OnLine on{to, line};
  const int n = on.size();
  if (algorithm == Algorithm::tree) {
    for (int mask = first_mask(n), step = 0; mask > 0; mask /= 2, ++step)
      for (int i = 0; i + mask < n; i += 2 * mask)
        on.send(i, i + mask, i + mask, std::min(i + 2 * mask, n), step, StepWaits::steps, false);
    return;
  }
  for (int k = 0; k < n - 1; ++k) {
    const bool ring = algorithm == Algorithm::ring;
    on.send(ring ? k : 0, k + 1, k + 1, ring ? n : k + 2, k, StepWaits::steps, false);
  }
}

std::vector<int> binary_tree(int members, int which) {
  // In order: the lowest set bit of a place is its height, so that odd places are leaves.
  const auto parent = [&](int place) {
    if (place == 0) return -1;
    const int bit = place & -place;
    const int up = (place ^ bit) | (bit << 1);
    return up < members ? up : place ^ bit;
  };
  std::vector<int> parents;
  for (int i = 0; i < members; ++i) {
    if (which == 0) {
      parents.push_back(parent(i));
    } else if (members % 2 == 0) {  // mirrored: even places are leaves
      const int mirrored = parent(members - 1 - i);
      parents.push_back(mirrored < 0 ? -1 : members - 1 - mirrored);
    } else {  // moved by one
      const int moved = parent((i + members - 1) % members);
      parents.push_back(moved < 0 ? -1 : (moved + 1) % members);
    }
  }
  return parents;
}

namespace {

/// By place: the longest way down to a leaf.
std::vector<int> heights_of(const std::vector<int>& parents) {
  std::vector<int> heights(parents.size(), 0);
  for (std::size_t leaf = 0; leaf < parents.size(); ++leaf) {
    int height = 0;
    for (int up = parents[leaf]; up >= 0; up = parents[at(up)])
      heights[at(up)] = std::max(heights[at(up)], ++height);
  }
  return heights;
}

int depth_of(const std::vector<int>& parents, int place) {
  int depth = 0;
  for (int up = parents[at(place)]; up >= 0; up = parents[at(up)]) ++depth;
  return depth;
}

}  // namespace

void add_tree_reduce(StepBuilder& to, const StepLine& line, const std::vector<int>& parents) {
  OnLine on{to, line};
  const std::vector<int> heights = heights_of(parents);
  const int highest = *std::ranges::max_element(heights);
  for (int height = 0; height < highest; ++height)
    for (int i = 0; i < on.size(); ++i)
      if (heights[at(i)] == height && parents[at(i)] >= 0)
        on.send(i, parents[at(i)], 0, 1, height, StepWaits::steps, true);
}

void add_tree_broadcast(StepBuilder& to, const StepLine& line, const std::vector<int>& parents) {
  OnLine on{to, line};
  for (int depth = 0, sent = 1; sent > 0; ++depth) {
    sent = 0;
    for (int i = 0; i < on.size(); ++i) {
      const int parent = parents[at(i)];
      if (parent < 0 || depth_of(parents, parent) != depth) continue;
      on.send(parent, i, 0, 1, depth, StepWaits::steps, false);
      ++sent;
    }
  }
}

}  // namespace longhaul::plan
