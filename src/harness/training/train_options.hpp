#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compress/optimizer/optimizer_settings.hpp"
#include "device/stream_device.hpp"
#include "engine/options.hpp"
#include "harness/environment/shared_options.hpp"
#include "scenario/training.hpp"

namespace longhaul::harness {

/// The command line of bench_train, as typed.
struct TrainOptions : SharedOptions {
  std::string scenario, schedule = "stella";
  std::string data = "text:python";
  std::string methods = "none,stella";
  std::string target;  ///< empty: the scenario's
  std::string learning_rates = "0.003", seeds = "1";
  std::string optimizer = "adamw", lazy = "skip";
  std::string emulate = "on", credit = "1ms", fault;
  int iterations = 100, points = 20, held_out = 64;
  int trial_iterations = 0;  ///< 0: a third of `iterations`
  int checkpoint_every = 0;
  bool resume = false;
  int compose = 0;
  std::string compute = "real";
  bool pace = false, replay = false;
  bool no_report = false;  ///< report.html beside the record
  int probes = 0;
  std::int64_t probe_samples = 0;
  std::string probe_batches;  ///< empty: see settings_of()
};

/// Real layers on real data, or their modelled times and payloads without content.
#define LONGHAUL_TRAIN_COMPUTES(X) X(real, "real") X(timed, "timed")
LONGHAUL_LISTED_ENUM(TrainCompute, LONGHAUL_TRAIN_COMPUTES);

/// What it asks for.
struct TrainSettings {
  std::optional<TrainingTarget> target{};
  std::vector<double> learning_rates{};
  /// Of methods that have a grid of their own, of as many rates: by what `--lr-grid` calls them.
  std::map<std::string, std::vector<double>> rates_of_methods{};
  std::vector<int> seeds{};
  compress::OptimizerSettings optimizer;
  int iterations = 100;
  int trial_iterations = 30;  ///< of each learning rate, where there are several
  int point_every = 5;        ///< iterations between two validations
  int held_out = 64;          ///< sequences of a validation
  /// Iterations whose time is measured, where links cannot change what is learned: the numbers then
  /// come from a run without emulated links. 0: all are measured as they are.
  int compose = 0;
  TrainCompute compute = TrainCompute::real;
  device::Pace pace = device::Pace::real;
  bool replay = false;
  int checkpoint_every = 0;  ///< iterations between two checkpoints; 0: none are made
  engine::EngineOptions engine;
  int probes = 0;                              ///< runs of algorithm 1; 0: none, but curves
  std::int64_t probe_samples = 0;              ///< of each; 0: half of an epoch
  std::pair<int, int> probe_batches{4, 1024};  ///< of all replicas; the paper's (section 4.3)
  Duration deadline{};

  /// Those that a method is tried with, by its name as typed: `learning_rates`, or its own.
  [[nodiscard]] const std::vector<double>& rates_of(const std::string& method) const;
};

void declare(Arguments& arguments, TrainOptions& options);
/// Throws Error that names the option.
[[nodiscard]] TrainSettings settings_of(const TrainOptions& options);
/// "loss=2.3" or "error=0.05".
[[nodiscard]] TrainingTarget target_of(const std::string& text);

}  // namespace longhaul::harness
