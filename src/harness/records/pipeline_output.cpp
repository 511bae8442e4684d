#include "harness/records/pipeline_output.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "base/unit_text.hpp"
#include "base/version.hpp"
#include "engine/payloads/fault.hpp"
#include "harness/options/run_files.hpp"
#include "harness/ranks/device_and_transport.hpp"
#include "harness/records/pipeline_record.hpp"
#include "harness/session/site_leave.hpp"
#include "report/page/reported_run.hpp"

namespace longhaul::harness {

namespace {

/// Could the fault strike a schedule in the iterations `first` to `end` - 1?
bool can_strike(const engine::Fault& fault, const Plan& plan, int first, int end) {
  const bool is_played = fault.iteration >= first && fault.iteration < end;
  if (!is_played || std::cmp_greater_equal(index(fault.rank), plan.ranks.size())) return false;
  if (fault.aim == engine::FaultAim::write || fault.kind == engine::FaultKind::perturb) return true;
  return engine::find_fault_op(fault, plan, fault.rank, fault.iteration).has_value();
}

/// A test that injects a fault must not pass because there was none.
void tell_of_idle_fault(const PipelineInput& input, const PipelineOptions& options,
                        const std::vector<PipelineMeasurement>& measurements,
                        const std::vector<EarlierIterations>& earlier) {
  if (options.fault.empty() || options.adaptive || !options.changes.empty()) return;
  const engine::Fault fault = engine::parse_fault(options.fault);
  for (std::size_t i = 0; i < input.schedules.size(); ++i) {
    const int first = i < earlier.size() ? earlier[i].count : 0;
    const int end = static_cast<int>(measurements[i].makespans_ns.size());
    if (can_strike(fault, input.schedules[i].plan, first, end)) return;
  }
  fmt::print(stderr,
             "longhaul: --fault {} never struck (no schedule has such an op of that rank in an "
             "iteration that was played)\n",
             options.fault);
}

}  // namespace

trace::RunInfo info_of(const PipelineInput& input, const PipelineOptions& options,
                       const nlohmann::json& environment) {
  trace::RunInfo info;
  info.creator = fmt::format("bench_pipeline {}", version());
  info.git_commit = git_commit();
  info.command_line = options.command_line;
  info.scenario = input.scenario.text;
  info.environment = environment.dump();
  info.time_scale = input.time_scale;
  info.activation_budget_bytes = input.scenario.activation_budget().count();
  return info;
}

std::filesystem::path traced_directory(const PipelineOptions& options) {
  return options.trace == "on" ? options.out : std::filesystem::path{};
}

void ReportWriter::write(const std::vector<SwitchingOutcome>& outcomes, nlohmann::json environment,
                         RunDirectory& directory,
                         const std::vector<trace::RankClock>& clocks) const {
  const nlohmann::json parts = directory.parts();
  if (!parts.is_null()) environment["parts"] = parts;
  const std::vector<PipelineMeasurement> measurements = segments_of(outcomes);
  auto record = pipeline_record(measurements, input_, options_, environment);
  add_changes(record, outcomes, options_);
  if (input_.left) {
    environment["left"] = record["left"] = {{"site", input_.left->site},
                                            {"iteration", input_.left->iteration},
                                            {"ranks", input_.left->ranks},
                                            {"idle", input_.left->idle},
                                            {"gap_ns", input_.left->gap.count()}};
    fmt::print("\n{}", left_text(*input_.left));
  }
  if (options_.json) {
    fmt::print("{}\n", record.dump(2));
  } else {
    fmt::print("{}{}{}{}", pipeline_table(measurements, input_, options_, environment),
               changes_text(outcomes), transport_note(environment), parts_text(parts));
  }
  std::fflush(stdout);
  tell_of_idle_fault(input_, options_, measurements, directory.earlier());
  if (options_.out.empty()) return;
  if (const auto weather = weather_environment(measurements); !weather.is_null())
    environment["weather"] = weather;
  environment["credit"] = credit_environment(measurements);
  if (!record["switches"].empty()) environment["switches"] = record["switches"];
  // The drift of clocks is known for this part of the run alone.
  if (options_.trace == "on")
    merge_segments(environment, outcomes,
                   parts.is_null() ? clocks : std::vector<trace::RankClock>{});
  write_new_file(options_.out / "record.json", record.dump(2) + "\n");
  directory.finish();
  if (options_.trace == "on" && !options_.no_report)
    fmt::print(stderr, "{}", report::write_page_of_run(options_.out));
}

/// One trace of all segments. They stay where one is damaged, for a run that goes on.
void ReportWriter::merge_segments(const nlohmann::json& environment,
                                  const std::vector<SwitchingOutcome>& outcomes,
                                  const std::vector<trace::RankClock>& clocks) const {
  const std::filesystem::path& directory = options_.out;
  const auto add = [&](Timeline& predicted) { add_predictions(predicted, outcomes); };
  const trace::MergedRows rows =
      trace::merge_run_into(directory, directory / "trace.h5", {clocks, environment.dump(), add});
  if (rows.iterations_left_out == 0) return;
  throw Error{fmt::format("{} lacks {} of the iterations (segments of them are damaged on disk). "
                          "Run again with --resume: they are played anew.",
                          (directory / "trace.h5").string(), rows.iterations_left_out),
              ExitCode::run_failed};
}

nlohmann::json described(nlohmann::json environment, const PipelineOptions& options,
                         const PipelineInput& input, const comm::TransportChoice& transport) {
  if (!environment.is_null()) {
    environment["comm"] = options.comm;
    environment["emulate"] = options.emulate;
    environment["lateness_credit_ns"] = parse_duration(options.credit).count();
    environment["trace"] = options.trace;
    environment["transport"] = transport_json(transport);
    environment["sent"] = nlohmann::json(sent_json(input.sent));
  }
  return environment;
}

}  // namespace longhaul::harness
