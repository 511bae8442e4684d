#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "harness/training/train_curve.hpp"

namespace longhaul::harness {

/// One learning rate of a method, tried on seed 0.
struct TrainTrial {
  std::string method;
  double learning_rate = 0;
  double validation = 0;  ///< at the end; infinite where it did not end
  Duration took{};
};

/// What all ranks did; curves and trials are on rank 0.
struct TrainRun {
  training::DataFacts data;
  std::vector<TrainTrial> trials;
  std::vector<TrainCurve> curves;
  /// What the probes took that a method's controller goes by; nullopt: their file does not say.
  std::map<std::string, std::optional<Duration>> probes{};

  /// Of the trials of a method, and of its probes; nullopt: of these it is not known.
  [[nodiscard]] std::optional<Duration> search_cost(const std::string& method) const;
};

/// Throws Error, which says what to change, where these ranks cannot train the scenario's model.
void check_can_train(const Scenario& scenario, int ranks);

/// Throws Error where a rival's parts cannot be exchanged as it says: fragments or ranks that the
/// model's parts under that schedule do not have; or where a controller has nothing to adapt.
void check_exchanges(const std::vector<TrainMethod>& methods, const std::string& schedule);

class TrainProgress;

/// What is run, and who hears of it.
struct TrainPlan {
  std::vector<TrainMethod> methods;
  std::string schedule, data;
  comm::ClockOffset clock;                       ///< of this host's clock from rank 0's
  TrainProgress* progress = nullptr;             ///< nullptr: a run that ends early begins anew
  std::function<void(const std::string&)> done;  ///< hears of each run that is over
};

/// Collective: of each method the trials, where there are several learning rates, and then a curve
/// of each seed at the best of them.
[[nodiscard]] TrainRun run_training(engine::Ranks& ranks, const TrainPlan& plan,
                                    const TrainSettings& settings);

/// Trials and curves, or probe runs with what they are compared with.
[[nodiscard]] int count_runs(const TrainPlan& plan, const TrainSettings& settings);

/// All that the results depend on, for --resume; what the data hold, too. Throws Error where there
/// are no such data, or none that fit the model and the target.
[[nodiscard]] nlohmann::json asked_of(const TrainOptions& options, const Scenario& scenario,
                                      const std::optional<TrainingTarget>& target);

/// record.json: docs/training.md.
[[nodiscard]] nlohmann::ordered_json train_record(const std::vector<TrainMethod>& methods,
                                                  const TrainRun& run, const TrainOptions& options,
                                                  const TrainSettings& settings,
                                                  const nlohmann::json& environment);

/// How methods learned, as a table for `longhaul tune --family --curves` and `advise --curves` with
/// a line for each validation, commas within a word as blanks.
[[nodiscard]] std::string curves_csv(const std::vector<TrainMethod>& methods, const TrainRun& run,
                                     const std::string& command_line);

/// Into `options.out`: curves.csv, and then record.json, by which a run is complete.
void write_train_files(const nlohmann::ordered_json& record,
                       const std::vector<TrainMethod>& methods, const TrainRun& run,
                       const TrainOptions& options);
/// The same for people.
[[nodiscard]] std::string train_text(const nlohmann::ordered_json& record);
/// Says that the run in `options.out` is complete, and what was `wrong` with it, if anything; with
/// --json its record. Collective.
[[nodiscard]] ExitCode report_complete_training(engine::Ranks& ranks, const TrainOptions& options,
                                                const std::string& wrong);
/// Empty where nothing was lost and every replay agrees; otherwise a line.
[[nodiscard]] std::string why_not_right(const TrainRun& run);

}  // namespace longhaul::harness
