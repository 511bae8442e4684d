#include "harness/checkpoint/resume.hpp"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>

#include <fmt/chrono.h>

#include "harness/checkpoint/resume_journal.hpp"
#include "harness/checkpoint/run_segments.hpp"
#include "harness/options/run_files.hpp"
#include "harness/ranks/main.hpp"
#include "report/host_load.hpp"
#include "report/watched_run.hpp"
#include "trace/hdf5/new_file.hpp"

namespace longhaul::harness {
namespace {

using Json = nlohmann::json;

/// An iteration over all ranks; complete on rank 0.
struct WholeIteration {
  engine::IterationResult sums;
  Duration first = Duration::max(), last = Duration::min();  ///< as in IterationNote
};

WholeIteration whole_of(const comm::Communicator& world, const IterationNote& note) {
  const engine::IterationResult& mine = note.result;
  struct Parts {
    engine::Checks checks;
    engine::LeaseCost lease;
    engine::Lateness lateness;
    engine::CreditUse credit;
    engine::ShadowTime end;
    std::int64_t transfers = 0;
    Duration total{}, longest{};
    Duration first{}, last{};
  };
  static_assert(std::is_trivially_copyable_v<Parts>);
  const Parts part{mine.checks, mine.lease,     mine.lateness,       mine.credit,
                   mine.end,    mine.transfers, mine.transfer_total, mine.transfer_longest,
                   note.first,  note.last};
  std::vector<int> counts;
  const auto bytes = world.gather(std::as_bytes(std::span{&part, 1}), counts);
  WholeIteration whole;
  engine::IterationResult& sums = whole.sums;
  for (std::size_t at = 0; at + sizeof(Parts) <= bytes.size(); at += sizeof(Parts)) {
    Parts other;
    std::memcpy(&other, bytes.data() + at, sizeof(Parts));
    engine::IterationResult one;
    one.checks = other.checks;
    one.lease = other.lease;
    one.lateness = other.lateness;
    one.credit = other.credit;
    sums.end.seen = std::max(sums.end.seen, other.end.seen);
    sums.end.shadow = std::max(sums.end.shadow, other.end.shadow);
    one.transfers = other.transfers;
    one.transfer_total = other.total;
    one.transfer_longest = other.longest;
    add(sums, one);
    whole.first = std::min(whole.first, other.first);
    whole.last = std::max(whole.last, other.last);
  }
  return whole;
}

Json part_of(const trace::RunInfo& info, const std::vector<EarlierIterations>& earlier) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  Json part = {{"time", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(seconds))},
               {"git_commit", info.git_commit},
               {"command_line", info.command_line},
               {"hosts", Json::array()},
               {"finished_before", Json::array()}};
  const Json environment = Json::parse(info.environment, nullptr, false);
  if (environment.is_object() && environment.contains("hosts"))
    for (const Json& host : environment["hosts"]) part["hosts"].push_back(host["name"]);
  for (const EarlierIterations& each : earlier) part["finished_before"].push_back(each.count);
  return part;
}

/// For `longhaul watch`.
Json announced(const PipelineInput& input, const trace::RunInfo& info) {
  report::AnnouncedRun run{.benchmark = "bench_pipeline", .unit = "iteration"};
  for (const PlannedSchedule& planned : input.schedules) {
    const Duration end = std::ranges::max_element(planned.predicted, {}, &OpTime::end)->end;
    run.series.push_back({.name = planned.schedule.name,
                          .total = input.iterations,
                          .predicted_ns = static_cast<double>(end.count())});
  }
  run.series_total = static_cast<int>(run.series.size());
  run.warmup = input.warmup;
  run.ends_by_rule = !input.stopping.is_fixed();
  run.time_scale = input.time_scale;
  const Json environment = Json::parse(info.environment, nullptr, false);
  if (environment.is_object()) run.cores = report::busiest_host(environment).cores;
  return report::entry_of(run);
}

/// Another version of the program may lower the same schedules to other rows.
void require_same_rows(const Timeline& kept, const Timeline& planned,
                       const std::filesystem::path& directory) {
  if (kept.rows == planned.rows && kept.schedules == planned.schedules) return;
  fail(
      "{} cannot be resumed (this version of the program predicts other rows for it). Use the "
      "version that began it, or give --out another directory.",
      directory.string());
}

/// For the end of a run that is told to end.
std::string kept_text(const std::filesystem::path& directory, int ranks,
                      const std::optional<int>& wanted, bool can_go_on) {
  const auto kept = trace::finished_iterations(directory, ranks).size();
  return fmt::format("  {}{} iterations are kept; {}\n", kept,
                     wanted ? fmt::format(" of {}", *wanted) : std::string{},
                     can_go_on
                         ? "--resume goes on"
                         : fmt::format("longhaul trace merge {} reads them", directory.string()));
}

}  // namespace

RunDirectory::RunDirectory(engine::Ranks& ranks, const PipelineInput& input,
                           const PipelineOptions& options, const trace::RunInfo& info)
    : ranks_{ranks}, directory_{options.out} {
  if (directory_.empty()) return;
  on_rank0(ranks_.world(), [&] {
    open(input, info);
    return std::string{};
  });
  tell_counts();
  ranks_.watchdog().report_also_to(directory_ / fmt::format("report.{}.txt", index(ranks_.self())));
  std::optional<int> wanted;
  if (input.stopping.is_fixed())
    wanted = input.iterations * static_cast<int>(input.schedules.size());
  const bool can_go_on = !options.adaptive && options.changes.empty() && !input.compute.real;
  ranks_.watchdog().tell_kept([directory = directory_, ranks = ranks_.count(), wanted, can_go_on] {
    return kept_text(directory, ranks, wanted, can_go_on);
  });
}

void RunDirectory::open(const PipelineInput& input, const trace::RunInfo& info) {
  if (!input.goes_on) keep_input(directory_, input.asked, input.handed);
  journal_ = std::make_unique<Journal>(directory_);
  if (input.goes_on)
    go_on(input, info);
  else
    trace::begin_run(directory_, info, predicted_timeline(input), ranks_.count());
  const Json part = part_of(info, earlier_);
  journal_->add({{"part", part}});
  journal_->add(announced(input, info));
  parts_.push_back(part);
}

void RunDirectory::go_on(const PipelineInput& input, const trace::RunInfo& info) {
  if (is_complete(directory_))
    fail("another run has just completed {}. Run again to see it.", directory_.string());
  const std::vector<Json> journal = journal_->read();
  for (const Json& entry : journal)
    if (entry.contains("part")) parts_.push_back(entry["part"]);
  const bool begun = std::filesystem::exists(directory_ / "run.h5");
  if (begun) {
    const trace::Trace trace = trace::merge_run(directory_);
    require_same_rows(trace.predicted, predicted_timeline(input), directory_);
    earlier_ = read_earlier(trace.measured, input, journal);
  }
  std::vector<int> kept;
  for (const EarlierIterations& each : earlier_) kept.push_back(each.count);
  set_unfinished_aside(directory_, kept);
  if (!begun) trace::begin_run(directory_, info, predicted_timeline(input), ranks_.count());
}

void RunDirectory::tell_counts() {
  Json counts = Json::array();
  for (const EarlierIterations& each : earlier_) counts.push_back(each.count);
  counts = Json::parse(ranks_.world().broadcast(counts.dump()));
  earlier_.resize(counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i) earlier_[i].count = counts[i].get<int>();
}

void RunDirectory::note(const IterationNote& note) {
  if (directory_.empty()) return;
  WholeIteration whole = whole_of(ranks_.world(), note);
  whole.sums.weather_age = note.result.weather_age;
  if (!journal_) return;
  Json entry = sums_entry(note.position, note.iteration, whole.sums);
  entry["watched"] = entry_of(
      report::FinishedStep{.series = note.position,
                           .name = note.schedule,
                           .done = note.iteration + 1,
                           .took_ns = static_cast<double>((whole.last - whole.first).count()),
                           .predicted_ns = static_cast<double>(note.predicted.count())});
  journal_->add(entry);
}

void RunDirectory::note_end(int position, const PipelineMeasurement& measurement) {
  if (journal_) journal_->add(end_entry(position, measurement));
}

Json RunDirectory::parts() const { return parts_.size() > 1 ? parts_ : Json(); }

void RunDirectory::finish() {
  if (!journal_) return;
  remove_segments(directory_);
  journal_->remove();
}

void prepare_write_fault(const std::optional<engine::Fault>& fault, Rank self) {
  if (!fault || fault->aim != engine::FaultAim::write) return;
  trace::set_publish_probe([fault = *fault, self](const auto& file, const auto& temporary) {
    int schedule = -1, iteration = -1;
    const std::string name = file.filename().string();
    if (std::sscanf(name.c_str(), "segment.%d.%d.", &schedule, &iteration) != 2) return;
    if (!engine::strikes_write(fault, self, iteration)) return;
    if (fault.kind == engine::FaultKind::kill)  // a frozen one may wake and go on
      std::filesystem::resize_file(temporary, std::filesystem::file_size(temporary) / 2);
    engine::inject_fault(fault);
  });
}

std::string parts_text(const Json& parts) {
  std::string text;
  for (std::size_t i = 1; i < parts.size(); ++i)
    text +=
        fmt::format("resumed at {} on {} by {}, behind {} iterations of the schedules\n",
                    parts[i]["time"].get<std::string>(), parts[i]["hosts"].dump(),
                    parts[i]["git_commit"].get<std::string>(), parts[i]["finished_before"].dump());
  return text;
}

ExitCode report_complete(const PipelineOptions& options) {
  const std::filesystem::path file = options.out / "record.json";
  std::ifstream stream{file};
  const auto record = nlohmann::ordered_json::parse(stream, nullptr, false);
  if (!record.is_object() || !record.contains("schedules"))
    fail("{} is damaged (no record). Give --out another directory.", file.string());
  if (std::filesystem::exists(options.out / "run.h5")) {  // it was killed while it tidied up
    Journal journal{options.out};
    remove_segments(options.out);
    journal.remove();
  }
  if (options.json) fmt::print("{}\n", record.dump(2));
  fmt::print(stderr, "longhaul: {} is complete: nothing is left to run\n", options.out.string());
  for (const auto& schedule : record["schedules"])
    if (schedule.value("check", "") != "ok") return ExitCode::answer_is_no;
  return ExitCode::fine;
}

}  // namespace longhaul::harness
