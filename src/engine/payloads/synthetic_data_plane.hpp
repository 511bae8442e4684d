#pragma once

#include <atomic>
#include <deque>
#include <future>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/payloads/collective_data_plane.hpp"
#include "engine/payloads/data_plane.hpp"
#include "engine/payloads/payload_worker.hpp"
#include "engine/payloads/relay_buffers.hpp"
#include "engine/payloads/sent_sizes.hpp"

namespace longhaul::engine {

/// Payloads that follow from seed and id (Payloads), capped; collectives of synthetic numbers, as
/// one call or as messages (CollectiveDataPlane). Every byte is checked where it arrives, sums at
/// the end of the iteration. Large payloads are made before they are sent, the next ones of each
/// lane, and compared after they have come, by a thread: the engine has no part in it, unless that
/// falls back. Their ids are looked at at once; a byte that is wrong is a verdict of
/// end_iteration().
class SyntheticDataPlane final : public DataPlane {
public:
  /// `plan` outlives this. `largest` and `vector`: see SendCaps.
  SyntheticDataPlane(const Plan& plan, Rank self, std::uint64_t seed, Bytes largest,
                     Bytes vector = SendCaps{}.vector);
  ~SyntheticDataPlane() override;

  void begin_iteration(std::uint32_t run, int iteration) override;
  [[nodiscard]] std::vector<LateVerdict> end_iteration() override;
  [[nodiscard]] Payload make(OpId send) override;
  [[nodiscard]] Payload room(OpId recv) override;
  [[nodiscard]] Payloads::Verdict check(OpId recv, std::span<const std::byte> payload,
                                        PayloadId& found) override;
  void deliver(OpId recv, Payload payload) override;
  void corrupt(OpId send, FaultKind how, Payload& payload) override;
  [[nodiscard]] comm::Exchange exchange(OpId collective) override;
  [[nodiscard]] bool exchanged(OpId collective) override;

private:
  /// Memory that is not written before it is used.
  struct Room {
    std::size_t size = 0;
    std::unique_ptr<std::byte[]> memory;
  };
  /// Rooms to use again: payloads may outlive this, and the thread gives some back.
  struct Rooms {
    std::mutex mutex;
    std::vector<std::unique_ptr<Room>> free;
  };
  /// A payload that is made before its send begins.
  struct Ahead {
    OpId send{};
    Payload payload;
    std::future<void> made;
  };
  struct Numbers {
    std::vector<std::int64_t> mine, result;
  };
  [[nodiscard]] Payload take_room(std::size_t size);
  /// nullptr: the message is no step of a collective.
  [[nodiscard]] CollectiveDataPlane* plane_of(OpId message) const;
  void append_wrong_sums(std::vector<LateVerdict>& wrong);
  void make_ahead(LaneId lane, std::uint32_t next);
  [[nodiscard]] std::optional<Payload> take_ahead(OpId send);
  void compare(OpId recv, const PayloadId& expected, std::span<const std::byte> payload);
  [[nodiscard]] std::int64_t contribution(OpId collective, Rank member, std::size_t at) const;
  /// Position of this rank among the collective's members.
  [[nodiscard]] std::size_t place_of(OpId collective) const;
  [[nodiscard]] bool is_side_by_side(OpId collective,
                                     const std::vector<std::int64_t>& result) const;
  [[nodiscard]] bool is_transposed(OpId collective, const std::vector<std::int64_t>& result) const;
  [[nodiscard]] bool is_sum(OpId collective, const std::vector<std::int64_t>& result) const;

  const Plan& plan_;
  Rank self_;
  std::uint64_t seed_;
  Payloads payloads_;
  std::uint32_t run_ = 0;
  int iteration_ = 0;
  RelayTable forwards_;
  std::shared_ptr<Rooms> rooms_;
  std::unordered_map<OpId, Numbers> numbers_;  ///< by collective
  /// By collective that is messages; nullptr where this rank is no member.
  std::vector<std::unique_ptr<CollectiveDataPlane>> in_steps_;
  std::unordered_map<LaneId, std::deque<Ahead>> ahead_;
  std::unordered_map<OpId, std::shared_ptr<void>> received_;  ///< rooms until they are compared
  std::atomic<std::uint32_t> uncompared_ = 0;
  std::mutex late_mutex_;
  std::vector<LateVerdict> late_;
  PayloadWorker worker_;  ///< last: it uses the others
};

}  // namespace longhaul::engine
