#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "comm/group/communicator.hpp"
#include "comm/group/host_ranks.hpp"
#include "comm/threads/thread_inbox.hpp"
#include "comm/transport.hpp"

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

/// Between ranks that are threads of one process. A rank that ends another's operation rings its
/// doorbell.
class ThreadTransport final : public Transport {
public:
  /// Collective over `world`, whose ranks are threads.
  ThreadTransport(const Communicator& world, const HostRanks& host_ranks);
  ~ThreadTransport() override;

  [[nodiscard]] Rank self() const override { return host_ranks_.self(); }
  [[nodiscard]] int ranks() const override { return host_ranks_.ranks(); }
  [[nodiscard]] RequestId send(Rank to, int tag, std::span<const std::byte> data) override;
  [[nodiscard]] RequestId receive(Rank from, int tag, std::span<std::byte> buffer) override;
  [[nodiscard]] int tags() const override { return 1 << 30; }
  void ring_doorbell(Rank to) override;
  [[nodiscard]] RequestId collective(CollectiveKind kind, std::span<const Rank> members,
                                     const Exchange& exchange) override;
  void prepare_group(std::span<const Rank> /*members*/) override {}
  void advance(std::vector<Completion>& done) override;
  [[nodiscard]] bool wants_look() const override { return mine().has_completions(); }
  [[nodiscard]] bool wants_polling() const override { return !distant_.empty(); }
  [[nodiscard]] std::int64_t unclaimed() override { return mine().drop_unclaimed(); }

private:
  struct Shared;
  [[nodiscard]] ThreadInbox& inbox(Rank rank) const;
  [[nodiscard]] ThreadInbox& mine() const { return inbox(self()); }
  [[nodiscard]] RequestId next_request(bool is_near);

  const HostRanks& host_ranks_;
  std::shared_ptr<Shared> shared_;
  std::uint32_t requests_ = 0;
  std::map<std::vector<int>, std::int64_t> collectives_;  ///< begun, by members
  std::set<RequestId> distant_;  ///< unfinished, with ranks that no doorbell of ours reaches
};

}  // namespace longhaul::comm
