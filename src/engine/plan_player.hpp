#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "comm/transport.hpp"
#include "engine/device.hpp"
#include "engine/links/link_conditions.hpp"
#include "engine/options.hpp"
#include "plan/plan.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::engine {

struct EngineState;
class StreamControl;

/// This rank's ops of an iteration, all of which are over.
struct PlayedOps {
  OpTimes times;                         ///< by op, stamps
  std::vector<Outcome> outcomes{};       ///< by op; empty: all have run
  std::vector<std::int32_t> versions{};  ///< by op; empty: none has one
  TimePoint end{};                       ///< of the last of them
  Checks order;
};

/// Plays a rank's part of a plan, or of a stream of it, in the place of the engine's lanes: looks
/// at what has ended and starts what can start, and never waits.
class PlanPlayer : public Arbiter {
public:
  using Sink = std::function<void(int iteration, PlayedOps ops)>;
  /// Before the ranks meet for it. Iterations count from `first` for payloads and weather.
  /// `control` may be nullptr.
  virtual void prepare(const plan::Stream& stream, int first, const PlayedWeather& weather,
                       Sink sink, StreamControl* control) = 0;
  /// After they have met.
  virtual void begin(TimePoint at) = 0;
  [[nodiscard]] virtual bool done() const = 0;
  /// Once it is done.
  virtual void finish() = 0;

  /// Notes what has ended and starts what can start; true if anything moved.
  virtual bool step(TimePoint at) = 0;
  /// By the host's clock, where nothing else moved: decides what waits for a decision.
  virtual bool decide(TimePoint at) = 0;
  /// By any clock, before it sleeps: what follows from nothing happening any more; true if it moved
  /// anything.
  virtual bool rest(TimePoint at) = 0;
  /// Is a completion of the transport one of its own? Then it has been heeded.
  [[nodiscard]] virtual bool took(const comm::Completion& completion, TimePoint at) = 0;
  [[nodiscard]] virtual TimePoint next_timer() const = 0;
  /// Tells the neighbours which op the next block waits for.
  virtual void publish_wait() = 0;
  [[nodiscard]] virtual std::size_t most_live_iterations() const = 0;
};

/// Collective over the ranks: EventPlayer (engine/events/). `state` and `device` outlive it.
[[nodiscard]] std::unique_ptr<PlanPlayer> make_event_player(EngineState& state, Device& device);
/// What it cannot play of a plan, for one line of a refusal; nullptr: nothing.
[[nodiscard]] const char* first_unplayed(const Plan& plan);

}  // namespace longhaul::engine
