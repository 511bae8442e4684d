// What do blocks of a model cost on this device? CrossPipe 6.1: times and memory of F, D, W, B and
// R of each stage and the time of a message, as a file of costs that scenarios include; below
// them the times of (operator, shape, type). --prefill: what a served model's prompts take.
#include <optional>

#include <nlohmann/json.hpp>

#include "base/program/program.hpp"
#include "harness/environment/shared_options.hpp"
#include "harness/layers/prefill_times.hpp"
#include "harness/options/pipeline_options.hpp"
#include "harness/profile/collective_profile.hpp"
#include "harness/ranks/device_and_transport.hpp"
#include "harness/ranks/environment.hpp"
#include "harness/ranks/main.hpp"
#include "harness/records/profile_record.hpp"

namespace longhaul::bench {
namespace {

ExitCode run(const harness::ProfileSettings& options) {
  engine::Ranks ranks{{harness::deadline_of(options.deadline)}};
  const harness::ProfileInput input = harness::prepare_profile(ranks, options);
  const harness::DeviceKind device = harness::device_kind_of(options.device);
  harness::Environment environment{ranks, options.command_line};
  const comm::TransportChoice transport =
      harness::take_transport(ranks, comm::transport_kind_of(options.transport), device);
  const std::unique_ptr<nn::TensorOps> math = harness::make_tensor_ops(device, ranks);
  const std::unique_ptr<cuda::TaskTrace> trace = harness::prepare_trace(ranks, options);
  std::optional<Progress> progress;
  int parts = 0;
  const auto show = [&](int done, int total, const std::string& now) {
    if (!ranks.is_first()) return;
    if (!progress) progress.emplace("bench_profile", parts = total);
    progress->update(done, now);
  };
  harness::ModelProfile profile = harness::with_watchdog(ranks, [&] {
    return harness::profile_model(
        ranks, *math, input.scenario, input.schedule,
        {input.rule, harness::deadline_of(options.deadline), show, options.tasks, trace.get()});
  });
  std::vector<plan::Collective> collectives;
  harness::collectively([&] {
    collectives = collectives_to_profile(options, profile.message_size(), ranks.count());
  });
  profile.collectives = harness::with_watchdog(ranks, [&] {
    return harness::measure_profiled_collectives(
        ranks, collectives, input.rule.least, [&](const harness::CollectiveMeasurement& each) {
          show(parts, parts, to_text(each.predicted.collective.kind));
        });
  });
  progress.reset();
  nlohmann::json after = environment.after();
  if (!after.is_null()) after["transport"] = harness::transport_json(transport);
  const std::string code = harness::on_rank0(ranks.world(), [&] {
    const auto wrong = harness::finish_profile(profile, input, options, ranks, after);
    return std::string{wrong == 0 ? "0" : "1"};
  });
  ranks.host_ranks().mine().phase = comm::Phase::finished;
  return static_cast<ExitCode>(code.front() - '0');
}

struct ProfileOptions : harness::ProfileSettings {
  std::string prefill, contexts;  ///< lengths of prompts; empty: blocks of training
};

ExitCode run_prefill(const ProfileOptions& options) {
  engine::Ranks ranks{{harness::deadline_of(options.deadline)}};
  if (ranks.count() > 1) fail("--prefill: it takes one rank. Start it without scripts/mpi.");
  const auto math = harness::make_tensor_ops(harness::device_kind_of(options.device), ranks);
  const auto lengths = harness::prefill_lengths(options.prefill, options.contexts);
  harness::profile_prefills(*math, options, options.scenario, lengths, options.samples);
  ranks.host_ranks().mine().phase = comm::Phase::finished;
  return ExitCode::fine;
}

void declare(Arguments& arguments, ProfileOptions& options) {
  arguments.option("scenario", options.scenario, "scenario file (TOML) with a [model]");
  arguments
      .option("--schedule", options.schedule,
              "any schedule with the placement whose chunks are measured: 1f1b, zbv, ...")
      .shows_default();
  harness::add_device_option(arguments, options.device, "cpu (fp32) or cuda (bf16)")
      .one_of({"cpu", "cuda"});
  arguments.option("--samples", options.samples, "rounds over the blocks of each stage")
      .shows_default()
      .within(1, 1'000'000);
  harness::add_shared_options(
      arguments, options,
      {{harness::Shared::confidence,
        "go on until the 95% interval of the median of F + D + W is narrower than this: "
        "2%; --samples are then the least"}});
  arguments.option("--max-samples", options.max_samples, "the most rounds with --confidence")
      .within(1, 1'000'000);
  arguments.option("--collectives", options.collectives,
                   "sizes over the ranks, 64KiB..4MiB; none: leave them out (default: around that "
                   "of a message, on the CPU)");
  arguments.option("--prefill", options.prefill,
                   "16,512: instead prompts of so many tokens of the [prefill]; prefill.csv");
  arguments.option("--contexts", options.contexts, "512,2048: and after so many others");
  arguments.flag("--tasks", options.tasks,
                 "trace the kernels of each operator too (CUDA, by CUPTI): tasks.csv");
  harness::add_shared_options(
      arguments, options,
      {{harness::Shared::overrides},
       {harness::Shared::deadline},
       {harness::Shared::transport, harness::transport_help()},
       {harness::Shared::ranks},
       {harness::Shared::out,
        "directory for costs.toml, operators.csv, collectives.csv, tasks.csv and record.json"},
       {harness::Shared::json},
       {harness::Shared::check}});
}

ExitCode main_of(int argc, char** argv) {
  ProfileOptions options;
  Arguments arguments{
      "Measures what blocks of a model cost on this device, for scenarios to include."};
  declare(arguments, options);
  arguments.footer(harness::help_footer(
      {"scripts/mpi -n 2 build/bin/bench_profile benchmarks/scenarios/cpu-2dc.toml --out "
       "runs/costs"}));
  options.command_line = harness::command_line(argc, argv);
  if (const auto code = harness::parse_arguments(arguments, argc, argv)) return *code;
  harness::collectively([&] {
    if (options.check == !options.scenario.empty())
      fail("name a scenario, or --check alone (which brings its own). See bench_profile --help.");
    if (options.check) {
      options.samples = 3;
      options.scenario = "--check";
    }
    if (options.tasks && options.device != "cuda")
      fail(
          "--tasks with --device {}: tasks are what a GPU runs. Add --device cuda, or leave it "
          "out.",
          options.device);
    options.overrides.emplace_back("costs.file=");
    (void)harness::deadline_of(options.deadline);
    (void)comm::transport_kind_of(options.transport);
  });
  return options.prefill.empty() ? run(options) : run_prefill(options);
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  return longhaul::harness::run_main(argc, argv,
                                     [&] { return longhaul::bench::main_of(argc, argv); });
}
