#include "comm/group/host_ranks.hpp"

#include <ctime>
#include <new>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::comm {
namespace {

/// The report's claim lies before the slots, on a line of its own.
constexpr std::size_t kSlotsAt = alignof(RankStatus);

std::uint32_t* word_of(std::atomic<std::uint32_t>& value) {
  static_assert(sizeof(value) == sizeof(std::uint32_t));
  return reinterpret_cast<std::uint32_t*>(&value);
}

void futex_wake(std::atomic<std::uint32_t>& value) {
  syscall(SYS_futex, word_of(value), FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

/// Absolute time on CLOCK_MONOTONIC.
void futex_wait(std::atomic<std::uint32_t>& value, std::uint32_t seen, TimePoint until) {
  timespec stamp{};
  stamp.tv_sec = until.count() / 1'000'000'000;
  stamp.tv_nsec = until.count() % 1'000'000'000;
  syscall(SYS_futex, word_of(value), FUTEX_WAIT_BITSET, seen, until == kNever ? nullptr : &stamp,
          nullptr, FUTEX_BITSET_MATCH_ANY);
}

}  // namespace

HostRanks::HostRanks(const Communicator& world, int ranks_per_host)
    : host_{ranks_per_host > 0 ? world.split(world.rank() / ranks_per_host, world.rank())
                               : world.split_by_host()},
      self_{world.rank()},
      local_of_(to_size(world.size()), -1),
      memory_{host_, kSlotsAt + sizeof(RankStatus) * to_size(host_.size())} {
  const auto members = host_.all_gather(world.rank());
  for (std::size_t i = 0; i < members.size(); ++i) {
    local_of_[at(members[i])] = static_cast<int>(i);
    local_.push_back(Rank{static_cast<std::int32_t>(members[i])});
  }
  for (const std::int64_t lowest : world.all_gather(members.front()))
    host_of_.push_back(Rank{static_cast<std::int32_t>(lowest)});
  // Zeroed memory is every atomic's initial value here.
  reporter_ = reinterpret_cast<std::atomic<std::uint32_t>*>(memory_.data());
  slots_ = reinterpret_cast<RankStatus*>(memory_.data() + kSlotsAt);
  RankStatus& slot = mine();
  slot.pid = getpid();
  slot.rank = static_cast<std::int32_t>(self_);
  slot.progress = now().count();
  slot.last_op = slot.waits_for = static_cast<std::uint32_t>(kNone<OpId>);
  host_.barrier();
}

void HostRanks::ring_doorbell(Rank rank) const {
  if (!is_local(rank)) return;
  RankStatus& other = slot(rank);
  other.doorbell.fetch_add(1);
  if (other.asleep.load() != 0) futex_wake(other.doorbell);
}

void HostRanks::alert(Rank rank) const {
  if (!is_local(rank)) return;
  slot(rank).alerts.fetch_add(1);
  ring_doorbell(rank);
}

void HostRanks::ring_doorbell_if_sending(Rank rank) const {
  if (is_local(rank) && slot(rank).unfinished_sends.load() != 0) ring_doorbell(rank);
}

std::uint32_t HostRanks::doorbell() const { return mine().doorbell.load(); }

void HostRanks::sleep(std::uint32_t seen, TimePoint until) const {
  RankStatus& slot = mine();
  if (VirtualClock* const clock = virtual_clock()) return clock->sleep(slot.doorbell, seen, until);
  slot.asleep.store(1);
  futex_wait(slot.doorbell, seen, until);
  slot.asleep.store(0);
}

bool HostRanks::claim_report() const {
  std::uint32_t unclaimed = 0;
  return reporter_->compare_exchange_strong(unclaimed, 1);
}

}  // namespace longhaul::comm
