#include <charconv>
#include <ostream>

#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/program/arguments.hpp"
#include "base/program/option_values.hpp"
#include "base/table.hpp"
#include "base/text_file.hpp"
#include "base/unit_text.hpp"
#include "cli/prefill/simulated_bubbles.hpp"
#include "prefill/outcome.hpp"
#include "report/record.hpp"
#include "report/record_file.hpp"
#include "report/scenario_text.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;
using prefill::Decision;

constexpr int kMostWaiting = 1'000'000;
constexpr int kMostCopies = 100'000;

/// A positive number, as a rate.
double positive_number(const char* option, const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc{} || stopped != end || !(value >= 1e-6 && value <= 1e9))
    fail("{}: \"{}\" is no number from 0.000001 to 1e9. Give one.", option, text);
  return value;
}

/// "FROM,TO"; either may be left out.
void read_window(const std::string& text, prefill::LoadOptions& load) {
  const std::vector<std::string> ends = words_of(text, ',');
  if (ends.size() != 2) fail("--window: \"{}\" is no window. Write FROM,TO, as in 60s,120s.", text);
  const auto time = [](const std::string& word) -> std::optional<Duration> {
    if (word.empty()) return std::nullopt;
    try {
      return parse_duration(word);
    } catch (const Error& error) {
      fail("--window: {}", error.what());
    }
  };
  load.window_from = time(ends[0]);
  load.window_to = time(ends[1]);
  if (load.window_to && *load.window_to <= load.window_from.value_or(Duration{}))
    fail("--window: {} ends before it begins. Write FROM,TO.", text);
}

/// What is offered, and how it is placed.
struct PrefillInput {
  std::vector<prefill::Request> requests;  ///< of a backlog, the file
  prefill::PlacementPolicy policy = prefill::PlacementPolicy::best_fit;
  std::optional<prefill::BacklogOptions> backlog;
  std::string load;  ///< in words
};

prefill::LoadOptions load_options(const PrefillArguments& typed) {
  prefill::LoadOptions load;
  if (!typed.window.empty()) read_window(typed.window, load);
  if (!typed.copies.empty()) load.copies = whole_number("--copies", typed.copies, 1, kMostCopies);
  if (!typed.rate.empty()) load.rate = positive_number("--rate", typed.rate);
  if (!typed.poisson.empty()) load.poisson = positive_number("--poisson", typed.poisson);
  if (load.poisson && load.rate != 1)
    fail("--rate: it has no effect with --poisson (whose arrivals are drawn). Leave one out.");
  return load;
}

prefill::BacklogOptions backlog_options(const PrefillArguments& typed, const Scenario& scenario) {
  for (const auto& [option, value] : {std::pair{"--rate", &typed.rate},
                                      {"--copies", &typed.copies},
                                      {"--poisson", &typed.poisson}})
    if (!value->empty())
      fail("{}: it has no effect with --backlog (a queue that never empties). Leave one out.",
           option);
  prefill::BacklogOptions backlog;
  backlog.waiting = whole_number("--backlog", typed.backlog, 1, kMostWaiting);
  backlog.iterations = scenario.run.iterations;
  if (!typed.patience.empty())
    backlog.patience = whole_number("--patience", typed.patience, 0, kMostWaiting);
  return backlog;
}

PrefillInput read_input(const PrefillArguments& typed, const Scenario& scenario) {
  if (typed.requests.empty())
    fail("prefill: --requests is missing (who asks for what). Name a trace (.csv or .jsonl).");
  PrefillInput input;
  if (!typed.policy.empty())
    input.policy = choice<prefill::PlacementPolicy>("--policy", typed.policy);
  if (!typed.backlog.empty()) input.backlog = backlog_options(typed, scenario);
  if (!input.backlog && !typed.patience.empty())
    fail("--patience: it has no effect without --backlog (no one is passed over). Leave it out.");
  if (input.backlog && !typed.patience.empty() &&
      input.policy == prefill::PlacementPolicy::earliest)
    fail("--patience: earliest passes no one over. Leave it out.");
  prefill::LoadOptions load = load_options(typed);
  load.seed = scenario.run.seed;
  input.requests = prefill::offered_load(
      prefill::parse_requests(read_text_file(typed.requests), typed.requests), load);
  if (input.requests.empty())
    fail("--window: no request of {} arrives in it. Widen it.", typed.requests);
  input.load = input.backlog ? fmt::format("a backlog of {}, {} iterations", input.backlog->waiting,
                                           input.backlog->iterations)
                             : fmt::format("an open loop of {} requests", input.requests.size());
  return input;
}

/// A schedule whose bubbles were filled.
struct FilledSchedule {
  SimulatedBubbles bubbles;
  prefill::Outcome outcome{};
  prefill::UtilisationBounds bounds{};
  std::vector<Decision> decisions{};
  Duration placement{};  ///< of this program's time, for each decision
};

FilledSchedule fill(SimulatedBubbles bubbles, const Scenario& scenario, const PrefillInput& input) {
  FilledSchedule filled{.bubbles = std::move(bubbles)};
  const prefill::IterationBubbles& iteration = filled.bubbles.iteration;
  const auto served = prefill::served_models(scenario, filled.bubbles.cell);
  const TimePoint begin = now();
  std::optional<std::int64_t> iterations;
  if (input.backlog) {
    iterations = input.backlog->iterations;
    filled.decisions =
        prefill::place_backlog(iteration, served, input.requests, input.policy, *input.backlog);
  } else {
    prefill::Controller controller{iteration, served, input.policy};
    filled.decisions = prefill::place_open_loop(controller, input.requests);
  }
  filled.placement = (now() - begin) / std::max<std::int64_t>(1, std::ssize(filled.decisions));
  filled.outcome = prefill::summarize_decisions(iteration, served, filled.decisions, iterations);
  const auto waiting = input.backlog ? std::optional{input.backlog->waiting} : std::nullopt;
  filled.bounds = prefill::utilisation_bounds(iteration, served, input.requests, waiting,
                                              filled.outcome.iterations);
  return filled;
}

ordered_json refused_json(const prefill::Outcome& outcome) {
  ordered_json json = ordered_json::object();
  for (const prefill::RefusalReason reason : every<prefill::RefusalReason>())
    json[to_string(reason)] = outcome.refused[static_cast<std::size_t>(reason)];
  return json;
}

template <typename Value>
ordered_json value_or_null(const std::optional<Value>& value) {
  return value ? ordered_json(*value) : ordered_json{};
}

/// What is not part of this simulation is null: training plays exactly its plan, prefills take
/// exactly their estimates, and keys and values are not sent.
ordered_json filled_json(const FilledSchedule& filled) {
  const prefill::Outcome& outcome = filled.outcome;
  ordered_json json{{"schedule", filled.bubbles.schedule.name},
                    {"period_ns", filled.bubbles.iteration.period.count()},
                    {"iterations", outcome.iterations}};
  json["utilisation"] = {{"training", outcome.utilisation.training},
                         {"prefill", outcome.utilisation.prefill},
                         {"total", outcome.utilisation.total},
                         {"useful", value_or_null(outcome.utilisation.useful)},
                         {"upper_bound", filled.bounds.upper()},
                         {"bound_reason", filled.bounds.reason()},
                         {"bounds",
                          {{"bubbles", filled.bounds.bubbles},
                           {"whole_prompts", filled.bounds.whole_prompts},
                           {"mix", value_or_null(filled.bounds.mix)},
                           {"flow", ordered_json{}}}}};
  json["requests"] = {{"offered", outcome.offered},
                      {"done", outcome.done},
                      {"refused", refused_json(outcome)},
                      {"killed", 0},
                      {"late", 0},
                      {"by_length", ordered_json::array()}};
  for (const prefill::PromptClass& each : outcome.by_length) {
    const bool open = each.below == std::numeric_limits<std::int64_t>::max();
    json["requests"]["by_length"].push_back(
        {{"below_tokens", open ? ordered_json{} : ordered_json(each.below)},
         {"offered", each.offered},
         {"done", each.done},
         {"refused", each.refused}});
  }
  json["tokens_served"] = outcome.tokens_served;
  json["ttft_ns"] = outcome.ttft ? ordered_json{{"p50", outcome.ttft->p50.count()},
                                                {"p90", outcome.ttft->p90.count()},
                                                {"p99", outcome.ttft->p99.count()},
                                                {"max", outcome.ttft->max.count()}}
                                 : ordered_json{};
  json["ttft_parts_ns"] = {{"network", ordered_json{}},    {"decision", ordered_json{}},
                           {"wait", outcome.wait_ns},      {"compute", outcome.compute_ns},
                           {"hop", outcome.hop_ns},        {"kv", ordered_json{}},
                           {"first_token", ordered_json{}}};
  json["training_delay"] = ordered_json{};
  json["placement_ns"] = filled.placement.count();
  json["cost"] = ordered_json{};
  return json;
}

std::int64_t refused_of(const prefill::Outcome& outcome) { return outcome.offered - outcome.done; }

std::string text_of(const std::vector<FilledSchedule>& all, TableWidth width) {
  Table table{{{"schedule", Align::left},
               {"period"},
               {"training"},
               {"with prefill"},
               {"useful"},
               {"bound"},
               {"because of", Align::left, 1},
               {"done"},
               {"refused"},
               {"TTFT p50"},
               {"p99"}}};
  const auto percent = [](double share) { return report::percent_text(share) + "%"; };
  for (const FilledSchedule& each : all) {
    const prefill::Outcome& outcome = each.outcome;
    const auto ttft = [&](Duration prefill::TimePercentiles::*part) {
      return outcome.ttft ? to_text(*outcome.ttft.*part) : "-";
    };
    const auto useful = outcome.utilisation.useful;
    table.add_row({each.bubbles.schedule.name, to_text(each.bubbles.iteration.period),
                   percent(outcome.utilisation.training), percent(outcome.utilisation.total),
                   useful ? percent(*useful) : "-", percent(each.bounds.upper()),
                   each.bounds.reason(), std::to_string(outcome.done),
                   std::to_string(refused_of(outcome)), ttft(&prefill::TimePercentiles::p50),
                   ttft(&prefill::TimePercentiles::p99)});
  }
  std::string text = table.text(width);
  for (const FilledSchedule& each : all) {
    if (refused_of(each.outcome) == 0) continue;
    text += fmt::format("{}: refused:", each.bubbles.schedule.name);
    for (const prefill::RefusalReason reason : every<prefill::RefusalReason>())
      if (const auto count = each.outcome.refused[static_cast<std::size_t>(reason)]; count > 0)
        text += fmt::format(" {} {}", count, to_string(reason));
    text += "\n";
  }
  return text;
}

std::string placements_csv(const std::vector<Decision>& decisions) {
  std::string csv = "request,arrival_ns,tokens,answer,reason,pipeline,start_ns,end_ns\n";
  for (const Decision& each : decisions) {
    csv += fmt::format("{},{},{},", each.request, each.arrival.count(), each.tokens);
    if (each.refused)
      csv += fmt::format("refused,{},,,\n", to_string(*each.refused));
    else
      csv += fmt::format("placed,,{},{},{}\n", each.pipeline, each.start.count(), each.end.count());
  }
  return csv;
}

/// Pipelines that serve, and what is left out of the answer.
std::string notes_text(const Scenario& scenario, const std::vector<FilledSchedule>& all) {
  std::string text;
  for (const prefill::Served& each : prefill::served_models(scenario, all.front().bubbles.cell)) {
    text += fmt::format("{}: {} of {}\n", each.model.name,
                        report::counted(std::ssize(each.serving.pipelines), "pipeline"),
                        report::counted(each.model.stages, "GPU"));
    if (each.serving.without_group > 0)
      text += fmt::format("! {}: {} GPUs serve nothing: their DP-cells do not fill a pipeline\n",
                          each.model.name, each.serving.without_group);
    if (each.serving.across_datacenters > 0)
      text += fmt::format("! {}: {} GPUs serve nothing: their pipelines would leave a datacenter\n",
                          each.model.name, each.serving.across_datacenters);
    if (!each.model.dimensions)
      text += fmt::format("{}: without a model its memory counts nothing\n", each.model.name);
  }
  return text +
         "TTFT ends with the prefill: sending keys and values and the first token count "
         "nothing.\n";
}

}  // namespace

void add_prefill_options(Arguments& command, PrefillArguments& arguments) {
  command.option("--requests", arguments.requests, "Azure's trace (.csv), or JSON lines");
  command.option("--policy", arguments.policy, "best-fit (default), or earliest: BubbleTea's");
  command.option("--rate", arguments.rate, "so many times as fast as the trace");
  command.option("--copies", arguments.copies, "of the trace, laid over each other, shifted");
  command.option("--window", arguments.window, "FROM,TO: its arrivals from FROM to before TO");
  command.option("--poisson", arguments.poisson, "requests a second, instead of its arrivals");
  command.option("--backlog", arguments.backlog,
                 "so many requests always wait, the file over and over, for run.iterations");
  command.option("--patience", arguments.patience,
                 "how often best-fit passes a request of a backlog over (default 256)");
  command.option("--placements-out", arguments.placements_out, "a file (.csv) of all answers");
}

Answer prefill_command(const Options& options) {
  const Scenario scenario = scenario_of(options);
  const PrefillInput input = read_input(options.prefill, scenario);
  if (!options.prefill.placements_out.empty())
    report::require_new_file(options.prefill.placements_out);
  std::vector<FilledSchedule> all;
  for (SimulatedBubbles& bubbles : simulated_bubbles(options, scenario))
    all.push_back(fill(std::move(bubbles), scenario, input));
  if (!options.prefill.placements_out.empty()) {
    if (all.size() != 1)
      fail("--placements-out: the answers of {} schedules do not go into one file. Name one.",
           all.size());
    report::write_new_file(options.prefill.placements_out, [&](std::ostream& out) {
      out << placements_csv(all.front().decisions);
    });
  }
  if (!options.json)
    return {fmt::format("{}: {}; simulated, {}, {}\n\n", scenario.name, report::size_text(scenario),
                        to_string(input.policy), input.load) +
            text_of(all, table_width(options)) + "\n" + notes_text(scenario, all)};
  ordered_json json = record_header(options, scenario);
  json["policy"] = to_string(input.policy);
  json["load"] = input.load;
  json["schedules"] = ordered_json::array();
  for (const FilledSchedule& each : all) json["schedules"].push_back(filled_json(each));
  return {report::json_text(json)};
}

}  // namespace longhaul::cli
