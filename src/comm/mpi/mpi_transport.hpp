#pragma once

#include <map>
#include <memory>

#include "comm/group/communicator.hpp"
#include "comm/group/host_ranks.hpp"
#include "comm/mpi/types.hpp"
#include "comm/transport.hpp"

namespace longhaul::comm {

/// Point-to-point and collectives over MPI. Between ranks of one host, doorbells spare the polling;
/// with ranks elsewhere, something expected from them means polling.
class MpiTransport final : public Transport {
public:
  /// Collective over `world`. Messages of more than `largest` bytes are told to MPI as several
  /// blocks of so many: it counts with an int.
  MpiTransport(const Communicator& world, const HostRanks& host_ranks,
               std::size_t largest = std::size_t{1} << 30U);
  ~MpiTransport() override;

  [[nodiscard]] Rank self() const override { return host_ranks_.self(); }
  [[nodiscard]] int ranks() const override { return host_ranks_.ranks(); }
  [[nodiscard]] RequestId send(Rank to, int tag, std::span<const std::byte> data) override;
  [[nodiscard]] RequestId receive(Rank from, int tag, std::span<std::byte> buffer) override;
  [[nodiscard]] int tags() const override { return tags_; }
  void ring_doorbell(Rank to) override { host_ranks_.ring_doorbell(to); }
  [[nodiscard]] RequestId collective(CollectiveKind kind, std::span<const Rank> members,
                                     const Exchange& exchange) override;
  void prepare_group(std::span<const Rank> members) override;
  void advance(std::vector<Completion>& done) override;
  [[nodiscard]] bool wants_look() const override { return posted_; }
  [[nodiscard]] bool wants_polling() const override;
  [[nodiscard]] std::int64_t unclaimed() override;

private:
  enum class Kind : std::uint8_t { send, receive, collective };
  struct Pending {
    RequestId id;
    Kind kind;
    Rank peer;
    std::shared_ptr<mpi::Widened> sum{};  ///< of bf16
  };

  RequestId add(MPI_Request request, Kind kind, Rank peer, std::shared_ptr<mpi::Widened> sum = {});
  void count(const Pending& pending, int change);
  bool test_once(std::vector<Completion>& done);
  const Communicator& group(std::span<const Rank> members);

  Communicator comm_;
  const HostRanks& host_ranks_;
  int tags_ = 0;
  std::size_t largest_;
  std::uint32_t next_id_ = 0;
  std::vector<MPI_Request> requests_;  ///< side by side with pending_
  std::vector<Pending> pending_;
  std::vector<int> completed_;
  std::vector<MPI_Status> statuses_;
  bool posted_ = false;  ///< a receive, since the last look
  int sends_ = 0, collectives_ = 0, remote_receives_ = 0;
  std::map<std::vector<int>, Communicator> groups_;
};

}  // namespace longhaul::comm
