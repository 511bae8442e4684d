#include "comm/group/thread_group.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>

#include "base/error.hpp"
#include "base/index.hpp"
#include "comm/group/communicator.hpp"

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

/// A thread that changes something wakes the sleepers; they look around now and then all the same,
/// for a watchdog, a signal, or a rank that has failed.
template <typename Done>
void ThreadGroup::wait(std::unique_lock<std::mutex>& lock, const OnWait& on_wait, Done done) {
  using namespace std::chrono_literals;
  const auto begin = std::chrono::steady_clock::now();
  for (auto pause = 1ms; !changed_.wait_for(lock, pause, done); pause = std::min(pause * 2, 8ms)) {
    if (*failed_)
      throw Error{"another rank of this process cannot go on. See its message.",
                  ExitCode::run_failed};
    if (!on_wait) continue;
    lock.unlock();
    on_wait(std::chrono::steady_clock::now() - begin);
    lock.lock();
  }
}

std::shared_ptr<const ThreadGroup::Round> ThreadGroup::exchange(int member, Part mine,
                                                                const OnWait& on_wait) {
  std::unique_lock lock{mutex_};
  if (!round_)
    round_ = std::make_shared<Round>(Round{rounds_++, std::vector<Part>(to_size(size_)), size_});
  const std::shared_ptr<Round> round = round_;
  round->parts[at(member)] = std::move(mine);
  if (--round->missing == 0) {
    round_ = nullptr;  // the next to come begins another one
    changed_.notify_all();
  } else {
    wait(lock, on_wait, [&] { return round->missing == 0; });
  }
  return round;
}

std::shared_ptr<ThreadGroup> ThreadGroup::found(const Key& key, int size) {
  const std::scoped_lock lock{mutex_};
  const auto at = founded_.try_emplace(key).first;
  Founded& founded = at->second;
  if (!founded.group) founded = {std::make_shared<ThreadGroup>(size, failed_), size};
  const std::shared_ptr<ThreadGroup> group = founded.group;
  if (--founded.missing == 0) founded_.erase(at);
  return group;
}

void ThreadGroup::send(int from, int to, std::int64_t word) {
  const std::scoped_lock lock{mutex_};
  words_[{from, to}].push_back(word);
  changed_.notify_all();
}

std::int64_t ThreadGroup::receive(int from, int to) {
  std::unique_lock lock{mutex_};
  std::deque<std::int64_t>& words = words_[{from, to}];  // stays where it is
  wait(lock, {}, [&] { return !words.empty(); });
  const std::int64_t word = words.front();
  words.pop_front();
  return word;
}

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

Communicator Communicator::world() {
  const ThreadRank* const thread = this_thread_rank();
  return Communicator{thread == nullptr ? make_mpi_backend(MPI_COMM_WORLD)
                                        : make_thread_backend(thread->group, thread->rank)};
}

}  // namespace longhaul::comm
