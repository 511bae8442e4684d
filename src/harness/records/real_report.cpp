#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/unit_text.hpp"
#include "harness/records/pipeline_record.hpp"
#include "scenario/reader/costs_file.hpp"

namespace longhaul::harness {

nlohmann::ordered_json real_json(const TrainingOutcome& outcome) {
  return {{"loss", outcome.losses},
          {"iterations_checked", outcome.checked},
          {"allowed_difference", outcome.allowed},
          {"peak_memory_bytes", outcome.peak_bytes}};
}

std::string loss_text(const PipelineMeasurement& measurement) {
  if (!measurement.real || measurement.real->losses.empty()) return "-";
  return fmt::format("{:.4f}", measurement.real->losses.back());
}

bool costs_are_measured(const PipelineInput& input, const PipelineOptions& options) {
  return scenario::CostsFile::is_included(input.scenario.text, options.overrides);
}

std::string real_note(const std::vector<PipelineMeasurement>& measurements,
                      const PipelineInput& input, const PipelineOptions& options) {
  if (!input.compute.real) return "";
  int checked = 0;
  double allowed = 0;
  std::int64_t peak = 0;
  for (const PipelineMeasurement& m : measurements) {
    checked += m.real->checked;
    allowed = m.real->allowed;
    peak = std::max(peak, std::ranges::max(m.real->peak_bytes));
  }
  const std::string against =
      checked > 0 ? fmt::format(
                        "loss, gradients and weights of {} iteration{} held against one "
                        "rank ({:g} is allowed)",
                        checked, checked == 1 ? "" : "s", allowed)
                  : std::string{"nothing was held against one rank (--check-gradients off)"};
  return fmt::format(
      "real layers on {}, {} with a learning rate of {:g}: {}; at most {} of a device's memory\n{}",
      to_string(input.compute.device), options.compute.optimizer, options.compute.learning_rate,
      against, to_text(Bytes{peak}),
      costs_are_measured(input, options)
          ? ""
          : "predicted and diff [%] are of the scenario's own costs, which are not measured on "
            "this device (bench_profile measures them into a costs.file)\n");
}

}  // namespace longhaul::harness
