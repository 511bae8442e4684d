#pragma once

#include <memory>

#include "engine/credit/shadow_time.hpp"
#include "engine/device.hpp"
#include "engine/links/link_conditions.hpp"
#include "engine/options.hpp"
#include "engine/payloads/data_plane.hpp"
#include "engine/ranks.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::engine {

struct EngineParts;

/// The result of one iteration on one rank. Times are stamps of this host's clock, of this rank's
/// ops alone.
struct IterationResult {
  OpTimes times;
  Checks checks;
  LeaseCost lease;
  std::int64_t transfers = 0;  ///< messages received
  Duration transfer_total{};   ///< real time of their transfers, by this rank's clock
  Duration transfer_longest{};
  std::vector<WrongMessage> wrong{};  ///< the first few that `checks` counts
  Duration weather_age{};             ///< see LinkConditions::age: when this rank began
  Lateness lateness{};                ///< of this rank's timers
  CreditUse credit{};                 ///< of this rank's ops
  ShadowTime end{};                   ///< of its last op, with and without credit
};

/// Runs a plan on this rank, one thread and no waiting in calls: look at timers, device and
/// transport, start what can start, sleep until the next timer or a doorbell (docs/runtime.md).
class Engine {
public:
  /// Collective over the ranks. `plan`, `device` and `data_plane` outlive the engine.
  Engine(const Plan& plan, Ranks& ranks, Device& device, DataPlane& data_plane,
         EngineOptions options);
  /// With a SyntheticDataPlane of its own.
  Engine(const Plan& plan, Ranks& ranks, Device& device, EngineOptions options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Collective: all ranks meet, run the plan once, and meet again. The weather, where there is
  /// one, is the same on all ranks; warm-up iterations are below 0.
  IterationResult run(int iteration, const PlayedWeather& weather = {});

private:
  Engine(const Plan& plan, Ranks& ranks, Device& device, std::unique_ptr<DataPlane> own,
         EngineOptions options);
  template <typename Work>
  void report_failures(Work&& work);
  void barrier(int which);
  void execute();
  bool step();
  bool handle_completions(TimePoint at);
  bool handle_timers(TimePoint at);
  void dispatch(const comm::Completion& completion, TimePoint at);
  void wait(std::uint32_t doorbell);
  [[nodiscard]] TimePoint end_of_hold(TimePoint at);
  bool keeps_awake(TimePoint at, TimePoint timer);
  void announce(TimePoint timer);
  [[nodiscard]] TimePoint next_look(TimePoint at);

  const Plan& plan_;
  Ranks& ranks_;
  EngineOptions options_;
  std::unique_ptr<DataPlane> own_data_plane_;
  std::unique_ptr<EngineParts> parts_;
  std::int64_t receives_ = 0;  ///< of this rank in an iteration
};

}  // namespace longhaul::engine
