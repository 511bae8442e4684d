// How much prefill do the bubbles of this training hold, at what TTFT, and does training notice?
// Plays pairs of stretches of iterations, with prefill and without, in seeded order.
#include <nlohmann/json.hpp>

#include "base/program/program.hpp"
#include "base/text_file.hpp"
#include "harness/options/run_files.hpp"
#include "harness/prefill/live_pairs.hpp"
#include "harness/prefill/prefill_rows.hpp"
#include "harness/prefill/stopped_run.hpp"
#include "harness/ranks/environment.hpp"
#include "harness/ranks/main.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul::bench {
namespace {

using harness::PrefillOptions;
using harness::PrefillSettings;

/// Rank 0 reads the files, and every rank takes their text and plans the same.
harness::PlannedStretches plan_run(engine::Ranks& ranks, const PrefillOptions& options,
                                   const PrefillSettings& settings) {
  const std::string text = harness::on_rank0(ranks.world(), [&] {
    if (options.check)
      return nlohmann::json(harness::tiny_input(options.kv, settings.compute.real)).dump();
    const Scenario scenario = scenario::load_scenario(options.scenario, options.overrides);
    if (!options.out.empty() && !options.resume) harness::require_free(options.out);
    const std::string requests =
        options.requests.empty() ? std::string{} : read_text_file(options.requests);
    return nlohmann::json{{"scenario", scenario.text}, {"requests", requests}}.dump();
  });
  const auto handed = nlohmann::json::parse(text);
  harness::PlannedStretches planned;
  harness::collectively([&] {
    planned = harness::plan_stretches(
        scenario::parse_scenario(handed["scenario"].get<std::string>(), options.scenario,
                                 options.overrides),
        options.schedule, handed["requests"].get<std::string>(), options.requests, settings);
    harness::check_real_stretches(planned, settings);
    harness::check_rank_count(planned, ranks, options);
  });
  return planned;
}

ExitCode run(const PrefillOptions& options, const PrefillSettings& settings) {
  engine::Ranks ranks{{.deadline = settings.deadline, .drains = true}};
  const harness::PlannedStretches planned = plan_run(ranks, options, settings);
  const std::string complete = harness::on_rank0(
      ranks.world(), [&] { return harness::check_of_complete(planned, options); });
  if (!complete.empty()) return complete == "ok" ? ExitCode::fine : ExitCode::answer_is_no;
  harness::Environment environment{ranks, options.command_line};
  PrefillSettings played = settings;
  played.engine.run = planned.scenario.run;
  if (!ranks.host_ranks().all_local()) played.engine.clock_offset = environment.clock().offset;
  const nlohmann::json before = environment.before();
  harness::LivePrediction predicted;
  if (played.controller == harness::PrefillController::live && ranks.is_first()) {
    const std::string warning = harness::warning_of(harness::short_of_slices(planned, played));
    if (!warning.empty()) fmt::print(stderr, "longhaul: {}\n", warning);
    predicted = harness::predict_live(planned, played);
  }
  std::optional<harness::PrefillRows> rows;
  if (!options.out.empty())
    rows.emplace(ranks, planned, options, predicted, played, environment, before);
  std::optional<Progress> progress;
  if (ranks.is_first()) progress.emplace("bench_prefill", settings.warmup + settings.pairs);
  int done = rows ? rows->earlier().count : 0;
  const harness::PrefillRun result = harness::with_watchdog(ranks, [&] {
    return harness::run_pairs(ranks, planned, predicted, played, environment.clock().offset,
                              rows ? rows->earlier() : harness::EarlierPairs{},
                              rows ? rows->keeper() : harness::StretchKeeper{},
                              [&](const std::vector<harness::StretchPair>& pairs) {
                                environment.watch_load();
                                if (rows) rows->note(pairs);
                                if (progress) progress->update(++done, planned.schedule.name);
                              });
  });
  nlohmann::json after = environment.after();
  const bool goes_on = result.is_stopped && harness::can_go_on(played);
  using Ends = harness::StreamDirectory::Ends;
  if (rows) rows->finish(after, goes_on ? Ends::goes_on : Ends::here);
  if (rows && ranks.is_first() && !rows->parts().is_null()) after["parts"] = rows->parts();
  const std::string why = harness::on_rank0(ranks.world(), [&] {
    return harness::report_prefill(planned, result, options, played, after);
  });
  if (rows && !goes_on) rows->forget();
  ranks.host_ranks().mine().phase = comm::Phase::finished;
  if (!why.empty()) return ExitCode::answer_is_no;
  return result.is_stopped ? harness::kDrained : ExitCode::fine;
}

ExitCode main_of(int argc, char** argv) {
  PrefillOptions options;
  Arguments arguments{"Prefill in the bubbles of training: predicted against measured."};
  harness::declare(arguments, options);
  options.command_line = harness::command_line(argc, argv);
  if (const auto code = harness::parse_arguments(arguments, argc, argv)) return *code;
  if (options.check) harness::make_tiny(options);
  PrefillSettings settings;
  harness::collectively([&] { settings = harness::settings_of(options); });
  return run(options, settings);
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  return longhaul::harness::run_main(argc, argv,
                                     [&] { return longhaul::bench::main_of(argc, argv); });
}
