#pragma once

#include <filesystem>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "harness/checkpoint/resume.hpp"
#include "harness/options/pipeline_options.hpp"
#include "harness/records/pipeline_record.hpp"

namespace longhaul::harness {

/// Facts of the trace: its program and its scenario.
[[nodiscard]] trace::RunInfo info_of(const PipelineInput& input, const PipelineOptions& options,
                                     const nlohmann::json& environment);

/// A trace that is read on its own says what was measured, too. Nothing but on rank 0.
[[nodiscard]] nlohmann::json described(nlohmann::json environment, const PipelineOptions& options,
                                       const PipelineInput& input,
                                       const comm::TransportChoice& transport);

/// Directory of the rows; empty: rows are not written.
[[nodiscard]] std::filesystem::path traced_directory(const PipelineOptions& options);

/// Results of a run, on rank 0: the record, tables and one trace.
class ReportWriter {
public:
  /// Both must live as long.
  ReportWriter(const PipelineInput& input, const PipelineOptions& options)
      : input_{input}, options_{options} {}

  /// Prints the record or tables, and fills --out. Throws Error where a segment is damaged.
  void write(const std::vector<SwitchingOutcome>& outcomes, nlohmann::json environment,
             RunDirectory& directory, const std::vector<trace::RankClock>& clocks) const;

private:
  void merge_segments(const nlohmann::json& environment,
                      const std::vector<SwitchingOutcome>& outcomes,
                      const std::vector<trace::RankClock>& clocks) const;

  const PipelineInput& input_;
  const PipelineOptions& options_;
};

}  // namespace longhaul::harness
