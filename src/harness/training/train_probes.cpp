#include "harness/training/train_probes.hpp"

#include <algorithm>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "base/index.hpp"
#include "base/version.hpp"
#include "harness/options/run_files.hpp"
#include "harness/ranks/main.hpp"
#include "harness/training/train_rank.hpp"
#include "report/record_file.hpp"
#include "training/model_layout.hpp"

namespace longhaul::harness {
namespace {

/// As equal as can be.
std::vector<int> divided(int batch, int replicas) {
  std::vector<int> all(to_size(replicas), batch / replicas);
  for (int r = 0; r < batch % replicas; ++r) ++all[to_size(r)];
  return all;
}

std::string probed_model(const Scenario& scenario) {
  return scenario.train.preset.empty() ? scenario.model->name : scenario.train.preset;
}

/// Test runs of one scenario. On every rank.
class ProbeRuns {
public:
  ProbeRuns(engine::Ranks& ranks, const TrainPlan& plan, const TrainSettings& settings)
      : ranks_{ranks}, plan_{plan}, settings_{settings}, method_{plan.methods.front()} {
    const Scenario& scenario = method_.scenario;
    request_.schedule = plan.schedule;
    request_.clock = plan.clock;
    request_.seed = settings.seeds.front();
    request_.learning_rate = settings.learning_rates.front();
    request_.data = training::open_data(plan.data, training::model_shape(scenario),
                                        static_cast<std::uint64_t>(request_.seed));
    samples_ = settings.probe_samples > 0 ? settings.probe_samples : facts().train.samples / 2;
    if (samples_ == 0)  // data without an end
      samples_ = settings.iterations * SampleOrder{scenario}.samples();
    settings_.replay = false;
    settings_.compose = 0;
    settings_.engine.emulation = engine::Emulation::off;
    settings_.pace = device::Pace::real;
  }
  [[nodiscard]] const training::DataFacts& facts() const { return request_.data->facts(); }

  /// TESTRUN of algorithm 1.
  ProbeRun::Tested test(int batch, double rate, bool with_compression) {
    TrainMethod method = with_compression ? method_ : dense();
    Training& train = method.scenario.train;
    train.batch = divided(batch, method.scenario.parallel.replicas);
    if (with_compression) train.compress.keep = 1 - rate;
    train.buffers = 1;  // so that no part is fresh
    request_.method = &method;
    request_.iterations = static_cast<int>(
        std::max<std::int64_t>(1, samples_ / batch / method.scenario.parallel.microbatches));
    settings_.point_every = request_.iterations;
    const TimePoint began = now();
    const TrainCurve curve =
        with_watchdog(ranks_, [&] { return run_curve(ranks_, request_, settings_); });
    plan_.done(fmt::format("batch {}, rate {:.3f}", batch, rate));
    if (!ranks_.is_first()) return {};
    return {batch, rate, request_.iterations, smoothed_loss(curve.losses), now() - began};
  }

private:
  [[nodiscard]] TrainMethod dense() const {
    return train_method("none", method_.scenario, method_.optimizer);
  }

  engine::Ranks& ranks_;
  const TrainPlan& plan_;
  TrainSettings settings_;
  TrainMethod method_;
  TrainRequest request_;
  std::int64_t samples_ = 0;
};

nlohmann::ordered_json tested_json(const ProbeRun::Tested& run) {
  return {{"batch", run.batch},
          {"compression_rate", run.compression_rate},
          {"iterations", run.iterations},
          {"loss", run.loss},
          {"took_ns", run.took.count()}};
}

nlohmann::ordered_json probes_record(const ProbeRun& run, const Scenario& scenario,
                                     const TrainOptions& options,
                                     const nlohmann::json& environment) {
  nlohmann::ordered_json record = report::record_header(
      {.benchmark = "bench_train", .numbers = "measured", .command_line = options.command_line});
  record["scenario"] = scenario.name;
  record["scenario_text"] = scenario.text;
  record["environment"] = environment;
  nlohmann::ordered_json& probes = record["probes"];
  probes["model"] = run.model;
  probes["data"] = run.data.name;
  probes["base"] = tested_json(run.base);
  probes["tested"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < run.probes.size(); ++i) {
    nlohmann::ordered_json json = tested_json(run.tested[i]);
    json["g"] = run.probes[i].g;
    probes["tested"].push_back(std::move(json));
  }
  return record;
}

}  // namespace

double smoothed_loss(const std::vector<double>& losses) {
  constexpr double kMemory = 0.99;
  double average = losses.empty() ? 0 : losses.front();
  for (const double loss : losses) average = kMemory * average + (1 - kMemory) * loss;
  return average;
}

void check_probes(const Scenario& scenario, const TrainSettings& settings) {
  if (!is_sparse(scenario.train.compress.method))
    fail(
        "--probes: train.compress.method = \"{}\" has no compression rate. Take \"threshold\", "
        "say.",
        to_string(scenario.train.compress.method));
  if (settings.learning_rates.size() > 1 || settings.compute == TrainCompute::timed)
    fail(
        "--probes: all runs have one learning rate, and numbers. Give one --lr-grid, and no "
        "--compute timed.");
  const auto [least, most] = settings.probe_batches;
  if (least < scenario.parallel.replicas || least >= most)
    fail(
        "--probe-batches {},{}: no batches of {} replicas to choose from (each has a sample at "
        "least). Give MIN,MAX.",
        least, most, scenario.parallel.replicas);
}

ProbeRun run_probes(engine::Ranks& ranks, const TrainPlan& plan, const TrainSettings& settings) {
  ProbeRuns runs{ranks, plan, settings};
  ProbeRun run;
  run.data = runs.facts();
  run.model = probed_model(plan.methods.front().scenario);
  const auto [least, most] = settings.probe_batches;
  run.base = runs.test((least + most) / 2, 0, false);
  planner::ProbeSearch search{least, most, static_cast<std::uint64_t>(settings.seeds.front())};
  for (int i = 0; i < settings.probes; ++i) {
    const planner::ProbeSearch::Setting next = search.next();
    const ProbeRun::Tested tested = runs.test(next.batch, next.compression_rate, true);
    // What is probed next follows from it, on all ranks.
    const double g =
        std::stod(ranks.world().broadcast(fmt::format("{}", tested.loss - run.base.loss)));
    search.add(static_cast<double>(next.batch), next.compression_rate, g);
    if (ranks.is_first()) run.tested.push_back(tested);
  }
  run.probes = search.probes();
  return run;
}

std::string probes_csv(const ProbeRun& run, const std::string& command_line) {
  std::string csv =
      "model,version,batch,compression_rate,g,loss,base_loss,iterations,command,commit,took_ns\n";
  std::string command = command_line;
  std::ranges::replace(command, ',', ' ');
  for (std::size_t i = 0; i < run.probes.size(); ++i) {
    const planner::Probe& probe = run.probes[i];
    // The first one pays for what all are compared with.
    const Duration took = run.tested[i].took + (i == 0 ? run.base.took : Duration::zero());
    csv += fmt::format("{},longhaul,{},{},{},{},{},{},{},{},{}\n", run.model, probe.batch,
                       probe.compression_rate, probe.g, run.tested[i].loss, run.base.loss,
                       run.tested[i].iterations, command, git_commit(), took.count());
  }
  return csv;
}

void probe(engine::Ranks& ranks, const TrainPlan& plan, const TrainOptions& options,
           const TrainSettings& settings, Environment& environment) {
  const ProbeRun run = run_probes(ranks, plan, settings);
  const nlohmann::json after = environment.after();
  (void)on_rank0(ranks.world(), [&]() -> std::string {
    const std::string csv = probes_csv(run, options.command_line);
    fmt::print("{}", csv);
    if (options.out.empty()) return {};
    write_new_file(options.out / "probes.csv", csv);
    write_new_file(
        options.out / "record.json",
        report::json_text(probes_record(run, plan.methods.front().scenario, options, after)));
    return {};
  });
}

}  // namespace longhaul::harness
