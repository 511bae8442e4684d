#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "harness/session/schedule_session.hpp"
#include "harness/session/switching_session.hpp"

namespace longhaul::harness {

/// The record that feeds table and JSON (docs/runtime.md).
[[nodiscard]] nlohmann::ordered_json pipeline_record(
    const std::vector<PipelineMeasurement>& measurements, const PipelineInput& input,
    const PipelineOptions& options, const nlohmann::json& environment);

/// For people: what was run, predicted against measured at the scenario's own scale, what makes the
/// numbers doubtful, and where the idle time went.
[[nodiscard]] std::string pipeline_table(const std::vector<PipelineMeasurement>& played,
                                         const PipelineInput& input, const PipelineOptions& options,
                                         const nlohmann::json& environment);

/// Makespans, bound and idle time divided by `time_scale`; costs of the runtime (leases, transfers,
/// lateness) stay as they were, for they do not scale.
[[nodiscard]] PipelineMeasurement at_own_scale(PipelineMeasurement measurement, double time_scale);

/// The credit of all schedules, for the environment of the trace.
[[nodiscard]] nlohmann::json credit_environment(
    const std::vector<PipelineMeasurement>& measurements);

/// Of the median, at the scenario's own scale, as `longhaul simulate` has them; nullopt where the
/// model or the GPU's peak rate is not known.
struct OwnRates {
  std::optional<double> tokens_per_second, mfu;
};
[[nodiscard]] OwnRates own_rates(const PipelineMeasurement& played, const PipelineInput& input);

/// For people: links, interfaces and collectives that are held for any time, the busiest of each
/// schedule, predicted and measured. Empty where none is.
[[nodiscard]] std::string busy_table(const std::vector<PipelineMeasurement>& measurements);

/// Adds what an overlap does to its row, as `simulate --overlap` has it, and what was measured;
/// nothing where there is none.
void add_overlap(nlohmann::ordered_json& row, const PipelineMeasurement& m);
/// For people: communication and how much of it was exposed, predicted and measured. Empty where no
/// overlap was played. Times are the scenario's own.
[[nodiscard]] std::string overlap_table(const std::vector<PipelineMeasurement>& measurements);

/// Results of a schedule of real layers, for the record.
[[nodiscard]] nlohmann::ordered_json real_json(const TrainingOutcome& outcome);

/// Loss of the last iteration, for the table.
[[nodiscard]] std::string loss_text(const PipelineMeasurement& measurement);

/// True where predictions use costs that bench_profile measured.
[[nodiscard]] bool costs_are_measured(const PipelineInput& input, const PipelineOptions& options);

/// For people: what computed, how weights were stepped, how many iterations were held against one
/// rank, and what predictions are worth. Empty where blocks were timed.
[[nodiscard]] std::string real_note(const std::vector<PipelineMeasurement>& measurements,
                                    const PipelineInput& input, const PipelineOptions& options);

/// All segments of a run, in the order of the report.
[[nodiscard]] std::vector<PipelineMeasurement> segments_of(
    const std::vector<SwitchingOutcome>& outcomes);

/// Adds the changes between iterations to the record: `switches`; `adaptive` where the run adapts;
/// and the first iteration of each segment of `schedules`.
void add_changes(nlohmann::ordered_json& record, const std::vector<SwitchingOutcome>& outcomes,
                 const PipelineOptions& options);
/// The same for people; nothing where nothing happened.
[[nodiscard]] std::string changes_text(const std::vector<SwitchingOutcome>& outcomes);

/// For the record: `weather` ("none", "played", or why it was not) and `weather_of_links`, what
/// those do over time that vary, as played.
void add_weather(nlohmann::ordered_json& record,
                 const std::vector<PipelineMeasurement>& measurements, const PipelineInput& input,
                 const PipelineOptions& options);
/// Weather of one schedule, for its record; null where there was none.
[[nodiscard]] nlohmann::ordered_json weather_json(const PipelineMeasurement& m);
/// Weather of all schedules, for the environment of the trace: begin and prediction of each
/// iteration. Null where there was none.
[[nodiscard]] nlohmann::json weather_environment(
    const std::vector<PipelineMeasurement>& measurements);

/// For people: predictions in the weather that each iteration met, and how far measurements are
/// from them; or that it was not played. Nothing where there was none.
[[nodiscard]] std::string weather_table(const std::vector<PipelineMeasurement>& measurements,
                                        const PipelineInput& input, const PipelineOptions& options);

}  // namespace longhaul::harness
