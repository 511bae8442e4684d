#include "harness/training/train_options.hpp"

#include <algorithm>

#include "base/program/option_values.hpp"
#include "harness/options/credit.hpp"
#include "harness/options/pipeline_options.hpp"
#include "harness/training/train_method.hpp"

namespace longhaul::harness {
namespace {

constexpr int kMostIterations = 1'000'000;
constexpr int kMostProbeRuns = 1000;  // that a file of probes may have

void declare_training(Arguments& arguments, TrainOptions& options) {
  arguments.option("SCENARIO", options.scenario,
                   "scenario (.toml) with a [model] and gradient_sync = \"compressed\"");
  arguments.option("--schedule", options.schedule, "of an iteration").shows_default();
  arguments
      .option("--data", options.data,
              "text:PATH, text:python (its library's sources), digits, or synthetic")
      .shows_default();
  arguments
      .option("--methods", options.methods,
              "a comma list of NAME[:KEY=VALUE]..:" + train_methods_help())
      .shows_default();
  arguments.option("--target", options.target,
                   "loss=X or error=X of validation (default: the scenario's)");
  arguments
      .option("--lr-grid", options.learning_rates,
              "learning rates; of several each method is tried with all, on seed 0; "
              "\"X,X..;METHOD=X,X..\": others of a method, as many")
      .shows_default();
  arguments.option("--seeds", options.seeds, "of weights and data, a comma list").shows_default();
  arguments.option("--optimizer", options.optimizer, "sgd, momentum, nesterov or adamw")
      .shows_default();
  arguments
      .option("--lazy", options.lazy,
              "skip: numbers that are not sent keep old moments; exact: they are caught up")
      .shows_default();
  arguments.option("--max-iterations", options.iterations, "of each run")
      .shows_default()
      .within(1, kMostIterations);
  arguments
      .option("--trial-iterations", options.trial_iterations,
              "of a trial of a learning rate (default: a third)")
      .within(0, kMostIterations);
  arguments.option("--points", options.points, "validations of a run")
      .shows_default()
      .within(1, kMostIterations);
  arguments.option("--held-out", options.held_out, "sequences of a validation, at most")
      .shows_default()
      .within(1, kMostIterations);
}

std::vector<int> seeds_of(const std::string& list) {
  std::vector<int> seeds;
  for (const std::string& word : words_of(list, ','))
    seeds.push_back(whole_number("--seeds", word, 0, kMostIterations));
  return seeds;
}

}  // namespace

void declare(Arguments& arguments, TrainOptions& options) {
  declare_training(arguments, options);
  arguments
      .option("--compute", options.compute,
              "real layers, or timed: only how long iterations take, and how fresh parts are")
      .shows_default();
  arguments
      .option("--compose", options.compose,
              "where links cannot change what is learned, measure so many iterations and compose "
              "the rest; 0: measure all")
      .shows_default()
      .within(0, kMostIterations);
  arguments.flag("--pace", options.pace,
                 "a block lasts as long as modelled, if that is longer than it takes");
  arguments
      .option("--checkpoint-every", options.checkpoint_every,
              "iterations of a curve after which --out holds all that it depends on; 0: never")
      .shows_default()
      .within(0, kMostIterations);
  arguments.flag("--resume", options.resume,
                 "go on with the run in --out: with what was finished, from the last checkpoint");
  arguments.flag("--replay", options.replay,
                 "one rank computes each run once more, by other code, and compares");
  arguments
      .option("--probes", options.probes,
              "in place of curves so many probe runs of the scenario's [train] (StellaTrain, "
              "algorithm 1): probes.csv for longhaul tune")
      .within(0, kMostProbeRuns);
  arguments.option("--probe-samples", options.probe_samples,
                   "of a probe run (default: half of an epoch)");
  arguments.option("--probe-batches", options.probe_batches,
                   "MIN,MAX samples of an iteration of all replicas (default: 4,1024)");
  arguments.option("--emulate", options.emulate, "on, or off: the network as it is")
      .shows_default();
  arguments.option("--credit", options.credit, kCreditHelp).shows_default();
  arguments.flag("--no-report", options.no_report, "no report.html in --out");
  arguments.option(
      "--fault", options.fault,
      "for tests: kill@RANK:OPINDEX:ITERATION, freeze@, corrupt@ (a set loses a block)");
  add_shared_options(
      arguments, options,
      {{Shared::overrides},
       {Shared::deadline},
       {Shared::ranks},
       {Shared::out, "directory for record.json, curves.csv and report.html"},
       {Shared::json},
       {Shared::check, "tiny: a scenario of its own, and the answer is the exit code"}});
  arguments.footer(help_footer(
      {"build/bin/bench_train benchmarks/scenarios/train-2dc.toml --ranks-per-process 4 --pace",
       "scripts/mpi -n 4 build/bin/bench_train benchmarks/scenarios/train-2dc.toml --methods "
       "none,topk:keep=1%,stella --lr-grid 0.001,0.003,0.01 --seeds 1,2,3 --pace --replay "
       "--out runs/train"}));
}

TrainingTarget target_of(const std::string& text) {
  const std::vector<std::string> words = words_of(text, '=');
  if (words.size() != 2) fail("--target {} says no value. Write --target loss=2.3.", text);
  return {choice<TargetKind>("--target", words[0]), positive_number("--target", words[1])};
}

namespace {

/// "dgc" of "dgc:keep=5%+hetero".
std::string family_of(const std::string& method) {
  return method.substr(0, method.find_first_of(":+"));
}

/// "X,X..", and after each semicolon "METHOD=X,X..".
void read_rates(const TrainOptions& options, TrainSettings& settings) {
  std::vector<std::string> methods = words_of(options.methods, ',');
  for (std::size_t i = 0, all = methods.size(); i < all; ++i)
    methods.push_back(family_of(methods[i]));
  for (const std::string& group : words_of(options.learning_rates, ';')) {
    const bool is_of_all = settings.learning_rates.empty();
    const std::size_t sign = is_of_all ? std::string::npos : group.rfind('=');
    const std::string method = group.substr(0, sign == std::string::npos ? 0 : sign);
    if (!is_of_all && std::ranges::find(methods, method) == methods.end())
      fail("--lr-grid: \"{}\" is of none of --methods {}. Write METHOD=X,X..", group,
           options.methods);
    std::vector<double>& rates =
        is_of_all ? settings.learning_rates : settings.rates_of_methods[method];
    if (!rates.empty()) fail("--lr-grid: {} has two grids. Give it one.", method);
    for (const std::string& word : words_of(group.substr(sign + 1), ','))
      rates.push_back(positive_number("--lr-grid", word));
    if (rates.size() != settings.learning_rates.size())
      fail(
          "--lr-grid: {} rates of {}, and {} of the others (no method is tried more often than "
          "another). Give as many.",
          rates.size(), method, settings.learning_rates.size());
  }
}

}  // namespace

const std::vector<double>& TrainSettings::rates_of(const std::string& method) const {
  for (const std::string& name : {method, family_of(method)})
    if (const auto own = rates_of_methods.find(name); own != rates_of_methods.end())
      return own->second;
  return learning_rates;
}

TrainSettings settings_of(const TrainOptions& options) {
  TrainSettings settings;
  if (options.scenario.empty())
    fail("bench_train: a file is missing. Name a scenario (.toml) with a [model].");
  if (!options.target.empty()) settings.target = target_of(options.target);
  read_rates(options, settings);
  settings.seeds = seeds_of(options.seeds);
  settings.optimizer.rule = choice<compress::OptimizerRule>("--optimizer", options.optimizer);
  settings.optimizer.lazy = choice<compress::LazyUpdate>("--lazy", options.lazy);
  settings.iterations = options.iterations;
  settings.trial_iterations =
      options.trial_iterations > 0 ? options.trial_iterations : std::max(1, options.iterations / 3);
  settings.point_every = std::max(1, options.iterations / options.points);
  settings.held_out = options.held_out;
  settings.compute = choice<TrainCompute>("--compute", options.compute);
  settings.compose = options.compose;
  if (settings.compute == TrainCompute::timed &&
      (settings.learning_rates.size() > 1 || options.replay || options.compose > 0 || options.pace))
    fail(
        "--compute timed has no numbers (--lr-grid of several, --replay, --compose and --pace are "
        "of them). Leave those out.");
  if (settings.compose == 1) fail("--compose 1: an interval has two ends. Give 2 or more.");
  settings.pace = options.pace ? device::Pace::modelled : device::Pace::real;
  settings.replay = options.replay;
  settings.checkpoint_every = options.checkpoint_every;
  if (options.out.empty() && (options.resume || options.checkpoint_every > 0))
    fail("{} needs --out (it is of a directory). Name it.",
         options.resume ? "--resume" : "--checkpoint-every");
  settings.engine.emulation = emulation_of(options.emulate);
  settings.engine.credit = credit_of(options.credit);
  settings.engine.streams = true;
  settings.deadline = deadline_of(options.deadline);
  settings.probes = options.probes;
  settings.probe_samples = options.probe_samples;
  if (options.probe_samples < 0)
    fail("--probe-samples {}: none to train on. Give 1 or more.", options.probe_samples);
  if (!options.probe_batches.empty()) {
    const std::vector<std::string> words = words_of(options.probe_batches, ',');
    if (words.size() != 2) fail("--probe-batches {}: two numbers, MIN,MAX.", options.probe_batches);
    settings.probe_batches = {whole_number("--probe-batches", words[0], 1, kMostIterations),
                              whole_number("--probe-batches", words[1], 1, kMostIterations)};
  }
  if (!options.fault.empty()) settings.engine.fault = engine::parse_fault(options.fault);
  return settings;
}

}  // namespace longhaul::harness
