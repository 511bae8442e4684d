#include "comm/group/thread_ranks.hpp"

#include <exception>
#include <thread>

namespace longhaul::comm {
namespace {

thread_local const ThreadRank* current = nullptr;
std::atomic<int> running = 0;

/// The first error of all.
class FirstFailure {
public:
  explicit FirstFailure(std::shared_ptr<RanksFailed> failed) : failed_{std::move(failed)} {}
  void keep() {
    const std::scoped_lock lock{mutex_};
    if (!thrown_) thrown_ = std::current_exception();
    *failed_ = true;
  }
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

private:
  std::shared_ptr<RanksFailed> failed_;
  std::mutex mutex_;
  std::exception_ptr thrown_;
};

}  // namespace

const ThreadRank* this_thread_rank() { return current; }
bool has_thread_ranks() { return running > 0; }

void run_thread_ranks(int ranks, const std::function<void()>& body) {
  const auto failed = std::make_shared<RanksFailed>(false);
  const auto group = std::make_shared<ThreadGroup>(ranks, failed);
  FirstFailure failure{failed};
  const auto play = [&](int rank) {
    const ThreadRank place{group, rank};
    current = &place;
    try {
      body();
    } catch (...) {
      failure.keep();
    }
    current = nullptr;
  };
  running += ranks;
  {
    std::vector<std::jthread> others;
    for (int rank = 1; rank < ranks; ++rank) others.emplace_back(play, rank);
    play(0);
  }
  running -= ranks;
  failure.rethrow();
}

}  // namespace longhaul::comm
