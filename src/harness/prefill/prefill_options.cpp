#include "harness/prefill/prefill_options.hpp"

#include "base/program/option_values.hpp"
#include "base/unit_text.hpp"
#include "harness/options/credit.hpp"
#include "harness/options/pipeline_options.hpp"

namespace longhaul::harness {
namespace {

constexpr const char* kCareless = "careless";
constexpr int kMostInBacklog = 1'000'000;

void take_policy(const PrefillOptions& options, PrefillSettings& settings) {
  if (options.policy == kCareless) {
    settings.manners = prefill::Manners::careless;
    return;
  }
  settings.policy = choice<prefill::PlacementPolicy>("--policy", options.policy);
}

void take_load(const PrefillOptions& options, PrefillSettings& settings) {
  if (!options.window.empty()) prefill::set_window(options.window, settings.load);
  if (!options.backlog.empty()) {
    settings.backlog.emplace();
    settings.backlog->waiting = whole_number("--backlog", options.backlog, 1, kMostInBacklog);
    settings.backlog->iterations = options.pairs;
    if (!options.patience.empty())
      settings.backlog->patience = whole_number("--patience", options.patience, 0, kMostInBacklog);
    if (!options.rate.empty() || !options.poisson.empty() || !options.copies.empty())
      fail(
          "--backlog: a queue that never empties has no arrivals. Leave --rate, --poisson and "
          "--copies out.");
    return;
  }
  if (!options.patience.empty())
    fail("--patience: it has no effect without --backlog (no one is passed over). Leave it out.");
  if (!options.copies.empty())
    settings.load.copies = whole_number("--copies", options.copies, 1, prefill::kMostCopies);
  if (!options.rate.empty()) settings.load.rate = positive_number("--rate", options.rate);
  if (!options.poisson.empty())
    settings.load.poisson = positive_number("--poisson", options.poisson);
}

/// Requests come from clients: throws Error where something else says what they are.
void take_address(const PrefillOptions& options, PrefillSettings& settings) {
  if (options.listen.empty()) return;
  if (settings.controller != PrefillController::live)
    fail("--listen: a plan knows all requests before the run. Add --controller live.");
  for (const auto& [option, value] : {std::pair{"--requests", &options.requests},
                                      {"--backlog", &options.backlog},
                                      {"--rate", &options.rate},
                                      {"--poisson", &options.poisson},
                                      {"--copies", &options.copies},
                                      {"--window", &options.window}})
    if (!value->empty())
      fail("{}: with --listen clients say what arrives, and when. Leave one out.", option);
  settings.listen = prefill::socket_address("--listen", options.listen);
}

/// A run may be gone on with where a pair depends on no pair before it.
void require_resumable(const PrefillOptions& options, const PrefillSettings& settings) {
  if (!options.resume) return;
  if (options.out.empty()) fail("--resume: it goes on with the run in --out. Give --out DIR.");
  if (can_go_on(settings)) return;
  if (settings.controller == PrefillController::live)
    fail(
        "--resume: a live controller's answers follow from what happened before, which no file "
        "keeps. Leave --resume out.");
  fail(
      "--resume: the weights of real layers are kept nowhere. Leave --resume out, or compute "
      "timed blocks.");
}

/// A rank's, or that of a datacenter's controller, which is no rank of its own.
void take_fault(const PrefillOptions& options, PrefillSettings& settings) {
  constexpr std::string_view kController = "controller@";
  if (!options.fault.starts_with(kController)) {
    if (!options.fault.empty()) settings.engine.fault = engine::parse_fault(options.fault);
    return;
  }
  if (settings.controller != PrefillController::live)
    fail("--fault {}: a plan has no controller that could die. Give it to --controller live.",
         options.fault);
  const std::string text = options.fault.substr(kController.size());
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos)
    fail("--fault {}: write controller@DATACENTER:TIME, as controller@west:2s.", options.fault);
  settings.gone.push_back({text.substr(0, colon), parse_duration(text.substr(colon + 1))});
}

/// Who decides, what is sent, what is computed.
void declare_playing(Arguments& arguments, PrefillOptions& options) {
  arguments
      .option("--controller", options.controller,
              "planned: what the simulator filled; live: it decides while the run goes on")
      .shows_default();
  arguments.option("--overrun", options.overrun,
                   "of a live run: finish or kill a prefill that a block waits for");
  arguments.option("--signals", options.signals,
                   "of a live run: plan, signals or both (default), what it goes by");
  arguments.option("--kv", options.kv,
                   "layerwise (default) or whole: how keys and values go to decode ranks");
  arguments
      .option("--compute", options.compute,
              "timed: blocks and prompts take their modelled time; real: layers of both models")
      .shows_default();
  arguments
      .option("--pace", options.pace,
              "of real layers: modelled, at least the planned time; real, as long as they take")
      .shows_default();
}

}  // namespace

void declare(Arguments& arguments, PrefillOptions& options) {
  arguments.option("SCENARIO", options.scenario, "scenario (.toml) with a [prefill]");
  arguments.option("--schedule", options.schedule, "of training").shows_default();
  arguments.option("--requests", options.requests, "Azure's trace (.csv), or JSON lines");
  arguments.option("--pairs", options.pairs, "of stretches with prefill and without")
      .shows_default()
      .within(1, 10'000);
  arguments.option("--stretch", options.stretch, "iterations of a stretch")
      .shows_default()
      .within(1, 1'000);
  arguments.option("--warmup", options.warmup, "pairs before them, not measured")
      .shows_default()
      .within(0, 100);
  declare_playing(arguments, options);
  arguments
      .option("--policy", options.policy,
              "best-fit, earliest, or careless: a control that gives way to no block")
      .shows_default();
  arguments.option("--backlog", options.backlog,
                   "so many requests always wait, the file over and "
                   "over");
  arguments.option("--patience", options.patience,
                   "how often best-fit passes a request of a backlog over (default 256)");
  arguments.option("--rate", options.rate, "so many times as fast as the trace");
  arguments.option("--poisson", options.poisson, "requests a second, instead of its arrivals");
  arguments.option("--copies", options.copies, "of the trace, laid over each other, shifted");
  arguments.option("--window", options.window, "FROM,TO: its arrivals from FROM to before TO");
  arguments.option("--listen", options.listen,
                   "unix:PATH or tcp:PORT: requests of clients (longhaul send), not of a file");
  arguments.option("--credit", options.credit, kCreditHelp).shows_default();
  arguments.flag("--resume", options.resume,
                 "goes on with the planned run in --out after its last finished pair");
  arguments.flag("--no-report", options.no_report, "no report.html in --out");
  arguments.option("--fault", options.fault,
                   "for tests: kill@RANK:OPINDEX:PAIR, freeze@, controller@DATACENTER:TIME");
  add_shared_options(arguments, options,
                     {{Shared::overrides},
                      {Shared::deadline},
                      {Shared::ranks},
                      {Shared::out, "directory for record.json, trace.h5 and report.html"},
                      {Shared::json},
                      {Shared::check,
                       "tiny: a scenario of its own, and the answer is the exit "
                       "code"}});
  arguments.footer(help_footer(
      {"build/bin/bench_prefill benchmarks/scenarios/bubbletea.toml --schedule gpipe "
       "--set parallel.gradient_sync=none --requests "
       "benchmarks/requests/prompts.csv --backlog 512 --pairs 2 --ranks-per-process 16",
       "scripts/mpi -n 16 build/bin/bench_prefill benchmarks/scenarios/bubbletea.toml --schedule "
       "gpipe --set parallel.gradient_sync=none --requests benchmarks/requests/prompts.csv "
       "--backlog 512 --out runs/prefill"}));
}

PrefillSettings settings_of(const PrefillOptions& options) {
  PrefillSettings settings;
  take_policy(options, settings);
  settings.controller = choice<PrefillController>("--controller", options.controller);
  if (!options.overrun.empty()) {
    if (settings.controller == PrefillController::planned)
      fail("--overrun: planned prefills take their planned times. Give it to --controller live.");
    settings.overrun = choice<prefill::Overrun>("--overrun", options.overrun);
  }
  if (!options.signals.empty()) {
    if (settings.controller == PrefillController::planned)
      fail("--signals: a plan goes by itself alone. Give it to --controller live.");
    settings.signals = choice<prefill::Signals>("--signals", options.signals);
  }
  if (!options.kv.empty()) settings.kv = choice<prefill::KvSending>("--kv", options.kv);
  ComputeOptions compute;
  compute.compute = options.compute;
  settings.compute = compute_settings_of(compute);
  settings.pace = choice<device::Pace>("--pace", options.pace);
  if (settings.pace == device::Pace::real && !settings.compute.real)
    fail("--pace real: timed blocks take their planned times. Add --compute real.");
  settings.pairs = options.pairs;
  settings.stretch = options.stretch;
  settings.warmup = options.warmup;
  take_load(options, settings);
  take_address(options, settings);
  settings.engine.credit = credit_of(options.credit);
  settings.engine.streams = true;  // both kinds of stretches are played in the same way
  settings.deadline = deadline_of(options.deadline);
  take_fault(options, settings);
  if (options.scenario.empty())
    fail("bench_prefill: a file is missing. Name a scenario (.toml) with a [prefill].");
  require_resumable(options, settings);
  if (options.requests.empty() && !settings.listen)
    fail("bench_prefill: --requests is missing (who asks for what). Name a trace (.csv, .jsonl).");
  return settings;
}

}  // namespace longhaul::harness
