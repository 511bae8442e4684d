#include "comm/group/virtual_time.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::comm {

/// The time as one rank's thread sees it.
class VirtualTime::Clock final : public VirtualClock {
public:
  Clock(VirtualTime& time, std::size_t rank) : time_{time}, rank_{rank} {}
  [[nodiscard]] TimePoint now() const override { return time_.now_; }
  void sleep(const std::atomic<std::uint32_t>& word, std::uint32_t seen, TimePoint until) override {
    time_.sleep(rank_, word, seen, until);
  }
  void add(Arbiter& arbiter) override { time_.arbiters_.push_back(&arbiter); }
  void remove(Arbiter& arbiter) override { std::erase(time_.arbiters_, &arbiter); }

private:
  VirtualTime& time_;
  std::size_t rank_;
};

VirtualTime::VirtualTime(int ranks, TimePoint start, std::uint64_t seed)
    : missing_{to_size(ranks)}, now_{start}, random_{seed}, drawn_{seed != 0} {
  for (std::size_t rank = 0; rank < missing_; ++rank) {
    ranks_.push_back(std::make_unique<RankState>());
    ranks_.back()->clock = std::make_unique<Clock>(*this, rank);
  }
}

VirtualTime::~VirtualTime() = default;

VirtualTime::Member::Member(VirtualTime& time, int rank) : time_{time}, rank_{to_size(rank)} {
  time_.enter(rank_);
  set_virtual_clock(time_.ranks_[rank_]->clock.get());
}

VirtualTime::Member::~Member() {
  set_virtual_clock(nullptr);
  time_.leave(rank_);
}

void VirtualTime::enter(std::size_t rank) {
  std::unique_lock lock{mutex_};
  RankState& state = *ranks_[rank];
  state.here = true;
  state.word = nullptr;
  state.until = now_;
  if (--missing_ == 0) pass_turn();
  wait_for_turn(rank, lock);
}

void VirtualTime::leave(std::size_t rank) {
  const std::scoped_lock lock{mutex_};
  ranks_[rank]->here = false;
  pass_turn();
}

void VirtualTime::sleep(std::size_t rank, const std::atomic<std::uint32_t>& word,
                        std::uint32_t seen, TimePoint until) {
  std::unique_lock lock{mutex_};
  RankState& state = *ranks_[rank];
  state.word = &word;
  state.seen = seen;
  state.until = until;
  pass_turn();
  wait_for_turn(rank, lock);
}

void VirtualTime::wait_for_turn(std::size_t rank, std::unique_lock<std::mutex>& lock) {
  ranks_[rank]->turn.wait(lock, [&] { return running_ == rank; });
}

bool VirtualTime::can_run(const RankState& state) const {
  return state.here &&
         (state.until <= now_ || (state.word != nullptr && state.word->load() != state.seen));
}

/// A rank that can run in this instant; kNoOne: none.
std::size_t VirtualTime::pick() {
  std::vector<std::size_t> able;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (!can_run(*ranks_[rank])) continue;
    if (!drawn_) return rank;
    able.push_back(rank);
  }
  if (able.empty()) return kNoOne;
  return able[to_size(random_.between(0, std::ssize(able) - 1))];
}

/// Lets the arbiter decide whose request is first of all; false: nothing is asked for.
bool VirtualTime::decide() {
  Arbiter* first = nullptr;
  Arbiter::Request earliest;
  for (Arbiter* const arbiter : arbiters_) {
    const auto request = arbiter->first_request();
    if (!request || (first != nullptr && *request >= earliest)) continue;
    first = arbiter;
    earliest = *request;
  }
  if (first != nullptr) first->decide_first();
  return first != nullptr;
}

TimePoint VirtualTime::next_wake_up() const {
  TimePoint next = kNever;
  for (const auto& state : ranks_)
    if (state->here) next = std::min(next, state->until);
  return next;
}

void VirtualTime::pass_turn() {
  running_ = kNoOne;
  if (std::ranges::none_of(ranks_, [](const auto& state) { return state->here; })) return;
  while (running_ == kNoOne) {
    running_ = pick();
    if (running_ != kNoOne || decide()) continue;
    const TimePoint next = next_wake_up();
    LONGHAUL_ASSERT(next != kNever, "no rank can go on at {} ns", now_.count());
    now_ = next;
  }
  ++turns_;
  ranks_[running_]->turn.notify_one();
}

}  // namespace longhaul::comm
