#include "report/watched_run.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/statistics/sample.hpp"
#include "report/host_load.hpp"

namespace longhaul::report {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using std::chrono::milliseconds;

std::int64_t now_ms() {
  return std::chrono::floor<milliseconds>(std::chrono::system_clock::now())
      .time_since_epoch()
      .count();
}

void put(json& entry, const char* key, const auto& value) {
  if (value) entry[key] = *value;
}

std::optional<double> number_at(const json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

/// Does another process hold the journal's lock? False where the file system knows no locks.
bool is_held(const fs::path& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return false;
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  const bool held = fcntl(descriptor, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
  close(descriptor);
  return held;
}

/// How fast a series goes on, by the clock on the wall.
struct Pace {
  std::optional<std::int64_t> first_ms{}, last_ms{};
  int first_done = 0, last_done = 0;

  [[nodiscard]] std::optional<double> ms() const {
    if (!first_ms || last_done <= first_done) return std::nullopt;
    return static_cast<double>(*last_ms - *first_ms) / (last_done - first_done);
  }
};

/// Puts the entries of a journal together.
class JournalReader {
public:
  explicit JournalReader(const std::vector<json>& entries) {
    for (const json& entry : entries) {
      if (entry.contains("announced")) begin_part(entry["announced"]);
      if (entry.contains("watched")) take(entry["watched"]);
    }
  }
  [[nodiscard]] bool is_announced() const { return announced_; }

  [[nodiscard]] WatchedRun run() const {
    WatchedRun run = run_;
    for (std::size_t i = 0; i < run.series.size(); ++i)
      for (const auto& [iteration, ns] : times_[i]) run.series[i].times_ns.push_back(ns);
    if (last_ms_) run.since_last = milliseconds{std::max<std::int64_t>(0, now_ms() - *last_ms_)};
    run.left = left();
    return run;
  }

private:
  void begin_part(const json& entry) {
    announced_ = true;
    run_.benchmark = entry.at("benchmark").get<std::string>();
    run_.unit = entry.at("unit").get<std::string>();
    run_.series_total = entry.at("series_total").get<int>();
    run_.ends_by_rule = entry.at("ends_by_rule").get<bool>();
    run_.cores = entry.at("cores").get<int>();
    time_scale_ = entry.at("time_scale").get<double>();
    warmup_ = entry.at("warmup").get<int>();
    pace_.clear();
    const json& announced = entry.at("series");
    for (std::size_t i = 0; i < announced.size(); ++i) {
      const json& of = announced[i];
      WatchedSeries& series = series_at(i);
      series.name = of.at("name").get<std::string>();
      series.total = of.at("total").get<int>();
      series.predicted_ns = own(number_at(of, "predicted_ns"));
    }
    pace_.resize(run_.series.size());
  }

  void take(const json& entry) {
    const int position = entry.at("series").get<int>();
    if (position < 0 || position > std::ssize(run_.series)) return;
    const auto i = static_cast<std::size_t>(position);
    const bool takes_over = i == run_.series.size() && last_ < i;
    WatchedSeries& series = series_at(i);
    if (takes_over)  // another order or other links: the rest of the iterations are its
      series.total = std::exchange(run_.series[last_].total, run_.series[last_].done);
    last_ = i;
    series.name = entry.at("name").get<std::string>();
    const int done = entry.at("done").get<int>();
    series.done = std::max(0, done);
    series.total = entry.value("total", series.total);
    if (const auto ns = own(number_at(entry, "took_ns"))) {
      // A part that goes on may do iterations anew: what stood after them is gone.
      times_[i].erase(times_[i].lower_bound(done), times_[i].end());
      if (done > 0) times_[i][done] = *ns;
    }
    if (const auto ns = own(number_at(entry, "mean_ns"))) series.mean_ns = ns;
    if (const auto ns = own(number_at(entry, "predicted_ns"))) series.predicted_ns = ns;
    if (const auto loss = number_at(entry, "loss")) series.loss = loss;
    run_.load = std::max(run_.load, number_at(entry, "load").value_or(0));
    last_ms_ = entry.at("at_ms").get<std::int64_t>();
    Pace& pace = pace_[i];
    if (!pace.first_ms) pace.first_ms = last_ms_, pace.first_done = done;
    pace.last_ms = last_ms_, pace.last_done = done;
  }

  WatchedSeries& series_at(std::size_t i) {
    if (i >= run_.series.size()) run_.series.resize(i + 1);
    times_.resize(run_.series.size());
    pace_.resize(run_.series.size());
    return run_.series[i];
  }
  [[nodiscard]] std::optional<double> own(std::optional<double> played) const {
    if (played) *played /= time_scale_;
    return played;
  }

  /// Wall-clock time over what is predicted, of all series that go on; 1 where none does.
  [[nodiscard]] double slowness() const {
    double wall = 0, predicted = 0;
    for (std::size_t i = 0; i < pace_.size(); ++i) {
      const auto ms = pace_[i].ms();
      if (!ms || !run_.series[i].predicted_ns) continue;
      wall += *ms;
      predicted += *run_.series[i].predicted_ns * time_scale_ / 1e6;
    }
    return predicted > 0 ? wall / predicted : 1;
  }

  [[nodiscard]] std::optional<milliseconds> left() const {
    if (std::cmp_less(run_.series.size(), run_.series_total)) return std::nullopt;
    double ms = 0;
    for (std::size_t i = 0; i < run_.series.size(); ++i) {
      const WatchedSeries& series = run_.series[i];
      int steps = series.total - series.done;
      if (steps <= 0) continue;
      if (!pace_[i].last_ms) steps += warmup_;
      auto each = pace_[i].ms();
      if (!each && series.predicted_ns)
        each = slowness() * *series.predicted_ns * time_scale_ / 1e6;
      if (!each) return std::nullopt;
      ms += steps * *each;
    }
    return milliseconds{static_cast<std::int64_t>(ms)};
  }

  bool announced_ = false;
  WatchedRun run_;
  double time_scale_ = 1;
  int warmup_ = 0;
  std::vector<std::map<int, double>> times_;  ///< of each series, by how many were done with it
  std::vector<Pace> pace_;                    ///< in this part of the run
  std::optional<std::int64_t> last_ms_;
  std::size_t last_ = 0;  ///< series of the last step
};

std::vector<WatchedSeries> series_of_pipeline(const json& record) {
  std::vector<WatchedSeries> all;
  const double scale = record.value("time_scale", 1.0);
  for (const json& schedule : record.at("schedules")) {
    WatchedSeries& series = all.emplace_back();
    series.name = schedule.at("schedule").get<std::string>();
    for (const json& ns : schedule.at("samples_ns"))
      series.times_ns.push_back(ns.get<double>() / scale);
    series.predicted_ns = number_at(schedule, "predicted_ns");
    if (series.predicted_ns) *series.predicted_ns /= scale;
    series.done = series.total = static_cast<int>(series.times_ns.size());
  }
  return all;
}

std::vector<WatchedSeries> series_of_prefill(const json& record) {
  const json& schedule = record.at("schedules").at(0);
  const auto name = schedule.at("schedule").get<std::string>();
  std::vector<WatchedSeries> all(2);
  all[0].name = name;
  all[0].predicted_ns = number_at(schedule, "stretch_ns");
  all[1].name = name + "+prefill";
  all[0].times_ns = record.at("pairs").at("off_ns").get<std::vector<double>>();
  all[1].times_ns = record.at("pairs").at("on_ns").get<std::vector<double>>();
  for (WatchedSeries& series : all)
    series.done = series.total = static_cast<int>(series.times_ns.size());
  return all;
}

std::vector<WatchedSeries> series_of_training(const json& record) {
  std::vector<WatchedSeries> all;
  for (const json& curve : record.at("train").at("curves")) {
    WatchedSeries& series = all.emplace_back();
    series.name = curve_name("curve", curve.at("method").get<std::string>(),
                             curve.at("seed").get<int>(), curve.at("learning_rate").get<double>());
    const json& losses = curve.at("losses");
    series.done = series.total = static_cast<int>(losses.size());
    series.mean_ns = number_at(curve, "period_ns");
    series.predicted_ns = number_at(curve, "predicted_period_ns");
    if (!losses.empty() && losses.back().is_number()) series.loss = losses.back().get<double>();
  }
  return all;
}

WatchedRun complete_run(const fs::path& file) {
  std::ifstream stream{file};
  const json record = json::parse(stream, nullptr, false);
  if (!record.is_object()) fail("{} is damaged (no record). Look at its trace.", file.string());
  WatchedRun run;
  run.state = RunState::complete;
  run.benchmark = record.value("benchmark", std::string{});
  if (run.benchmark == "bench_pipeline") {
    run.unit = "iteration";
    run.series = series_of_pipeline(record);
  } else if (run.benchmark == "bench_prefill") {
    run.unit = "stretch";
    run.series = series_of_prefill(record);
  } else if (run.benchmark == "bench_train" && record.contains("train")) {
    run.unit = "exchange";
    run.series = series_of_training(record);
  } else {
    fail("{}: of a record of {} nothing can be watched. Look at it with a text editor.",
         file.string(), run.benchmark.empty() ? "no benchmark" : run.benchmark);
  }
  run.series_total = static_cast<int>(run.series.size());
  const json& environment = record.value("environment", json::object());
  const HostLoad host = environment.is_object() ? busiest_host(environment) : HostLoad{};
  run.load = host.load;
  run.cores = host.cores;
  return run;
}

WatchedRun begun_run(const fs::path& directory) {
  const fs::path journal = directory / kJournalName;
  if (!fs::exists(journal))
    fail(
        "{} holds no run that can be watched (neither {} nor record.json is there). Name the "
        "--out of bench_pipeline, bench_prefill or bench_train.",
        directory.string(), kJournalName);
  const bool held = is_held(journal);  // before it is read: a run that ends meanwhile has more
  const JournalReader reader{read_journal(journal)};
  if (!reader.is_announced() && !held)
    fail(
        "{} says nothing of the run's times (an older version wrote it). Try `longhaul trace "
        "summary {}`.",
        journal.string(), directory.string());
  WatchedRun run = reader.run();
  run.state = held ? RunState::running : RunState::stale;
  return run;
}

}  // namespace

std::string curve_name(const std::string& what, const std::string& method, int seed, double rate) {
  return fmt::format("{} {}, seed {}, rate {}", what, method, seed, rate);
}

std::vector<json> read_journal(const fs::path& file) {
  std::vector<json> entries;
  std::ifstream stream{file};
  for (std::string line; std::getline(stream, line);) {
    json entry = json::parse(line, nullptr, false);
    if (entry.is_object()) entries.push_back(std::move(entry));
  }
  return entries;
}

std::optional<double> WatchedSeries::time_ns() const {
  if (!times_ns.empty()) return summarize(times_ns).median;
  return mean_ns;
}

std::optional<double> WatchedSeries::difference_percent() const {
  const auto time = time_ns();
  if (!time || predicted_ns.value_or(0) <= 0) return std::nullopt;
  return 100.0 * (*time / *predicted_ns - 1.0);
}

json entry_of(const AnnouncedRun& run) {
  json entry = {{"benchmark", run.benchmark},
                {"unit", run.unit},
                {"series_total", run.series_total},
                {"warmup", run.warmup},
                {"ends_by_rule", run.ends_by_rule},
                {"time_scale", run.time_scale},
                {"cores", run.cores},
                {"series", json::array()}};
  for (const WatchedSeries& series : run.series) {
    json one = {{"name", series.name}, {"total", series.total}};
    put(one, "predicted_ns", series.predicted_ns);
    entry["series"].push_back(std::move(one));
  }
  return {{"announced", entry}};
}

json entry_of(const FinishedStep& step) {
  double load = 0;
  json entry = {
      {"series", step.series}, {"name", step.name}, {"done", step.done}, {"at_ms", now_ms()}};
  if (getloadavg(&load, 1) == 1) entry["load"] = load;
  put(entry, "took_ns", step.took_ns);
  put(entry, "mean_ns", step.mean_ns);
  put(entry, "predicted_ns", step.predicted_ns);
  put(entry, "total", step.total);
  put(entry, "loss", step.loss);
  return entry;
}

WatchedRun watched_run(const fs::path& directory) {
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored))
    fail("{}: there is no such run. Name the directory of --out.", directory.string());
  const fs::path record = directory / "record.json";
  try {
    return fs::exists(record) ? complete_run(record) : begun_run(directory);
  } catch (const json::exception& problem) {
    fail("{} is damaged ({}). `longhaul trace summary` may read its trace.", directory.string(),
         problem.what());
  }
}

}  // namespace longhaul::report
