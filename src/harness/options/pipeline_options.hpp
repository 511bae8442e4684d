#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/planner_arguments.hpp"
#include "comm/choice.hpp"
#include "engine/options.hpp"
#include "harness/options/compute_options.hpp"
#include "plan/plan.hpp"

namespace longhaul::bench {

/// What bench_pipeline was asked for, as typed.
struct PipelineOptions {
  std::string scenario;
  std::string schedule = "static";
  PlannerArguments planner;
  std::string comm = "decoupled";
  std::optional<int> iterations;  ///< absent: as the scenario says
  std::optional<int> warmup;
  std::string confidence;             ///< "5%"; empty: --iterations is a fixed number
  std::optional<int> max_iterations;  ///< with `confidence` alone
  std::vector<std::string> overrides;
  std::vector<std::string> changes;  ///< ITERATION:PATH=VALUE
  bool adaptive = false;
  double switch_threshold_percent = 10;
  std::filesystem::path out;
  std::string trace = "on";
  bool resume = false;
  std::string payload = "64KiB";
  ComputeOptions compute;
  std::string emulate = "on";
  std::string transport = "auto";
  std::string deadline = "10s";
  int ranks_per_process = 1;
  std::string credit = "1ms";
  std::string fault;
  bool print_map = false;
  bool json = false;
  std::string command_line;
};

/// The same on every rank. Reads no file.
struct PipelineSettings {
  PlannerOptions planner;
  Arrangement arrangement = Arrangement::decoupled;
  EngineOptions engine;
  TransportKind transport = TransportKind::automatic;
  Duration deadline{};
  ComputeSettings compute;
};
[[nodiscard]] PipelineSettings settings_of(const PipelineOptions& options);

/// Values of --deadline and --payload; Errors name the option.
[[nodiscard]] Duration deadline_of(const std::string& text);
[[nodiscard]] Bytes payload_of(const std::string& text);

}  // namespace longhaul::bench
