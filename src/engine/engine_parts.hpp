#pragma once

#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "engine/collective_lanes.hpp"
#include "engine/compute_lane.hpp"
#include "engine/engine.hpp"
#include "engine/engine_state.hpp"
#include "engine/plan_player.hpp"
#include "engine/recv_lanes.hpp"
#include "engine/send_lanes.hpp"

namespace longhaul::engine {

inline constexpr Duration kShortestPoll = std::chrono::microseconds{50};
/// However quiet: a look at the transport.
inline constexpr Duration kSafetyLook = std::chrono::milliseconds{20};

[[nodiscard]] inline bool has_core_for_each(const comm::HostRanks& host_ranks) {
  return std::thread::hardware_concurrency() >= static_cast<unsigned>(host_ranks.local_ranks());
}

/// The members of Engine, shared by engine.cpp and waiting.cpp.
struct EngineParts {
  EngineParts(const Plan& plan, Ranks& ranks, Device& the_device, DataPlane& data_plane,
              const EngineOptions& options)
      : device{the_device},
        state{plan, ranks.host_ranks(), ranks.transport(), data_plane, options, ranks.next_run()},
        compute{state, device},
        sends{state},
        receives{state},
        collectives{state},
        barriers{
            ArrivalBarrier{state, all_ranks(ranks.count()), state.tags.barrier(0), kNone<OpId>},
            ArrivalBarrier{state, all_ranks(ranks.count()), state.tags.barrier(1), kNone<OpId>}},
        spins{has_core_for_each(ranks.host_ranks())} {
    slow_beside_messages();
  }

  /// Refuses what cannot: blocks that take what they take, and links that no one holds.
  void slow_beside_messages();

  Device& device;
  EngineState state;
  ComputeLane compute;
  SendLanes sends;
  RecvLanes receives;
  CollectiveLanes collectives;
  std::unique_ptr<PlanPlayer> player;      ///< of plans with extras, and streams; else nullptr
  std::array<ArrivalBarrier, 2> barriers;  ///< before and after the iteration
  std::size_t barrier = 0;                 ///< the one that goes on
  bool spins;
  std::uint32_t alerts = 0;  ///< that this rank has heeded
  TimePoint awake_until{};   ///< for an announced message
  TimePoint announced{};     ///< the timer whose messages were announced
  std::vector<comm::Completion> completions;
  std::uint32_t looked_at_doorbell = 0;
  TimePoint looked{};  ///< when the transport was looked at last
  Duration poll = kShortestPoll;
};

}  // namespace longhaul::engine
