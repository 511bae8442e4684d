#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/credit/shadow_time.hpp"
#include "engine/events/stream_control.hpp"
#include "plan/link_model/weather.hpp"
#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::testing {

/// A run of the engine by a virtual clock.
struct VirtualRun {
  int iterations = 1;            ///< one after the other; the first has the weather's number
  Duration hop{};                ///< the transport delivers so long after the sending
  Duration payload{};            ///< payloads that much later
  std::uint64_t order_seed = 0;  ///< see VirtualTime
  Run blocks{};                  ///< noise and stragglers
  Duration credit{};             ///< what begins late stays late
  bool streams = false;          ///< the engine is made for streams
  int ranks_per_host = 0;        ///< several hosts of so many are pretended; 0: one
  /// A StreamControl for each rank of a stream; empty: none has one.
  std::function<std::unique_ptr<engine::StreamControl>(Rank)> control{};
  Duration latest{};  ///< ends of blocks are seen late, by a time drawn from the op's id up to this
};

struct PlayedByEngine {
  Duration begin{};                        ///< of the iteration, since the start of the weather
  OpTimes times;                           ///< of all ops, from then on
  std::vector<engine::ShadowTime> ends{};  ///< of each rank's last op, likewise
  std::int64_t credited = 0;               ///< ops that were given credit
};

/// Plays a plan on the engines of all its ranks, which are threads of this process, over a
/// transport that takes no time but `hop`. Expects that each message came once and as it should.
[[nodiscard]] std::vector<PlayedByEngine> play(const Plan& plan,
                                               const plan::WeatherOfIteration& at = {},
                                               const VirtualRun& run = {});

struct PlayedStream {
  std::vector<OpResults> iterations;  ///< of all ops; times from the start of the stream
  std::size_t most_live_iterations = 0;
};
/// Plays a stream of a plan likewise.
[[nodiscard]] PlayedStream play_stream(const Plan& plan, const plan::Stream& stream,
                                       const VirtualRun& run = {});

/// Empty where the engine's times are the simulator's to the nanosecond, and each op is bound by
/// what the simulator says, or by another op whose event came in the same instant (or by `any`);
/// otherwise the first op of which that is not so.
enum class Bounds { equal, any };
[[nodiscard]] std::string difference(const Plan& plan, const OpTimes& played,
                                     const OpTimes& simulated, Bounds bounds = Bounds::equal);

}  // namespace longhaul::testing
