#include <filesystem>
#include <set>

#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/text_file.hpp"
#include "cli/compare/comparison.hpp"
#include "cli/trace/trace_source.hpp"

namespace longhaul::cli {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Processor and number of cores of each host, not their names: the same kind of machine is no
/// difference.
std::string hosts_of(const Json& environment) {
  if (!environment.is_object() || !environment.contains("hosts")) return "";
  const Json& hosts = environment["hosts"];
  std::vector<std::string> kinds;
  for (const Json& host : hosts) {
    if (!host.is_object()) return hosts.is_array() ? fmt::format("{} hosts", hosts.size()) : "";
    std::string kind;
    for (const char* key : {"processor", "cores", "kernel", "governor"})
      if (host.contains(key) && !host[key].is_null())
        kind += (kind.empty() ? "" : ", ") + text_of(host[key]);
    kinds.push_back(kind);
  }
  return fmt::format("{}", fmt::join(kinds, "; "));
}

void add_condition(ComparedRun& run, const std::string& name, const Json& holder,
                   const std::string& key) {
  if (holder.is_object() && holder.contains(key) && !holder[key].is_null())
    run.conditions.emplace_back(name, text_of(holder[key]));
}

std::optional<double> load_of(const Json& environment) {
  const Json::json_pointer last_minute{"/load_average/after/0"};
  if (!environment.is_object() || !environment.contains(last_minute)) return std::nullopt;
  const Json& load = environment[last_minute];
  return load.is_number() ? std::optional{load.get<double>()} : std::nullopt;
}

void add_conditions(ComparedRun& run, const Json& record, const Json& environment) {
  for (const char* key : {"comm", "emulate", "payload_bytes", "lateness_credit_ns"})
    add_condition(run, key, record.is_object() && record.contains(key) ? record : environment, key);
  add_condition(run, "commit", record, "git_commit");
  if (environment.is_object() && environment.contains("mpi"))
    add_condition(run, "MPI", environment["mpi"], "library");
  run.load_average = load_of(environment);
  const std::string hosts = hosts_of(environment);
  if (!hosts.empty()) run.conditions.emplace_back("hosts", hosts);
}

NamedSample schedule_sample(const Json& entry, bool is_measured) {
  NamedSample sample{entry.at("schedule").get<std::string>(), {}, {}};
  if (is_measured)
    sample.times_ns = entry.at("samples_ns").get<std::vector<double>>();
  else
    sample.times_ns = {entry.at("makespan_ns").get<double>()};
  const std::string check = entry.value("check", "ok");
  if (check != "ok") sample.trouble = "check: " + check;
  const auto doubts = entry.value("doubts", std::vector<std::string>{});
  if (!doubts.empty())
    sample.trouble +=
        fmt::format("{}doubtful: {}", sample.trouble.empty() ? "" : "; ", fmt::join(doubts, "; "));
  return sample;
}

/// bench_link: one sample a test and target.
NamedSample link_sample(const Json& entry) {
  return {fmt::format("{} {} us", entry.at("test").get<std::string>(),
                      entry.at("target_ns").get<double>() / 1e3),
          entry.at("samples_ns").get<std::vector<double>>(),
          {}};
}

/// "steps", or "steps, whole": that of collectives in predictions (docs/collectives.md).
std::string grains_of(const Json& schedules) {
  std::set<std::string> grains;
  for (const Json& entry : schedules)
    if (entry.contains("grain")) grains.insert(entry["grain"].get<std::string>());
  return fmt::format("{}", fmt::join(grains, ", "));
}

ComparedRun run_of(const Json& record, const std::string& source) {
  ComparedRun run;
  run.source = source;
  run.is_measured = record.at("numbers").get<std::string>() == "measured";
  run.time_scale = record.value("time_scale", 1.0);
  run.scenario = record.value("scenario", "");
  add_conditions(run, record, record.value("environment", Json{}));
  if (record.contains("measurements"))
    for (const Json& entry : record["measurements"]) run.samples.push_back(link_sample(entry));
  else
    for (const Json& entry : record.at("schedules"))
      run.samples.push_back(schedule_sample(entry, run.is_measured));
  const std::string grains = grains_of(record.value("schedules", Json::array()));
  if (!grains.empty()) run.conditions.emplace_back("grain", grains);
  return run;
}

ComparedRun read_record(const std::string& file, const std::string& source) {
  try {
    return run_of(Json::parse(read_text_file(file)), source);
  } catch (const Json::exception& error) {
    fail(
        "{}: not a record to compare ({}). Give what bench_pipeline, bench_link or `longhaul "
        "simulate --json` wrote.",
        file, error.what());
  }
}

std::vector<NamedSample> samples_of(const Timeline& timeline) {
  std::vector<NamedSample> samples;
  for (const std::string& schedule : timeline.schedules) {
    NamedSample sample{schedule, {}, {}};
    for (const trace::IterationReport& report : reports_of(timeline, schedule, 0))
      sample.times_ns.push_back(static_cast<double>(report.makespan_ns));
    if (!sample.times_ns.empty()) samples.push_back(std::move(sample));
  }
  return samples;
}

ComparedRun read_trace_of(const std::string& source) {
  const trace::Trace trace = load_trace(source);
  ComparedRun run;
  run.source = source;
  run.is_measured = !trace.measured.rows.empty();
  run.time_scale = trace.info.time_scale;
  run.scenario = trace.info.scenario;
  const Json environment = Json::parse(trace.info.environment, nullptr, false);
  add_conditions(run, Json{{"git_commit", trace.info.git_commit}}, environment);
  run.samples = samples_of(run.is_measured ? trace.measured : trace.predicted);
  return run;
}

/// "A1,A2"
std::vector<std::string> runs_in(const std::string& side) {
  if (std::filesystem::exists(side)) return {side};
  std::vector<std::string> runs;
  for (std::size_t begin = 0; begin <= side.size();) {
    const std::size_t end = std::min(side.find(',', begin), side.size());
    runs.push_back(side.substr(begin, end - begin));
    if (runs.back().empty())
      fail("compare: \"{}\" names a run without a name. Write A1,A2:B1,B2.", side);
    begin = end + 1;
  }
  return runs;
}

}  // namespace

ComparedRun read_compared(const std::string& source) {
  const std::filesystem::path path{source};
  if (std::filesystem::is_regular_file(path / "record.json"))
    return read_record((path / "record.json").string(), source);
  const bool is_record = path.extension() == ".json";
  return is_record ? read_record(source, source) : read_trace_of(source);
}

Sides sides_of(std::span<const std::string> words) {
  if (words.size() == 2) return {runs_in(words[0]), runs_in(words[1])};
  const std::string& word = words.front();
  const std::size_t colon = std::filesystem::exists(word) ? std::string::npos : word.find(':');
  if (colon == std::string::npos)
    fail(
        "compare: a file is missing (B, with which {} is to be compared). Write A B, or "
        "A1,A2:B1,B2.",
        word);
  return {runs_in(word.substr(0, colon)), runs_in(word.substr(colon + 1))};
}

}  // namespace longhaul::cli
