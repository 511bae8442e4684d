// What do blocks of a model cost on this device? CrossPipe 6.1: times and memory of F, D, W, B and
// R of each stage and the time of a message, as a file of costs that scenarios include; below
// them the times of (operator, shape, type).
#include <nlohmann/json.hpp>

#include "harness/options/pipeline_options.hpp"
#include "harness/ranks/environment.hpp"
#include "harness/ranks/main.hpp"
#include "harness/ranks/transport_choice.hpp"
#include "harness/records/profile_output.hpp"

namespace longhaul::bench {
namespace {

ExitCode run(const ProfileSettings& options) {
  Ranks ranks{{deadline_of(options.deadline)}};
  const ProfileInput input = prepare_profile(ranks, options);
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
    const auto wrong = finish_profile(profile, input, options, ranks.count(), after);
    return std::string{wrong == 0 ? "0" : "1"};
  });
  ranks.host_ranks().mine().phase = Phase::finished;
  return static_cast<ExitCode>(code.front() - '0');
}

void declare(Arguments& arguments, ProfileSettings& options) {
  arguments.option("scenario", options.scenario, "scenario file (TOML) with a [model]");
  arguments
      .option("--schedule", options.schedule,
              "any schedule with the placement whose chunks are measured: 1f1b, zbv, ...")
      .shows_default();
  arguments.option("--device", options.device, "cpu (fp32) or cuda (bf16)")
      .shows_default()
      .one_of({"cpu", "cuda"});
  arguments.option("--samples", options.samples, "rounds over the blocks of each stage")
      .shows_default()
      .within(1, 1'000'000);
  add_shared_options(
      arguments, options,
      {{Shared::confidence,
        "go on until the 95% interval of the median of F + D + W is narrower than this: "
        "2%; --samples are then the least"}});
  arguments.option("--max-samples", options.max_samples, "the most rounds with --confidence")
      .within(1, 1'000'000);
  add_shared_options(arguments, options,
                     {{Shared::overrides},
                      {Shared::deadline},
                      {Shared::transport, transport_help()},
                      {Shared::ranks},
                      {Shared::out, "directory for costs.toml, operators.csv and record.json"},
                      {Shared::json},
                      {Shared::check}});
}

ExitCode main_of(int argc, char** argv) {
  ProfileSettings options;
  Arguments arguments{
      "Measures what blocks of a model cost on this device, for scenarios to include."};
  declare(arguments, options);
  options.command_line = command_line(argc, argv);
  if (const auto code = parse_arguments(arguments, argc, argv)) return *code;
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
