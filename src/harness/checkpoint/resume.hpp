#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness/checkpoint/resume_journal.hpp"
#include "harness/session/schedule_session.hpp"
#include "trace/file/trace_file.hpp"

namespace longhaul::harness {

/// The directory of --out from the first file to the last, so that a run that was cut short can be
/// gone on with (--resume): input.json, run.h5, journal.jsonl and segments while it goes on;
/// input.json, trace.h5 and record.json when it is complete (docs/runtime.md).
class RunDirectory {
public:
  /// Collective. Begins a run in options.out, or goes on with the one that is there and whose input
  /// prepare_input() found to be the same: what was half-written moves to DIR/unfinished-N. Without
  /// --out nothing is kept. `info` is needed on rank 0 alone.
  RunDirectory(engine::Ranks& ranks, const PipelineInput& input, const PipelineOptions& options,
               const trace::RunInfo& info);

  /// Iterations that the schedules have finished, in the order of the input: the counts on every
  /// rank, the rest on rank 0. Empty where nothing was begun before.
  [[nodiscard]] const std::vector<EarlierIterations>& earlier() const { return earlier_; }
  /// Collective, before the rows of an iteration are written: a run that finds the segments of all
  /// ranks also finds the results of their checks. Warm-up counts as well.
  void note(const IterationNote& note);
  /// On rank 0: what is known of a schedule at its end alone.
  void note_end(int position, const PipelineMeasurement& measurement);
  /// On rank 0: one entry for each part of the run, with its time, hosts, commit and how far
  /// schedules were when it began; null where all ran in one.
  [[nodiscard]] nlohmann::json parts() const;
  /// On rank 0, when trace.h5 and record.json are there: removes what only going on would need.
  void finish();

private:
  void open(const PipelineInput& input, const trace::RunInfo& info);
  void go_on(const PipelineInput& input, const trace::RunInfo& info);
  void tell_counts();

  engine::Ranks& ranks_;
  std::filesystem::path directory_;
  std::unique_ptr<Journal> journal_;  ///< on rank 0, with --out
  std::vector<EarlierIterations> earlier_;
  nlohmann::json parts_;
};

/// For tests: a fault that strikes this rank while it writes its rows of an iteration.
void prepare_write_fault(const std::optional<engine::Fault>& fault, Rank self);

/// For people and logs: how a run was put together; "" where it ran in one.
[[nodiscard]] std::string parts_text(const nlohmann::json& parts);

/// Says that a run is complete (--json: prints its record); what it ended with. On rank 0.
[[nodiscard]] ExitCode report_complete(const PipelineOptions& options);

}  // namespace longhaul::harness
