#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "comm/group/clock_sync.hpp"
#include "engine/engine.hpp"
#include "harness/session/link_conditions_run.hpp"
#include "harness/session/pipeline_input.hpp"
#include "harness/session/training_session.hpp"
#include "report/record.hpp"
#include "schedule/memory.hpp"
#include "trace/report/report.hpp"

namespace longhaul::harness {

/// Measurements of one schedule over its iterations; complete on rank 0.
struct PipelineMeasurement {
  int first_iteration = 0;
  report::ScheduleRecord predicted;
  /// Prediction of the same orders with the slow devices of run.stragglers, which `predicted`
  /// leaves out; nullopt: there are none.
  std::optional<Duration> straggling{};
  std::optional<WeatherOutcome> weather{};  ///< absent: links did not vary, or were not emulated
  report::ScheduleRecord measured;          ///< of the iteration whose makespan is the median
  std::vector<schedule::DeviceNeed> memory;
  std::vector<double> makespans_ns;
  SampleSummary summary;
  std::optional<TrainingOutcome> real{};        ///< of real layers
  std::optional<OverlapMeasurement> overlap{};  ///< absent: blocks, without one
  engine::Checks checks;                        ///< of all ranks and iterations, warm-up included
  std::vector<std::string> wrong_messages;      ///< the first few that `checks` counts
  engine::LeaseCost lease;
  engine::Lateness lateness;                ///< of all ranks and iterations, warm-up included
  engine::CreditUse credit{};               ///< likewise
  std::vector<double> without_credit_ns{};  ///< makespans by the shadow clock (shadow_time.hpp)
  int critical_messages = 0;                ///< on the predicted critical path
  Duration mean_block{};                    ///< as planned and played, of the blocks that take time
  Bytes message;                            ///< the largest one, as the scenario has it
  std::int64_t transfers = 0;
  Duration transfer_total{}, transfer_longest{};

  [[nodiscard]] double difference_percent() const;
  /// The same by the shadow clock.
  [[nodiscard]] double difference_without_credit_percent() const;
  /// Of the median: plan::late_per_message().
  [[nodiscard]] std::optional<Duration> late_per_message() const;
  /// To `straggling`, which must be there.
  [[nodiscard]] double straggling_difference_percent() const;
};

/// Kept results of an iteration.
struct IterationOutcome {
  trace::IterationReport report;
  std::vector<plan::ResourceUse> resources;  ///< all but devices
  Duration credit_lag{};  ///< by how much later it would have ended without credit
  std::optional<collective::Exposure> exposure{};  ///< under an overlap
};
/// From the times of all ranks' ops.
[[nodiscard]] IterationOutcome outcome_of(const Plan& plan, const OpTimes& times, int iteration,
                                          const Scenario& scenario);

/// Moves the times so that the first op starts at 0.
void start_at_zero(OpTimes& times);
/// Adds what is counted and measured as sums; leaves times and messages alone.
void add(engine::IterationResult& sums, const engine::IterationResult& result);

/// An iteration on rank 0: times of all ranks' ops, from the first op's start on.
struct IterationTimes {
  OpTimes measured;
  OpTimes predicted;  ///< in the weather that it met
};

/// Iterations 0 to `count` - 1 of a schedule, which an earlier part of a run finished. The rest is
/// on rank 0.
struct EarlierIterations {
  int count = 0;
  std::vector<IterationOutcome> outcomes{};
  std::vector<Duration> weather_ages{};  ///< of each, when it began
  engine::IterationResult sums{};        ///< of all ranks, without times
  std::vector<std::string> wrong_messages{};
};

/// An iteration that is over on this rank, before its rows are written.
struct IterationNote {
  int position = 0, iteration = 0;
  const std::string& schedule;
  Duration predicted;    ///< makespan, with calm links
  Duration first, last;  ///< start and end of this rank's ops, by rank 0's clock
  const engine::IterationResult& result;
};

/// Receivers of the rows of finished iterations and of progress.
struct PipelineSinks {
  std::filesystem::path directory;  ///< empty: nowhere
  comm::ClockOffset clock;
  std::function<void(const std::string& schedule)> iteration_done;
  std::vector<EarlierIterations> earlier{};  ///< of each schedule; empty: none (--resume)
  /// Collective.
  std::function<void(const IterationNote&)> note{};
  /// On rank 0, at the end of a schedule.
  std::function<void(int position, const PipelineMeasurement&)> note_end{};
};

/// Runs one schedule on its links, iteration by iteration; collects what they say. Every call is
/// collective.
class ScheduleSession {
public:
  /// `planned` was lowered on `scenario`; both outlive this. `position` is its place in the run's
  /// list: it names the files of its iterations. `real`: of real layers; nullptr: blocks of
  /// `device` are timed.
  ScheduleSession(engine::Ranks& ranks, const PlannedSchedule& planned, const Scenario& scenario,
                  int position, const engine::EngineOptions& options, const PipelineSinks& sinks,
                  DeviceKind device, TrainingSession* real);

  /// Goes on after the iterations of an earlier part. Precondition: no iteration has run here.
  void take(const EarlierIterations& earlier);
  /// Iterations below 0 warm up and leave no results. Rank 0 gets the times of the others.
  /// `weather_began` is by this host's clock (kNever: not yet).
  IterationTimes iterate(int iteration, TimePoint weather_began = kNever);
  /// Makespans so far, in ns; on rank 0.
  [[nodiscard]] std::vector<double> makespans_ns() const;
  /// Call once, after the last iteration.
  [[nodiscard]] PipelineMeasurement finish();

private:
  void count(const engine::IterationResult& result);
  IterationTimes keep(int iteration, engine::IterationResult& result);
  OpTimes predict(int iteration, Duration age);
  [[nodiscard]] Duration longest_wait_in(int iteration, TimePoint weather_began) const;
  void summarize_outcomes();

  engine::Ranks& ranks_;
  const PlannedSchedule& planned_;
  const Scenario& scenario_;
  int position_;
  const PipelineSinks& sinks_;
  bool emulates_;
  ComputeBackend computing_;
  engine::Engine engine_;
  LinkConditionsRun weather_;
  Duration longest_wait_;
  Duration predicted_;  ///< makespan, with calm links
  PipelineMeasurement measurement_;
  engine::IterationResult sums_;             ///< of this rank
  std::vector<engine::WrongMessage> wrong_;  ///< of this rank, the first few
  std::vector<IterationOutcome> outcomes_;   ///< on rank 0
};

}  // namespace longhaul::harness
