#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "comm/group/board.hpp"
#include "comm/group/communicator.hpp"
#include "comm/threads/thread_collectives.hpp"
#include "comm/threads/thread_inbox.hpp"
#include "comm/transport.hpp"

namespace longhaul {

/// Between ranks that are threads of one process. Whoever ends another's operation rings it.
class ThreadTransport final : public Transport {
public:
  /// Collective over `world`, whose ranks are threads.
  ThreadTransport(const mpi::Communicator& world, const Board& board);
  ~ThreadTransport() override;

  [[nodiscard]] Rank self() const override { return board_.self(); }
  [[nodiscard]] int ranks() const override { return board_.ranks(); }
  [[nodiscard]] Ticket send(Rank to, int tag, std::span<const std::byte> data) override;
  [[nodiscard]] Ticket receive(Rank from, int tag, std::span<std::byte> buffer) override;
  [[nodiscard]] int tags() const override { return 1 << 30; }
  void ring(Rank to) override { board_.ring(to); }
  [[nodiscard]] Ticket collective(CollectiveKind kind, std::span<const Rank> members,
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
  [[nodiscard]] Ticket next_ticket(bool is_near);

  const Board& board_;
  std::shared_ptr<Shared> shared_;
  std::uint32_t tickets_ = 0;
  std::map<std::vector<int>, std::int64_t> collectives_;  ///< begun, by members
  std::set<Ticket> distant_;  ///< unfinished, with ranks that no bell of ours reaches
};

}  // namespace longhaul
