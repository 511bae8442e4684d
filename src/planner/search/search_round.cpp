#include "planner/search/search_round.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "planner/search/in_parallel.hpp"

namespace longhaul::planner {
namespace {

using Clock = std::chrono::steady_clock;

SearchProgress by_moves(std::int64_t moves) {
  return [moves](std::int64_t done) {
    return moves > 0 ? static_cast<double>(done) / static_cast<double>(moves) : 1.0;
  };
}

SearchProgress by_time(Clock::duration slice) {
  return [slice, started = Clock::now()](std::int64_t) {
    return std::chrono::duration<double>(Clock::now() - started) /
           std::chrono::duration<double>(slice);
  };
}

/// What SearchOptions::stopped says, asked by one thread at a time and, in a round, no more once it
/// said yes.
class Stop {
public:
  explicit Stop(const std::function<bool()>& stopped) : stopped_{stopped} {}
  [[nodiscard]] bool came() {
    if (!stopped_ || came_) return came_;
    const std::scoped_lock lock{mutex_};
    if (!came_ && stopped_()) came_ = true;
    return came_;
  }

private:
  const std::function<bool()>& stopped_;
  std::mutex mutex_;
  std::atomic<bool> came_ = false;
};

}  // namespace

void run_round(const SearchRound& round, const SearchOptions& options,
               const std::function<void(std::size_t, const SearchProgress&)>& run) {
  const auto searches = static_cast<std::int64_t>(round.searches);
  const std::size_t threads = std::min(round.threads, round.searches);
  const auto left = round.begin + options.time - Clock::now();
  const auto round_time = left / (round.rounds - round.round);
  const auto slice = round_time * static_cast<std::int64_t>(threads) / searches;
  const std::int64_t moves = options.moves.value_or(0) / round.rounds / searches;
  Stop stop{options.stopped};
  const auto until_stopped = [&](const SearchProgress& progress) {
    return [&stop, progress](std::int64_t done) { return stop.came() ? 1.0 : progress(done); };
  };
  in_parallel(round.searches, static_cast<int>(threads), [&](std::size_t i) {
    if (options.moves) return run(i, until_stopped(by_moves(moves)));
    if (slice > Clock::duration::zero()) run(i, until_stopped(by_time(slice)));
  });
}

}  // namespace longhaul::planner
