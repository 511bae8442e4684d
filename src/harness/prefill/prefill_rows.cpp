#include "harness/prefill/prefill_rows.hpp"

#include "base/index.hpp"
#include "base/text_file.hpp"
#include "base/version.hpp"
#include "harness/options/run_files.hpp"
#include "harness/prefill/pair_journal.hpp"
#include "harness/prefill/prefill_record.hpp"
#include "harness/prefill/stopped_run.hpp"
#include "plan/rows.hpp"
#include "report/host_load.hpp"
#include "report/page/reported_run.hpp"
#include "report/tables.hpp"
#include "report/watched_run.hpp"
#include "sim/simulate.hpp"

namespace longhaul::harness {
namespace {

Timeline predicted_rows(const PlannedStretches& planned, const LivePrediction& predicted,
                        const PrefillSettings& settings) {
  Timeline timeline;
  for (int pair = 0; pair < settings.pairs; ++pair)
    plan::append_rows(timeline, planned.training,
                      sim::simulate(plan::with_noise(planned.training, planned.scenario.run, pair)),
                      pair);
  for (int pair = 0; pair < settings.pairs; ++pair) {
    const FilledStretch stretch = predicted.stretches.empty() ? planned.fill(pair, settings)
                                                              : predicted.stretches[to_size(pair)];
    plan::append_rows(timeline, stretch.filled.plan, stretch.predicted, pair);
  }
  return timeline;
}

/// The scenario's text, and the ranks that serve, which rows are of, too.
std::string text_with_services(const Scenario& scenario) {
  std::string text = scenario.text;
  for (const ServiceRanks& each : scenario.services)
    if (index(each.datacenter) < scenario.datacenters.size())
      text += fmt::format("\n[[service]]\nrole = \"{}\"\ndatacenter = \"{}\"\ncount = {}\n",
                          to_string(each.role), scenario.datacenters[index(each.datacenter)].name,
                          each.count);
  return text;
}

/// FNV-1a of requests and of where they were placed: many, which only need to be the same ones.
std::string digest_of(const PlannedStretches& planned) {
  std::uint64_t digest = 0xcbf29ce484222325;
  const auto add = [&](std::uint64_t number) {
    for (int i = 0; i < 8; ++i) digest = (digest ^ (number >> (8 * i) & 0xff)) * 0x100000001b3;
  };
  for (const prefill::Request& each : planned.requests) {
    add(static_cast<std::uint64_t>(each.arrival.count()));
    add(static_cast<std::uint64_t>(each.tokens));
    for (const char letter : each.model) add(static_cast<unsigned char>(letter));
  }
  for (const prefill::Decision& each : planned.decisions) {
    add(static_cast<std::uint64_t>(each.start.count()));
    add(static_cast<std::uint64_t>(each.pipeline));
  }
  return fmt::format("{} requests, {} ops, {} ns, {:016x}", planned.requests.size(),
                     planned.training.ops.size(), planned.stretch_time().count(), digest);
}

nlohmann::json asked_of_prefill(const PlannedStretches& planned, const PrefillOptions& options) {
  return {{"scenario", planned.scenario.text},
          {"--schedule", options.schedule},
          {"--requests", options.requests},
          {"--policy", options.policy},
          {"--controller", options.controller},
          {"--overrun", options.overrun},
          {"--signals", options.signals},
          {"--backlog", options.backlog},
          {"--pairs", options.pairs},
          {"--stretch", options.stretch},
          {"--kv", options.kv},
          {"--compute", options.compute},
          {"--patience", options.patience},
          {"--rate", options.rate},
          {"--poisson", options.poisson},
          {"--copies", options.copies},
          {"--window", options.window},
          {"--credit", options.credit},
          {"--pace", options.pace},
          {"plan", digest_of(planned)}};
}

nlohmann::json announced_pairs(const PlannedStretches& planned, const PrefillSettings& settings,
                               const nlohmann::json& environment) {
  report::AnnouncedRun run{.benchmark = "bench_prefill", .unit = "stretch"};
  run.series.push_back({.name = planned.schedule.name,
                        .total = settings.pairs,
                        .predicted_ns = static_cast<double>(planned.stretch_time().count())});
  run.series.push_back({.name = planned.schedule.name + "+prefill", .total = settings.pairs});
  run.series_total = 2;
  if (environment.is_object()) run.cores = report::busiest_host(environment).cores;
  return report::entry_of(run);
}

}  // namespace

PrefillRows::PrefillRows(engine::Ranks& ranks, const PlannedStretches& planned,
                         const PrefillOptions& options, const LivePrediction& predicted,
                         const PrefillSettings& settings, Environment& environment,
                         const nlohmann::json& before)
    : environment_{environment}, credit_{settings.engine.credit} {
  StreamRequest request;
  request.out = options.out;
  request.resume = options.resume;
  if (options.resume && ranks.is_first()) {
    earlier_.pairs = pairs_of(report::read_journal(options.out / report::kJournalName));
    request.together = static_cast<int>(earlier_.pairs.size());
  }
  request.asked = asked_of_prefill(planned, options);
  request.info.creator = fmt::format("bench_prefill {}", version());
  request.info.git_commit = git_commit();
  request.info.command_line = options.command_line;
  request.info.scenario = text_with_services(planned.scenario);
  request.info.time_scale = planned.time_scale;
  nlohmann::json facts = before;
  facts["lateness_credit_ns"] = credit_.count();
  request.info.environment = facts.dump();
  directory_.emplace(
      ranks, request, 2, [&] { return predicted_rows(planned, predicted, settings); },
      environment.clock().offset);
  schedule_ = planned.schedule.name;
  earlier_.count = directory_->finished(0);
  if (!ranks.is_first()) return;
  earlier_.pairs.resize(to_size(earlier_.count));
  noted_ = earlier_.pairs.size();
  journal_ = std::make_unique<Journal>(options.out);
  journal_->add(part_entry(options.command_line, earlier_.count));
  journal_->add(announced_pairs(planned, settings, before));
}

void PrefillRows::note(const std::vector<StretchPair>& pairs) {
  if (!journal_ || pairs.size() == noted_) return;
  noted_ = pairs.size();
  const StretchPair& pair = pairs.back();
  const auto add = [&](int series, const std::string& name, Duration took) {
    journal_->add({{"watched",
                    entry_of(report::FinishedStep{.series = series,
                                                  .name = name,
                                                  .done = static_cast<int>(pairs.size()),
                                                  .took_ns = static_cast<double>(took.count())})}});
  };
  add(0, schedule_, pair.without.wall);
  add(1, schedule_ + "+prefill", pair.with.wall);
  // After its rows, which are on the disk: a pair that is found here has them.
  journal_->add(entry_of_pair(static_cast<int>(pairs.size()) - 1, pair));
}

StretchKeeper PrefillRows::keeper() {
  return
      [this](bool with_prefill, int pair, const Plan& plan, const engine::IterationResult& result) {
        engine::IterationResult kept = result;
        kept.iteration = pair;
        directory_->keep(with_prefill ? 1 : 0, plan, kept);
        directory_->flush();
      };
}

void PrefillRows::finish(nlohmann::json environment, StreamDirectory::Ends ends) {
  environment["lateness_credit_ns"] = credit_.count();
  // The drift of clocks is known for this part of the run alone.
  directory_->finish(
      earlier_.count > 0 ? std::vector<trace::RankClock>{} : environment_.rank_clocks(),
      environment, ends);
}

nlohmann::json PrefillRows::parts() const {
  return journal_ ? parts_of(journal_->read()) : nlohmann::json();
}

void PrefillRows::forget() {
  if (journal_) journal_->remove();
}

std::string check_of_complete(const PlannedStretches& planned, const PrefillOptions& options) {
  const std::filesystem::path file = options.out / "record.json";
  if (!options.resume || !is_complete_stream(options.out) || !std::filesystem::exists(file))
    return {};
  (void)kept_input(options.out, asked_of_prefill(planned, options));
  const auto record = nlohmann::json::parse(read_text_file(file.string()), nullptr, false);
  if (!record.is_object() || !record.contains("check"))
    fail("{} is damaged (no record). Give --out another directory.", file.string());
  fmt::print(stderr, "longhaul: {} is complete: nothing is left to run\n", options.out.string());
  const std::string wrong = record.value("wrong", "");
  if (!wrong.empty()) fmt::print(stderr, "longhaul: {}\n", wrong);
  return wrong.empty() ? record["check"].get<std::string>() : "wrong";
}

void make_tiny(PrefillOptions& options) {
  options.scenario = "--check";
  options.schedule = options.kv.empty() ? "gpipe" : "1f1b";
  if (options.listen.empty()) {
    options.requests = "--check";
    options.pairs = 3;
  }
  options.stretch = options.compute == "real" ? 1 : 2;
  options.warmup = 1;
}

namespace {

constexpr const char* kTinyCosts = R"([costs]
forward = "4ms"
backward = "8ms"
message = "1MiB"
activation = "1MiB"
weights = "1MiB"
)";
/// Layers that take far less than their forward of 19 ms.
constexpr const char* kTinyModel = R"([model]
name = "tiny"
layers = 6
hidden = 32
intermediate = 64
heads = 4
kv_heads = 2
vocabulary = 64
sequence_length = 16
achieved_flops = "0.05GFLOP/s"
)";

}  // namespace

std::map<std::string, std::string> tiny_input(const std::string& kv, bool real) {
  // Slow enough that messages of training meet a slice.
  const std::string sends = kv.empty() ? "" : R"(
decode = {rate = "15Mbps", latency = "500us", slice = "4KiB", first_token = "2ms"}
[[node]]
datacenter = "west"
internal = "4Gbps"
)";
  return {{"scenario", R"([scenario]
name = "tiny prefill"
)" + std::string{real ? kTinyModel : kTinyCosts} +
                           R"([parallel]
stages = 2
replicas = 2
microbatches = 2
gradient_sync = ")" + (real ? "all-reduce" : "none") +
                           R"("
[[datacenter]]
name = "west"
stages = [0, 1]
[prefill]
model = {layers = 6, hidden = 64, intermediate = 128, heads = 4, kv_heads = 4, head_size = 16, vocabulary = 100}
achieved_flops = "0.006TFLOP/s"
floor = "1ms"
stages = 2
hop = "100us"
guard = ")" + (real ? "15ms" : "1ms") +
                           "\"\n" + sends},
          {"requests",
           "{\"timestamp\": 0, \"input_length\": 60}\n{\"timestamp\": 5, \"input_length\": 20}\n"
           "{\"timestamp\": 20, \"input_length\": 80}\n{\"timestamp\": 40, \"input_length\": 10}\n"
           "{\"timestamp\": 60, \"input_length\": 5}\n"}};
}

void check_rank_count(const PlannedStretches& planned, const engine::Ranks& ranks,
                      const PrefillOptions& options) {
  const Scenario& scenario = planned.scenario;
  if (scenario.ranks() == ranks.count()) return;
  fail(
      "scenario {} needs {} ranks ({} that train, {} that serve), but {} are running. Start it "
      "with "
      "scripts/mpi -n {} build/bin/bench_prefill {} ...",
      scenario.name, scenario.ranks(), scenario.training_ranks(),
      scenario.ranks() - scenario.training_ranks(), ranks.count(), scenario.ranks(),
      options.scenario);
}

std::string report_prefill(const PlannedStretches& planned, const PrefillRun& run,
                           const PrefillOptions& options, const PrefillSettings& settings,
                           const nlohmann::json& environment) {
  const auto record = prefill_record(planned, run, options, settings, environment);
  if (options.json)
    fmt::print("{}\n", record.dump(2));
  else
    fmt::print("{}", prefill_text(record));
  std::fflush(stdout);
  if (!options.out.empty()) {
    write_new_file(options.out / "record.json", record.dump(2) + "\n");
    if (!options.no_report) fmt::print(stderr, "{}", report::write_page_of_run(options.out));
  }
  const std::string why = why_not_sound(run);
  if (!why.empty()) fmt::print(stderr, "longhaul: {}\n", why);
  if (run.is_stopped) fmt::print(stderr, "longhaul: {}\n", stopped_text(run, options, settings));
  return why;
}

}  // namespace longhaul::harness
