#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "collective/iteration/iteration_plan.hpp"
#include "collective/overlap/pieces.hpp"

namespace longhaul::testing {

[[nodiscard]] inline std::size_t below(Random& random, std::size_t count) {
  return to_size(random.between(0, static_cast<std::int64_t>(count) - 1));
}

/// Tasks and communications of a stage in a random order in which each comes after what it needs.
/// Ranks that all follow it cannot wait for each other in a circle.
class RandomOrder {
public:
  RandomOrder(collective::StageWork& work, Random& random) : work_{work}, random_{random} {
    const std::size_t operations = work.operations.size();
    awaited_.resize(operations + work.communications.size());
    followers_.resize(awaited_.size());
    for (const collective::OperationId id : work.operations.ids())
      for (const collective::OperationId before : work.operations[id].needs)
        follow(index(before), index(id));
    for (const collective::CommunicationId id : work.communications.ids()) {
      const collective::Communication& each = work.communications[id];
      for (const collective::OperationId before : each.needs)
        follow(index(before), operations + index(id));
      for (const collective::OperationId later : each.needed_by)
        follow(operations + index(id), index(later));
      for (const collective::CommunicationId before : each.follows)
        follow(operations + index(before), operations + index(id));
    }
  }

  /// Orders of operations and of issue, and one of three queues.
  void run() {
    work_.order.clear();
    work_.issue.clear();
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < awaited_.size(); ++i)
      if (awaited_[i] == 0) ready.push_back(i);
    while (!ready.empty()) {
      std::swap(ready[below(random_, ready.size())], ready.back());
      const std::size_t next = ready.back();
      ready.pop_back();
      take(next);
      for (const std::size_t follower : followers_[next])
        if (--awaited_[follower] == 0) ready.push_back(follower);
    }
  }

private:
  void follow(std::size_t before, std::size_t later) {
    followers_[before].push_back(later);
    ++awaited_[later];
  }
  void take(std::size_t node) {
    if (node < work_.operations.size()) {
      work_.order.push_back(collective::OperationId{static_cast<std::uint32_t>(node)});
      return;
    }
    const collective::CommunicationId id{
        static_cast<std::uint32_t>(node - work_.operations.size())};
    work_.communications[id].queue = static_cast<int>(below(random_, 3));
    work_.communications[id].at_start_of = kNone<collective::OperationId>;
    work_.issue.push_back(id);
  }

  collective::StageWork& work_;
  Random& random_;
  std::vector<int> awaited_;
  std::vector<std::vector<std::size_t>> followers_;
};

/// Cuts some communications with their operations into up to `most` pieces, then orders all anew.
inline void shuffle(collective::StageWork& work, int most, Random& random) {
  const auto count = static_cast<std::uint32_t>(work.communications.size());
  for (std::uint32_t c = 0; c < count; ++c) {
    const collective::CommunicationId id{c};
    if (work.communications[id].needed_by.empty() || below(random, 2) == 0) continue;
    collective::cut_with_operation(work, id, 1 + static_cast<int>(below(random, to_size(most))),
                                   {});
  }
  RandomOrder{work, random}.run();
}

}  // namespace longhaul::testing
