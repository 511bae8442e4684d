#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "comm/threads/thread_inbox.hpp"

namespace longhaul::comm {

/// Collectives among threads: the last to come does the work for all, from their buffers into
/// their buffers. Sums are taken in order of the members, so that they are equal bits every time.
class ThreadCollectives {
public:
  struct Member {
    Exchange exchange;
    RequestId request{};
    ThreadInbox* inbox = nullptr;  ///< gets the completion
  };
  /// Identifies a collective: its members' ranks, and its number among theirs.
  using Key = std::pair<std::vector<int>, std::int64_t>;

  /// True for the last, by whom all have completed.
  bool join(const Key& key, CollectiveKind kind, std::size_t place, const Member& member);

private:
  std::mutex mutex_;
  std::map<Key, std::vector<Member>> open_;
};

/// The work of one: `members` in order. bf16 is summed in fp32 and rounded once.
void exchange_among(CollectiveKind kind, std::span<const Exchange> members);

}  // namespace longhaul::comm
