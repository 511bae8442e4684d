#include "cli/report/advice_page.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "base/text_file.hpp"
#include "base/unit_text.hpp"
#include "base/version.hpp"
#include "cli/trace/trace_source.hpp"
#include "report/scenario_text.hpp"

namespace longhaul::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string advised_time(const ordered_json& ns) {
  return to_text(Duration{ns.get<std::int64_t>()});
}

/// A key that may be missing or null.
const ordered_json& at_or_null(const ordered_json& object, const char* key) {
  static const ordered_json kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

std::string joined_ideas(const ordered_json& plan) {
  const auto ideas = plan.at("ideas").get<std::vector<std::string>>();
  return ideas.empty() ? "none" : fmt::format("{}", fmt::join(ideas, ", "));
}

/// What plans are compared by: "ns", or "nanodollars".
std::string unit_of(const ordered_json& advice) {
  return advice.contains("baseline_ns") ? "ns" : "nanodollars";
}

std::string score_text(const ordered_json& score, const std::string& unit) {
  return unit == "ns" ? advised_time(score) : fmt::format("${:.4g}", score.get<double>() * 1e-9);
}

/// Are plans compared by an iteration over its replicas?
bool is_of_pipeline(const ordered_json& advice) {
  const ordered_json& compared = at_or_null(advice, "compared");
  return compared.is_string() && compared.get<std::string>() == "pipeline";
}

/// A plan's times in those that plans are compared by: of all updates, or over its replicas.
ordered_json compared_time(const ordered_json& advice, const ordered_json& plan, const char* key) {
  const ordered_json &time = at_or_null(plan, key), &loss = at_or_null(plan, "loss");
  if (!time.is_number() || unit_of(advice) != "ns") return {};
  double scale = 1;
  if (loss.is_object()) scale = loss.at("updates").get<double>();
  if (is_of_pipeline(advice)) scale /= plan.at("place").at("replicas").get<double>();
  return std::llround(time.get<double>() * scale);
}

std::int64_t added_by(const ordered_json& idea, const std::string& unit) {
  return idea.at("added_" + unit).get<std::int64_t>();
}

/// Are plans compared by their cost less what prompts earn?
bool is_of_value(const ordered_json& advice) {
  return at_or_null(advice.at("plans").at(0), "net_dollars").is_number();
}

std::string advice_asked(const ordered_json& advice) {
  if (at_or_null(advice, "layouts").is_number())
    return fmt::format(
        "Asked: how to divide and train {} {}; of {} layouts {} plans were simulated, nothing was "
        "run.",
        advice.at("scenario").get<std::string>(),
        unit_of(advice) == "ns" ? "fastest"
        : is_of_value(advice)   ? "at the least cost less what prompts earn"
                                : "most cheaply",
        advice.at("layouts").get<int>(), advice.value("searched", 0));
  const auto count = [&](const char* key, const char* noun) {
    return report::counted(advice.at(key).get<int>(), noun);
  };
  return fmt::format("Asked: how to train {} ({}, {}, {}) {}; {} were simulated, nothing was run.",
                     advice.at("scenario").get<std::string>(), count("stages", "stage"),
                     count("replicas", "replica"), count("microbatches", "microbatch"),
                     unit_of(advice) == "ns" ? "fastest"
                     : is_of_value(advice)   ? "at the least cost less what prompts earn"
                                             : "most cheaply",
                     report::counted(advice.value("searched", 0), "plan"));
}

std::string advice_won(const ordered_json& best) {
  std::string text =
      fmt::format("Plan 1 is best: {} an iteration", advised_time(best.at("iteration_ns")));
  if (const auto& tokens = at_or_null(best, "tokens_per_second"); tokens.is_number())
    text += fmt::format(", {:.0f} tokens/s", tokens.get<double>());
  if (const auto& dollars = at_or_null(best, "dollars_per_million_tokens"); dollars.is_number())
    text += fmt::format(", {:.4f} $ for a million tokens", dollars.get<double>());
  if (const ordered_json& loss = at_or_null(best, "loss"); loss.is_object())
    text += fmt::format(", {} to a loss of {:g} by {}", advised_time(loss.at("time_ns")),
                        loss.at("target").get<double>(), loss.at("method").get<std::string>());
  const ordered_json& overlap = at_or_null(best, "overlap");
  return text + fmt::format(", simulated; its schedule is {}{}, its ideas: {}.",
                            best.at("made_by").get<std::string>(),
                            overlap.is_string()
                                ? fmt::format(" with overlap {}", overlap.get<std::string>())
                                : std::string{},
                            joined_ideas(best));
}

std::string advice_by_how_much(const ordered_json& advice) {
  const std::string unit = unit_of(advice);
  const ordered_json& baseline = at_or_null(advice, ("baseline_" + unit).c_str());
  if (!baseline.is_number())
    return "No plan without ideas fits: there is nothing to compare it with.";
  const ordered_json& loss = at_or_null(advice.at("plans").at(0), "loss");
  const std::string over = fmt::format(
      "the best plan without any idea, which {} {}{}{}", unit == "ns" ? "takes" : "costs",
      score_text(baseline, unit),
      is_of_pipeline(advice) ? " for one pipeline (an iteration over its replicas)" : "",
      loss.is_object() ? fmt::format(" to a loss of {:g}", loss.at("target").get<double>()) : "");
  std::int64_t gain = 0;
  const ordered_json* most = nullptr;
  for (const ordered_json& each : advice.at("waterfall")) {
    gain += added_by(each, unit);
    if (most == nullptr || added_by(each, unit) > added_by(*most, unit)) most = &each;
  }
  if (gain <= 0) return fmt::format("No idea makes it better than {}.", over);
  const auto from = baseline.get<double>();
  const std::string share = from > static_cast<double>(gain)
                                ? fmt::format("{:.1f}%", 100 * static_cast<double>(gain) / from)
                                : score_text(gain, unit);
  return fmt::format("That is {} less than {}; {} brings most of it, {}.", share, over,
                     most->at("idea").get<std::string>(),
                     score_text(most->at("added_" + unit), unit));
}

std::string advice_how_true(const ordered_json& best, const fs::path& directory) {
  const ordered_json &low = at_or_null(best, "low_ns"), &high = at_or_null(best, "high_ns");
  const std::string range = low.is_number() && high.is_number()
                                ? fmt::format(" ({} to {})", advised_time(low), advised_time(high))
                                : std::string{};
  return fmt::format(
      "Nothing here was measured{}: it is as true as the scenario's numbers; bench_pipeline runs "
      "{} on ranks.",
      range, (directory / "plan-1.csv").string());
}

/// Of a plan that trains by a method: what exchanges add to the blocks of an update; else empty.
std::string limits_of_method(const ordered_json& best) {
  const ordered_json& alone = at_or_null(at_or_null(best, "loss"), "alone_ns");
  if (!alone.is_number()) return {};
  const auto update = best.at("iteration_ns").get<std::int64_t>();
  const auto blocks = std::min(update, alone.get<std::int64_t>());
  const double share = 100 * static_cast<double>(update - blocks) /
                       static_cast<double>(std::max<std::int64_t>(1, update));
  return fmt::format(
      "What limits it: of an update {:.1f}% ({}) is left of exchanges that no block hides, and the "
      "blocks of an iteration without any take {}; {} more.",
      share, to_text(Duration{update - blocks}), to_text(Duration{blocks}),
      share > 50 ? "a faster WAN, or an exchange of fewer bytes, helps"
                 : "faster blocks or another order help");
}

std::string advice_limits(const ordered_json& best, const std::string& of_path) {
  std::string text;
  if (const auto& gap = at_or_null(best, "gap"); gap.is_number())
    text = fmt::format(
        "It is at most {:.1f}% above a time that nothing of its placement and memory undercuts.",
        100 * gap.get<double>());
  const std::string what = of_path.empty() ? limits_of_method(best) : of_path;
  if (what.empty() && text.empty()) return "What limits it is not known.";
  return what + (text.empty() || what.empty() ? "" : " ") + text;
}

/// The command that simulates the best plan again, as far as its files are there.
Options simulation_of(const ordered_json& advice, const ordered_json& best,
                      const fs::path& directory, const fs::path& trace) {
  Options options;
  fs::path scenario = best.at("scenario").get<std::string>();
  if (!fs::exists(scenario)) scenario = directory / scenario.filename();
  if (!fs::exists(scenario))
    fail("its scenario {} is not here", best.at("scenario").get<std::string>());
  options.files = {scenario.string()};
  // A layout's plan has a scenario of its own; the first answers had the user's --set there alone.
  const bool is_own = at_or_null(best, "layout").is_object();
  const auto words = shell_words(is_own ? "" : advice.value("command_line", std::string{}));
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--set" && i + 1 < words.size()) options.overrides.push_back(words[i + 1]);
    if (words[i].starts_with("--set=")) options.overrides.push_back(words[i].substr(6));
  }
  for (const auto& set : best.at("set")) options.overrides.push_back(set.get<std::string>());
  options.schedule = (directory / "plan-1.csv").string();
  if (const auto& overlap = at_or_null(best, "overlap"); overlap.is_string())
    options.overlap = overlap.get<std::string>();
  if (const auto& most = at_or_null(best, "overlap_search"); most.is_number())
    options.planner.overlap_search = std::to_string(most.get<std::size_t>());
  options.out = trace.string();
  return options;
}

class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "longhaul-report-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) fail("no folder can be made in {}", name);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const fs::path& path() const { return path_; }

private:
  fs::path path_;
};

/// The best plan's, simulated again. Throws Error, in words that follow "because ".
report::ReportedRun run_of_best(const ordered_json& advice, const ordered_json& best,
                                const fs::path& directory) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "best.h5";
  (void)simulate_command(simulation_of(advice, best, directory, file));
  report::ReportedRun run = report::reported_run(directory.string(), trace::read_trace(file));
  const auto reports =
      report::reports_of(run.trace.predicted, run.trace.predicted.schedules.at(0), 0);
  // The makespan ends before the optimizer's steps, the iteration after them.
  std::int64_t end = reports.at(0).makespan_ns;
  for (const TimelineRow& row : run.trace.predicted.rows) end = std::max(end, row.end_ns);
  if (end != best.at("iteration_ns").get<std::int64_t>())
    fail("its scenario now gives {}, no longer {}", to_text(Duration{end}),
         advised_time(best.at("iteration_ns")));
  return run;
}

ordered_json row_of_plan(const ordered_json& plan, std::size_t number) {
  ordered_json row{{"plan", number + 1}, {"ideas", joined_ideas(plan)}};
  for (const char* key : {"made_by", "overlap", "iteration_ns", "gap", "tokens_per_second",
                          "dollars_per_million_tokens", "memory_bytes", "gpus", "net_dollars"})
    row[key] = at_or_null(plan, key);
  row["loss_ns"] = at_or_null(at_or_null(plan, "loss"), "time_ns");
  if (const ordered_json& layout = at_or_null(plan, "layout"); layout.is_object())
    row["made_by"] =
        fmt::format("({}, {}, {}) {}", layout.at("tensor").get<int>(), layout.at("data").get<int>(),
                    layout.at("pipeline").get<int>(), plan.at("made_by").get<std::string>());
  return row;
}

/// The ideas with keys that do not name the unit.
ordered_json waterfall_of(const ordered_json& advice) {
  const std::string unit = unit_of(advice);
  ordered_json waterfall = ordered_json::array();
  for (const ordered_json& each : advice.at("waterfall"))
    waterfall.push_back({{"idea", each.at("idea")},
                         {"alone", each.at("alone_" + unit)},
                         {"added", each.at("added_" + unit)},
                         {"removed", each.at("removed_" + unit)}});
  return waterfall;
}

/// What is there of advice without its plans' schedules.
report::RunPage page_of_answer(const ordered_json& advice, const fs::path& directory) {
  const ordered_json& best = advice.at("plans").at(0);
  ordered_json plans = ordered_json::array();
  for (const ordered_json& plan : advice.at("plans"))
    plans.push_back(row_of_plan(plan, plans.size()));
  ordered_json data{{"sentences",
                     {advice_asked(advice), advice_won(best), advice_by_how_much(advice),
                      advice_how_true(best, directory), ""}},
                    {"schedules", ordered_json::array()},
                    {"advice",
                     {{"plans", std::move(plans)},
                      {"unit", unit_of(advice)},
                      {"baseline", at_or_null(advice, ("baseline_" + unit_of(advice)).c_str())},
                      {"bound", compared_time(advice, best, "bound_ns")},
                      {"waterfall", waterfall_of(advice)},
                      {"not_used", advice.at("not_used")},
                      {"placed", at_or_null(advice, "placed")}}},
                    {"timelines", ordered_json::array()},
                    {"runs", ordered_json::array()},
                    {"left_out", ""}};
  data["made_by"] = fmt::format("longhaul {} ({})", version(), git_commit());
  return {advice.at("scenario").get<std::string>() + ": advice", std::move(data)};
}

void add_best(report::RunPage& page, const ordered_json& advice, const fs::path& directory) {
  const ordered_json& best = advice.at("plans").at(0);
  ordered_json run{{"name", directory.string()},
                   {"creator", advice.value("creator", std::string{"longhaul"})},
                   {"git_commit", advice.value("git_commit", std::string{"?"})},
                   {"command_line", advice.value("command_line", std::string{})},
                   {"scenario", "(not here)"},
                   {"environment", nullptr},
                   {"time_scale", 1.0}};
  std::string path_text;
  try {
    const report::ReportedRun simulated = run_of_best(advice, best, directory);
    run["scenario"] = simulated.trace.info.scenario;
    const auto schedules = report::reported_schedules(simulated, 0);
    if (schedules.at(0).ops > report::kMostOps)
      fail("it has {} ops, and a page holds {}", schedules.at(0).ops, report::kMostOps);
    path_text = report::answer_in_words({simulated}, schedules).back();
    const std::string& name = schedules.at(0).name;
    if (const auto at = path_text.find(name); at != std::string::npos)
      path_text.replace(at, name.size(), "it");
    page.data["timelines"].push_back(report::timeline_json(simulated, schedules.at(0)));
    page.data["timelines"].back()["title"] = "the best plan";
  } catch (const Error& problem) {
    page.data["left_out"] =
        fmt::format("The timeline of the best plan is left out ({}).", problem.what());
  }
  page.data["sentences"].back() = advice_limits(best, path_text);
  page.data["runs"].push_back(std::move(run));
}

}  // namespace

std::vector<std::string> shell_words(const std::string& line) {
  std::vector<std::string> words;
  bool quotes = false, in_word = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char letter = line[i];
    if (!quotes && letter == ' ') {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (letter == '\'')
      quotes = !quotes;
    else if (!quotes && letter == '\\' && i + 1 < line.size())
      words.back() += line[++i];
    else
      words.back() += letter;
  }
  return words;
}

report::RunPage advice_page(const fs::path& directory) {
  const fs::path file = directory / kAdviceFile;
  const auto advice = ordered_json::parse(read_text_file(file), nullptr, false);
  try {
    report::RunPage page = page_of_answer(advice, directory);
    add_best(page, advice, directory);
    return page;
  } catch (const ordered_json::exception& problem) {
    fail("{} is damaged ({}). Ask `longhaul advise` again.", file.string(), problem.what());
  }
}

}  // namespace longhaul::cli
