#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "comm/registry/transports.hpp"
#include "engine/options.hpp"
#include "harness/environment/shared_options.hpp"
#include "harness/options/compute_options.hpp"
#include "plan/plan.hpp"
#include "report/planning.hpp"

namespace longhaul::harness {

/// Options of bench_pipeline, as typed.
struct PipelineOptions : SharedOptions {
  std::string scenario;
  std::string schedule = "static";
  std::string overlap;  ///< comma list; empty: blocks, without one
  report::PlannerArguments planner;
  std::string comm = "decoupled";
  std::optional<int> iterations;  ///< absent: as the scenario says
  std::optional<int> warmup;
  std::optional<int> max_iterations;  ///< with `confidence` alone
  std::vector<std::string> changes;   ///< ITERATION:PATH=VALUE
  bool adaptive = false;
  double switch_threshold_percent = 10;
  std::string trace = "on";
  bool no_report = false;  ///< report.html beside the trace
  bool resume = false;
  std::string payload;
  ComputeOptions compute;
  std::string emulate = "on";
  std::string credit = "1ms";
  std::string max_difference;
  std::string fault;
  bool print_map = false;
  std::string leave;                        ///< SITE@ITERATION
  std::string rest;                         ///< scenario of the ranks that stay
  std::string rest_schedule;                ///< empty: `schedule`
  std::vector<std::string> rest_overrides;  ///< instead of `overrides`; empty: those
  std::string rest_overlap;                 ///< instead of `overlap`, "none"; empty: that one
};

/// Of --rest-overlap: blocks, without one.
inline constexpr std::string_view kNoOverlap = "none";

void declare(Arguments& arguments, PipelineOptions& options);

/// The same on every rank. Reads no file.
struct PipelineSettings {
  planner::PlannerOptions planner;
  Arrangement arrangement = Arrangement::decoupled;
  engine::EngineOptions engine;
  std::optional<Bytes> payload;  ///< asked for
  comm::TransportKind transport = comm::TransportKind::automatic;
  Duration deadline{};
  std::optional<double> max_difference_percent;
  ComputeSettings compute;
};
[[nodiscard]] PipelineSettings settings_of(const PipelineOptions& options);

/// Values of --deadline, --emulate and --payload; Errors name the option.
[[nodiscard]] engine::Emulation emulation_of(const std::string& text);
[[nodiscard]] Duration deadline_of(const std::string& text);
[[nodiscard]] Bytes payload_of(const std::string& text);

}  // namespace longhaul::harness
