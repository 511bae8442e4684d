#include <nlohmann/json.hpp>

#include "base/version.hpp"
#include "cuda/accelerator.hpp"
#include "harness/collectives/collective_list.hpp"
#include "harness/environment/facts.hpp"
#include "harness/options/run_files.hpp"
#include "harness/profile/collective_profile.hpp"
#include "harness/ranks/device_and_transport.hpp"
#include "harness/ranks/main.hpp"
#include "harness/records/profile_record.hpp"
#include "report/record_file.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/generators/generate.hpp"

namespace longhaul::harness {
namespace {

constexpr const char* kTiny =
    "[model]\nlayers = 6\nhidden = 32\nintermediate = 64\nheads = 4\nkv_heads = 2\n"
    "sequence_length = 16\nmicrobatch_size = 2\nvocabulary = 64\n"
    "[parallel]\nstages = 2\nmicrobatches = 4\n";

ProfileInput input_of(const std::string& text, const ProfileSettings& options) {
  ProfileInput input{scenario::parse_scenario(text, options.scenario, options.overrides), {}, {}};
  input.schedule = schedule::generate(options.schedule, input.scenario);
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

CostsOrigin origin_of(const ProfileSettings& options, const ProfileInput& input,
                      const nlohmann::json& environment, int ranks) {
  const nlohmann::json& host = environment["hosts"][0];
  const std::string processor = host.contains("processor") && host["processor"].is_string()
                                    ? host["processor"].get<std::string>()
                                    : "a processor without a name";
  return {options.device == "cpu" ? "cpu: " + processor : cuda::accelerators().front().name,
          input.schedule.name,
          input.schedule.chunks / input.schedule.devices,
          ranks,
          now_in_words(),
          options.command_line,
          std::string{git_commit()}};
}

nlohmann::ordered_json record_of(const ModelProfile& profile, const ProfileInput& input,
                                 const ProfileSettings& options, const nlohmann::json& environment,
                                 const std::vector<std::string>& problems) {
  nlohmann::ordered_json record = report::record_header(
      {.benchmark = "bench_profile", .numbers = "measured", .command_line = options.command_line});
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

}  // namespace

ProfileInput prepare_profile(engine::Ranks& ranks, const ProfileSettings& options) {
  const std::string text = on_rank0(ranks.world(), [&] {
    if (!options.out.empty()) require_free(options.out);
    return options.check ? kTiny
                         : scenario::load_scenario(options.scenario, options.overrides).text;
  });
  ProfileInput input;
  collectively([&] { input = input_of(text, options); });
  return input;
}

std::vector<plan::Collective> collectives_to_profile(const ProfileSettings& options, Bytes message,
                                                     int ranks) {
  const bool is_asked = !options.collectives.empty() && options.collectives != "none";
  if (options.device != "cpu" && is_asked)
    fail(
        "--collectives {} with --device {}: the numbers of collectives lie in the memory of the "
        "host here. Leave it out.",
        options.collectives, options.device);
  if (options.device != "cpu" || options.collectives == "none") return {};
  return profiled_collectives(
      ranks, is_asked ? listed_sizes("--collectives", options.collectives) : sizes_around(message));
}

std::unique_ptr<cuda::TaskTrace> prepare_trace(engine::Ranks& ranks,
                                               const ProfileSettings& options) {
  std::unique_ptr<cuda::TaskTrace> trace;
  if (options.tasks)
    (void)on_rank0(ranks.world(), [&] {
      trace = std::make_unique<cuda::TaskTrace>();
      return std::string{};
    });
  return trace;
}

std::size_t finish_profile(const ModelProfile& profile, const ProfileInput& input,
                           const ProfileSettings& options, const engine::Ranks& ranks,
                           const nlohmann::json& environment) {
  const CostsOrigin origin = origin_of(options, input, environment, ranks.count());
  const std::string costs = costs_text(profile, input.scenario, origin);
  const auto problems = profile_problems(profile, input.scenario, costs);
  const auto record = record_of(profile, input, options, environment, problems);
  if (options.json)
    fmt::print("{}\n", record.dump(2));
  else
    fmt::print("{}{}", profile_table(profile, ranks.count()), transport_note(environment));
  for (const std::string& problem : problems) fmt::print(stderr, "wrong: {}\n", problem);
  if (!options.out.empty()) {
    write_new_file(options.out / "operators.csv", operators_csv(profile.operators));
    if (profile.tasks) write_new_file(options.out / "tasks.csv", tasks_csv(*profile.tasks));
    if (!profile.collectives.empty())
      write_new_file(options.out / "collectives.csv", collectives_csv(profile.collectives, ranks));
    write_new_file(options.out / "record.json", record.dump(2) + "\n");
    write_new_file(options.out / "costs.toml", costs);
  }
  return problems.size();
}

}  // namespace longhaul::harness
