#include "planner/bounds/one_machine.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <vector>

namespace longhaul::planner {
namespace {

class Machine {
public:
  explicit Machine(std::span<const JobStream> streams)
      : streams_{streams}, next_(streams.size(), 0) {
    for (const JobStream& stream : streams) left_.push_back(stream.length);
    for (std::size_t s = 0; s < streams.size(); ++s) admit(s);
  }

  Duration run() {
    while (!open_.empty() || !coming_.empty()) {
      if (open_.empty()) now_ = std::max(now_, coming_.top().first);
      while (!coming_.empty() && coming_.top().first <= now_) {
        const std::size_t s = coming_.top().second;
        coming_.pop();
        open_.emplace(streams_[s].tail(next_[s]), s);
      }
      run_most_urgent();
    }
    return bound_;
  }

private:
  /// Until it ends, or until another one may start.
  void run_most_urgent() {
    const std::size_t s = open_.top().second;
    Duration until = now_ + left_[s];
    if (!coming_.empty()) until = std::min(until, coming_.top().first);
    left_[s] -= until - now_;
    now_ = until;
    if (left_[s] > Duration::zero()) return;
    bound_ = std::max(bound_, now_ + open_.top().first);
    open_.pop();
    ++next_[s];
    left_[s] = streams_[s].length;
    admit(s);
  }

  void admit(std::size_t s) {
    if (next_[s] == streams_[s].heads.size()) return;
    const Duration head = streams_[s].head(next_[s]);
    if (head > now_) {
      coming_.emplace(head, s);
    } else {
      open_.emplace(streams_[s].tail(next_[s]), s);
    }
  }

  using Entry = std::pair<Duration, std::size_t>;
  std::span<const JobStream> streams_;
  std::vector<std::size_t> next_;
  std::vector<Duration> left_;       ///< of the first open job of each stream
  std::priority_queue<Entry> open_;  ///< by tail
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> coming_;  ///< by head
  Duration now_{};
  Duration bound_{};
};

}  // namespace

Duration one_machine_bound(std::span<const JobStream> streams) { return Machine{streams}.run(); }

}  // namespace longhaul::planner
