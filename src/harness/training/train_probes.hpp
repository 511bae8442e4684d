#pragma once

#include <string>
#include <vector>

#include "harness/ranks/environment.hpp"
#include "harness/training/train_run.hpp"
#include "planner/tune/surrogate.hpp"

namespace longhaul::harness {

/// The probe runs of StellaTrain's algorithm 1, and what they are compared with; on rank 0.
struct ProbeRun {
  struct Tested {
    int batch = 0;  ///< of all replicas
    double compression_rate = 0;
    int iterations = 0;
    double loss = 0;  ///< averaged over iterations, see smoothed_loss()
    Duration took{};
  };
  training::DataFacts data;
  std::string model;
  Tested base;  ///< without compression and staleness
  std::vector<Tested> tested;
  std::vector<planner::Probe> probes;  ///< of `tested`: g is the loss less that of `base`
};

/// Line 6 of algorithm 1: 0.99 of the average before and 0.01 of the loss; the first loss begins it
/// (the paper does not say what does).
[[nodiscard]] double smoothed_loss(const std::vector<double>& losses);

/// Throws Error where the scenario cannot be probed: its method sends all numbers, it has several
/// learning rates, or no batches to choose from.
void check_probes(const Scenario& scenario, const TrainSettings& settings);

/// Collective. Each run trains on the same `TrainSettings::probe_samples` (half of an epoch where
/// that is 0), once, from the first seed, without emulated links; weights are exactly [train]
/// staleness iterations older than without. `plan.methods`: the scenario's [train] alone.
[[nodiscard]] ProbeRun run_probes(engine::Ranks& ranks, const TrainPlan& plan,
                                  const TrainSettings& settings);

/// A table as read_probes() takes it, with the command line and commit that made it.
[[nodiscard]] std::string probes_csv(const ProbeRun& run, const std::string& command_line);

/// Collective: run_probes(); prints the table, and puts it with a record into --out.
void probe(engine::Ranks& ranks, const TrainPlan& plan, const TrainOptions& options,
           const TrainSettings& settings, Environment& environment);

}  // namespace longhaul::harness
