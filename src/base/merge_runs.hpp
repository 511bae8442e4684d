#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace longhaul {

/// Sorts items that lie in a few ascending runs, one after the other: it merges them in pairs.
/// Items that are equal keep their order.
template <typename Item, typename Less = std::less<>>
void merge_runs(std::vector<Item>& items, Less less = {}) {
  std::vector<typename std::vector<Item>::iterator> ends{items.begin()};
  while (ends.back() != items.end())
    ends.push_back(std::is_sorted_until(ends.back(), items.end(), less));
  while (ends.size() > 2) {
    std::vector<typename std::vector<Item>::iterator> merged{ends.front()};
    for (std::size_t run = 1; run < ends.size(); run += 2) {
      const auto last = ends[std::min(run + 1, ends.size() - 1)];
      std::inplace_merge(ends[run - 1], ends[run], last, less);
      merged.push_back(last);
    }
    ends = std::move(merged);
  }
}

}  // namespace longhaul
