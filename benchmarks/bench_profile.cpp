// What do blocks of a model cost on this device? CrossPipe 6.1: times and memory of F, D, W, B and
// R of each stage and the time of a message, as a file of costs that scenarios include; below
// them the times of (operator, shape, type).
#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/chrono.h>
#include <nlohmann/json.hpp>

#include "base/version.hpp"
#include "cuda/accelerator.hpp"
#include "harness/options/pipeline_options.hpp"
#include "harness/options/record_files.hpp"
#include "harness/ranks/environment.hpp"
#include "harness/ranks/main.hpp"
#include "harness/ranks/transport_choice.hpp"
#include "harness/records/profile_record.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/generators/generate.hpp"

namespace longhaul::bench {
namespace {

constexpr const char* kTiny =
    "[model]\nlayers = 6\nhidden = 32\nintermediate = 64\nheads = 4\nkv_heads = 2\n"
    "sequence_length = 16\nmicrobatch_size = 2\nvocabulary = 64\n"
    "[parallel]\nstages = 2\nmicrobatches = 4\n";

struct Options {
  std::string scenario;
  std::string schedule = "1f1b";
  std::string device = "cpu";
  int samples = 20;
  std::string confidence;
  std::optional<int> max_samples;
  std::vector<std::string> overrides;
  std::string deadline = "10s";
  std::string transport = "auto";
  int ranks_per_process = 1;
  std::filesystem::path out;
  bool check = false;
  bool json = false;
  std::string command_line;
};

/// What all ranks measure.
struct Input {
  Scenario scenario;
  Schedule schedule;
  StoppingRule rule;
};

Input input_of(const std::string& text, const Options& options) {
  Input input{parse_scenario(text, options.scenario, options.overrides), {}, {}};
  input.schedule = generate(options.schedule, input.scenario);
  if (input.schedule.copies > 1)
    fail("{} runs {} copies of the model (a device's costs are of one). Name 1f1b, zbv, ...",
         options.schedule, input.schedule.copies);
  if (input.scenario.model && input.scenario.model->tensor_parallel > 1)
    fail(
        "model.tensor_parallel = {} (a device is measured by one rank). Measure with --set "
        "model.tensor_parallel=1.",
        input.scenario.model->tensor_parallel);
  (void)profiled_devices(input.schedule, input.scenario);
  input.rule = stopping_rule(options.confidence, options.max_samples, options.samples, "samples");
  return input;
}

/// Rank 0 reads the scenario; costs that it includes are those that are to be measured.
Input prepare(Ranks& ranks, const Options& options) {
  const std::string text = on_rank0(ranks.world(), [&] {
    if (!options.out.empty()) require_free(options.out);
    return options.check ? kTiny : load_scenario(options.scenario, options.overrides).text;
  });
  Input input;
  collectively([&] { input = input_of(text, options); });
  return input;
}

std::string now_in_words() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

CostsOrigin origin_of(const Options& options, const Input& input, const nlohmann::json& environment,
                      int ranks) {
  const nlohmann::json& host = environment["hosts"][0];
  const std::string processor = host.contains("processor") && host["processor"].is_string()
                                    ? host["processor"].get<std::string>()
                                    : "a processor without a name";
  return {options.device == "cpu" ? "cpu: " + processor : accelerators().front().name,
          input.schedule.name,
          input.schedule.chunks / input.schedule.devices,
          ranks,
          now_in_words(),
          options.command_line,
          std::string{git_commit()}};
}

nlohmann::ordered_json record_of(const ModelProfile& profile, const Input& input,
                                 const Options& options, const nlohmann::json& environment,
                                 const std::vector<std::string>& problems) {
  nlohmann::ordered_json record;
  record["schema_version"] = 1;
  record["benchmark"] = "bench_profile";
  record["numbers"] = "measured";
  record["git_commit"] = git_commit();
  record["command_line"] = options.command_line;
  record["device"] = options.device;
  record["schedule"] = input.schedule.name;
  record["stopping"] = rule_json(input.rule);
  record["check"] = problems.empty() ? "ok" : "wrong";
  record["problems"] = problems;
  record.update(profile_json(profile));
  record["environment"] = environment;
  record["scenario"] = input.scenario.text;
  return record;
}

/// On rank 0: shows and writes what was measured; how many things are wrong with it.
std::size_t finish(const ModelProfile& profile, const Input& input, const Options& options,
                   const CostsOrigin& origin, const nlohmann::json& environment) {
  const std::string costs = costs_text(profile, input.scenario, origin);
  const auto problems = profile_problems(profile, input.scenario, costs);
  const auto record = record_of(profile, input, options, environment, problems);
  if (options.json)
    fmt::print("{}\n", record.dump(2));
  else
    fmt::print("{}{}", profile_table(profile, origin.ranks), transport_note(environment));
  for (const std::string& problem : problems) fmt::print(stderr, "wrong: {}\n", problem);
  if (!options.out.empty()) {
    write_new_file(options.out / "operators.csv", operators_csv(profile.operators));
    write_new_file(options.out / "record.json", record.dump(2) + "\n");
    write_new_file(options.out / "costs.toml", costs);
  }
  return problems.size();
}

ExitCode run(const Options& options) {
  Ranks ranks{{deadline_of(options.deadline)}};
  const Input input = prepare(ranks, options);
  const DeviceKind device = device_kind_of(options.device);
  Environment environment{ranks, options.command_line};
  const TransportChoice transport =
      take_transport(ranks, transport_kind_of(options.transport), device);
  const std::unique_ptr<TensorOps> math = make_math(device, ranks);
  const ModelProfile profile = with_watchdog(ranks, [&] {
    return profile_model(ranks, *math, input.scenario, input.schedule,
                         {input.rule, deadline_of(options.deadline)});
  });
  nlohmann::json after = environment.after();
  if (!after.is_null()) after["transport"] = transport_json(transport);
  const std::string code = on_rank0(ranks.world(), [&] {
    const CostsOrigin origin = origin_of(options, input, after, ranks.count());
    return std::string{finish(profile, input, options, origin, after) == 0 ? "0" : "1"};
  });
  ranks.host_ranks().mine().phase = Phase::finished;
  return static_cast<ExitCode>(code.front() - '0');
}

void declare(CLI::App& app, Options& options) {
  app.add_option("scenario", options.scenario, "scenario file (TOML) with a [model]");
  app.add_option("--schedule", options.schedule,
                 "any schedule with the placement whose chunks are measured: 1f1b, zbv, ...")
      ->capture_default_str();
  app.add_option("--device", options.device, "cpu (fp32) or cuda (bf16)")
      ->capture_default_str()
      ->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--samples", options.samples, "rounds over the blocks of each stage")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--confidence", options.confidence,
                 "go on until the 95% interval of the median of F + D + W is narrower than this: "
                 "2%; --samples are then the least");
  app.add_option("--max-samples", options.max_samples, "the most rounds with --confidence")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--set", options.overrides, "PATH=VALUE: overrides the scenario")
      ->allow_extra_args(false);
  app.add_option("--deadline", options.deadline, "end a run that hangs for so long")
      ->capture_default_str();
  add_transport_option(app, options.transport);
  add_ranks_per_process(app, options.ranks_per_process);
  app.add_option("--out", options.out, "directory for costs.toml, operators.csv and record.json");
  app.add_flag("--json", options.json, "print the record instead of a table");
  app.add_flag("--check", options.check, "a tiny model; the answer is the exit code");
}

ExitCode main_of(int argc, char** argv) {
  Options options;
  CLI::App app{"Measures what blocks of a model cost on this device, for scenarios to include."};
  declare(app, options);
  options.command_line = command_line(argc, argv);
  if (const auto code = parse_arguments(app, argc, argv)) return *code;
  collectively([&] {
    if (options.check == !options.scenario.empty())
      fail("name a scenario, or --check alone (which brings its own). See bench_profile --help.");
    if (options.check) {
      options.samples = 3;
      options.scenario = "--check";
    }
    options.overrides.emplace_back("costs.file=");
    (void)deadline_of(options.deadline);
    (void)transport_kind_of(options.transport);
  });
  return run(options);
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  return longhaul::bench::run_main(argc, argv,
                                   [&] { return longhaul::bench::main_of(argc, argv); });
}
