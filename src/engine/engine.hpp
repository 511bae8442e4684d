#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/credit/shadow_time.hpp"
#include "engine/device.hpp"
#include "engine/links/link_conditions.hpp"
#include "engine/options.hpp"
#include "engine/payloads/data_plane.hpp"
#include "engine/ranks.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::engine {

struct EngineParts;
struct PlayedOps;
class StreamControl;

/// The result of one iteration on one rank. Times are stamps of this host's clock, of this rank's
/// ops alone.
struct IterationResult {
  OpTimes times;
  Checks checks;
  LeaseCost lease;
  std::int64_t transfers = 0;  ///< messages received
  Duration transfer_total{};   ///< real time of their transfers, by this rank's clock
  Duration transfer_longest{};
  std::vector<WrongMessage> wrong{};     ///< the first few that `checks` counts
  Duration weather_age{};                ///< see LinkConditions::age: when this rank began
  Lateness lateness{};                   ///< of this rank's timers
  CreditUse credit{};                    ///< of this rank's ops
  ShadowTime end{};                      ///< of its last op, with and without credit
  int iteration = 0;                     ///< of a stream
  std::vector<Outcome> outcomes{};       ///< by op; empty: this rank's have all run
  std::vector<std::int32_t> versions{};  ///< by op; empty: this rank's have none
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

  using StreamSink = std::function<void(const IterationResult&)>;
  /// Collective: all ranks meet, run the plan on as the stream says, and meet again when its last
  /// iteration is over. Each iteration is handed over when this rank's ops of it are, in order,
  /// with times that are stamps as of run(); checks and costs are those since the one before.
  /// `first` numbers the first iteration, for payloads and weather. Without EngineOptions::streams
  /// the first call makes what it needs. `control`: changes the stream while it runs.
  void run_stream(const plan::Stream& stream, int first, const StreamSink& sink,
                  const PlayedWeather& weather = {}, StreamControl* control = nullptr);
  /// Iterations of a stream that were in memory at a time.
  [[nodiscard]] std::size_t most_live_iterations() const;

private:
  Engine(const Plan& plan, Ranks& ranks, Device& device, std::unique_ptr<DataPlane> own,
         EngineOptions options);
  void report_failures(const std::function<void()>& work);
  void begin_run(int iteration, const PlayedWeather& weather);
  void make_player();
  void play();
  [[nodiscard]] IterationResult result_of(int iteration, PlayedOps ops);
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
