#include "harness/options/run_files.hpp"

#include <fstream>
#include <sstream>

#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/text_file.hpp"
#include "harness/options/pipeline_options.hpp"
#include "trace/hdf5/new_file.hpp"

namespace longhaul::harness {
namespace {

using Json = nlohmann::json;

std::string read_whole(const std::filesystem::path& file) {
  refuse_named_pipe(file);
  std::ifstream stream{file, std::ios::binary};
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

Json number_or_null(const std::optional<int>& number) { return number ? Json(*number) : Json(); }

Json planner_json(const report::PlannerArguments& planner) {
  return {{"--search-time", planner.search_time},
          {"--search-moves", planner.search_moves},
          {"--search-threads", planner.search_threads},
          {"--search-seed", planner.search_seed},
          {"--placement", planner.placement},
          {"--robust", planner.robust},
          {"--time-limit", planner.time_limit},
          {"--any-microbatch-order", planner.any_microbatch_order},
          {"--solver-without-dp", planner.solver_without_dp},
          {"--solver-without-fusion", planner.solver_without_fusion}};
}

/// Contents of the files that the list of schedules names.
Json schedule_files(const std::string& list) {
  Json files = Json::object();
  std::istringstream words{list};
  for (std::string word; std::getline(words, word, ',');)
    if (word.ends_with(".csv")) files[word] = read_whole(word);
  return files;
}

/// "line 12 was "x" and is "y"" of the first line that is not the same.
std::string first_difference(const std::string& was, const std::string& is) {
  std::istringstream before{was}, after{is};
  for (int line = 1;; ++line) {
    std::string one, other;
    const bool more = static_cast<bool>(std::getline(before, one));
    const bool others = static_cast<bool>(std::getline(after, other));
    if (!more && !others) return "line ends";
    if (one != other || more != others)
      return fmt::format("line {} was \"{}\" and is \"{}\"", line, one, other);
  }
}

std::string difference(const std::string& name, const Json& was, const Json& is) {
  if (name == "scenario" && was.is_string() && is.is_string())
    return fmt::format("the scenario: {}",
                       first_difference(was.get<std::string>(), is.get<std::string>()));
  if (name == "files") return "the files of --schedule";
  return fmt::format("{}: was {} and is {}", name, was.is_null() ? "not given" : was.dump(),
                     is.is_null() ? "not given" : is.dump());
}

std::vector<std::string> differences(const Json& was, const Json& is) {
  std::vector<std::string> found;
  for (const auto& [name, value] : is.items()) {
    const Json before = was.contains(name) ? was[name] : Json();
    if (before != value) found.push_back(difference(name, before, value));
  }
  for (const auto& [name, value] : was.items())
    if (!is.contains(name)) found.push_back(difference(name, value, Json()));
  return found;
}

}  // namespace

void require_free(const std::filesystem::path& directory) {
  std::error_code problem;
  if (!std::filesystem::exists(directory, problem)) return;
  if (std::filesystem::is_directory(directory, problem) &&
      std::filesystem::is_empty(directory, problem))
    return;
  fail("{} exists and is not empty (results are never overwritten). Give --out another directory.",
       directory.string());
}

void write_new_file(const std::filesystem::path& file, const std::string& text) {
  std::error_code problem;
  std::filesystem::create_directories(file.parent_path(), problem);
  if (problem)
    fail("cannot make {} ({}). Choose a directory that can be written.",
         file.parent_path().string(), problem.message());
  trace::NewFile target{file};
  std::ofstream out{target.temporary(), std::ios::binary};
  out << text;
  out.close();
  if (!out)
    throw Error{fmt::format("{} cannot be written (disk full, or no permission). Make room or give "
                            "another directory.",
                            file.string()),
                ExitCode::run_failed};
  target.publish();
}

Json asked_of(const PipelineOptions& options, const Scenario& scenario, int ranks) {
  Json asked = {{"ranks", ranks},
                {"scenario", scenario.text},
                {"files", schedule_files(options.schedule)},
                {"--schedule", options.schedule},
                {"--comm", options.comm},
                {"--iterations", number_or_null(options.iterations)},
                {"--confidence", options.confidence},
                {"--max-iterations", number_or_null(options.max_iterations)},
                {"--warmup", number_or_null(options.warmup)},
                {"--set", options.overrides},
                {"--change", options.changes},
                {"--adaptive", options.adaptive},
                {"--payload", options.payload},
                {"--emulate", options.emulate},
                {"--credit", options.credit}};
  if (!options.overlap.empty()) asked["--overlap"] = options.overlap;
  if (!options.planner.overlap_search.empty())
    asked["--overlap-search"] = options.planner.overlap_search;
  asked.update(planner_json(options.planner));
  asked["--compute"] = Json(compute_json(options.compute));
  return asked;
}

std::optional<Json> kept_input(const std::filesystem::path& directory, const Json& asked) {
  const std::filesystem::path file = directory / kInputFile;
  if (!std::filesystem::exists(file)) return std::nullopt;
  const Json kept = Json::parse(read_whole(file), nullptr, false);
  if (!kept.is_object() || !kept.contains("asked") || !kept.contains("handed"))
    fail("{} is damaged (a run's input was expected). Give --out another directory.",
         file.string());
  const std::vector<std::string> found = differences(kept["asked"], asked);
  if (!found.empty())
    fail(
        "{} cannot be resumed (it was begun with other input: {}). Give the same input again, or "
        "--out another directory.",
        directory.string(), fmt::join(found, "; "));
  return kept["handed"];
}

void keep_input(const std::filesystem::path& directory, const Json& asked, const Json& handed) {
  write_new_file(directory / kInputFile, Json{{"asked", asked}, {"handed", handed}}.dump(1) + "\n");
}

bool is_complete(const std::filesystem::path& directory) {
  return std::filesystem::exists(directory / "record.json") &&
         std::filesystem::exists(directory / "trace.h5");
}

}  // namespace longhaul::harness
