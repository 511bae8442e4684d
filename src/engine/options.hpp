#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "base/units.hpp"
#include "engine/payloads/fault.hpp"
#include "engine/payloads/message.hpp"
#include "engine/payloads/sent_sizes.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::engine {

enum class Emulation { on, off };

struct EngineOptions {
  Emulation emulation = Emulation::on;
  Bytes payload{SendCaps{}.message};  ///< cap on the bytes really sent for a message
  Bytes vector{SendCaps{}.vector};    ///< cap on what is kept of a collective's vector
  Run run;                            ///< seed, noise and stragglers of blocks
  /// The most of a timer's lateness that is caught up: a block or hold that follows another begins
  /// where that one was due, not where the host woke us. Later than most_credit() stays late.
  Duration credit{std::chrono::milliseconds{1}};
  /// Of this host's clock from rank 0's, where all ranks know theirs: leases of links between hosts
  /// then count from when their words were sent, otherwise from when they are seen.
  std::optional<Duration> clock_offset;
  std::optional<Fault> fault;
  bool streams = false;  ///< makes what Engine::run_stream() needs with the engine
  bool marks = false;    ///< ranges for a profiler (accelerator.hpp)
};

/// Credit for an op of that duration: at most 2% of it, so that a run cannot be made of credit.
[[nodiscard]] constexpr Duration most_credit(Duration credit, Duration duration) {
  return std::min(credit, duration / 50);
}

/// Counts of right and wrong events on one rank in one iteration. All from `lost` on should be 0.
struct Checks {
  std::int64_t messages = 0;  ///< received as they should be; a piece counts once on each leg
  std::array<std::int64_t, kCountOf<MessageLeg>> of_leg{};  ///< of these, by MessageLeg
  std::int64_t relayed = 0;        ///< payloads taken on as they were received
  std::int64_t relayed_bytes = 0;  ///< nominal
  std::int64_t blocks = 0;         ///< run once, in order, after all pieces of their inputs
  std::int64_t lost = 0;           ///< messages that did not come
  std::int64_t mixed_up = 0;       ///< another one came in its place
  std::int64_t corrupted = 0;      ///< payload or result of a collective with wrong content
  std::int64_t out_of_order = 0;   ///< ops against their lane's order or before their inputs
  std::int64_t unclaimed = 0;      ///< messages left over
  std::int64_t wrong_tensors = 0;  ///< gradients, weights, losses that are not the reference's

  [[nodiscard]] std::int64_t wrong() const {
    return lost + mixed_up + corrupted + out_of_order + unclaimed + wrong_tensors;
  }
  Checks& operator+=(const Checks& other);
};

/// A message that was not what its receive should have brought.
struct WrongMessage {
  OpId recv{};
  std::int32_t iteration = 0;
  Payloads::Verdict verdict{};
  bool came_wrong_to_sender = false;  ///< a relay passed on what was wrong before it
  PayloadId found;                    ///< what it says that it is
};

/// The cost of leasing resources that several ranks share: from when a resource was free and
/// wanted to when its next holder knew.
struct LeaseCost {
  std::int64_t leases = 0;
  Duration total{};
  Duration longest{};
  std::int64_t by_words = 0;  ///< of these, over messages to another host
  Duration words_total{};     ///< request and grant on their way
  Duration words_longest{};
  /// One lease; known before it was free and wanted counts as at once.
  void add(Duration late);
  void add_words(Duration on_the_way);
  LeaseCost& operator+=(const LeaseCost& other);
};

/// How late a rank noticed that its blocks were over: from when one was due to when it was seen.
/// Blocks whose device stamps them itself are not counted.
struct Lateness {
  std::int64_t blocks = 0;
  Duration total{};
  Duration longest{};
  /// One block; seen before it was due counts as in time.
  void add(Duration late);
  Lateness& operator+=(const Lateness& other);
};

}  // namespace longhaul::engine
