#include <algorithm>
#include <ostream>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "cli/prefill/filled_schedule.hpp"
#include "prefill/outcome.hpp"
#include "prefill/prompt/profile_error.hpp"
#include "report/record.hpp"
#include "report/record_file.hpp"
#include "report/scenario_text.hpp"
#include "schedule/csv/csv.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;
using prefill::Decision;

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
                   std::to_string(outcome.all_refused()), ttft(&prefill::TimePercentiles::p50),
                   ttft(&prefill::TimePercentiles::p99)});
  }
  std::string text = table.text(width);
  for (const FilledSchedule& each : all) {
    const std::int64_t unfinished = each.outcome.unfinished;
    if (each.outcome.all_refused() == 0 && unfinished == 0) continue;
    text += fmt::format("{}: {} refused", each.bubbles.schedule.name, each.outcome.all_refused());
    const char* before = ": ";
    for (const prefill::RefusalReason reason : every<prefill::RefusalReason>())
      if (const auto count = each.outcome.refused[static_cast<std::size_t>(reason)]; count > 0)
        text += fmt::format("{}{} {}", std::exchange(before, " "), count, to_string(reason));
    if (unfinished > 0) text += fmt::format(", {} unfinished", unfinished);
    text += "\n";
  }
  return text;
}

constexpr const char* kPlacementColumns =
    "request,arrival_ns,tokens,answer,reason,pipeline,start_ns,end_ns\n";

/// One that was placed and is unfinished at the end is placed all the same.
std::string placement_line(const Decision& each) {
  std::string csv = fmt::format("{},{},{},", each.request, each.arrival.count(), each.tokens);
  if (each.refused) return csv + fmt::format("refused,{},,,\n", to_string(*each.refused));
  return csv +
         fmt::format("placed,,{},{},{}\n", each.pipeline, each.start.count(), each.end.count());
}

/// Of models whose guard is as long as the longest bubble of their GPUs, or longer.
std::string guarded_text(const FilledSchedule& filled) {
  std::string text;
  for (const prefill::Served& each : filled.served) {
    std::set<std::int32_t> ranks;
    for (const prefill::Pipeline& pipeline : each.serving.pipelines)
      ranks.insert(pipeline.ranks.begin(), pipeline.ranks.end());
    Duration longest{};
    for (const prefill::Bubble& bubble : filled.bubbles.iteration.bubbles)
      if (ranks.contains(bubble.rank)) longest = std::max(longest, bubble.length());
    if (!ranks.empty() && longest <= each.model.guard)
      text += fmt::format(
          "! {}: {} serves nothing: its guard, {}, leaves nothing of the longest "
          "bubble, {}\n",
          filled.bubbles.schedule.name, each.model.name, to_text(each.model.guard),
          to_text(longest));
  }
  return text;
}

/// Pipelines that serve, and what is left out of the answer.
std::string notes_text(const Scenario& scenario, const PrefillInput& input,
                       const std::vector<FilledSchedule>& all) {
  std::string text;
  if (const auto left_out = left_out_of_backlog(scenario, input); !left_out.empty())
    text += fmt::format("! of a backlog these count nothing: {}\n", fmt::join(left_out, ", "));
  for (const prefill::Served& each : all.front().served) {
    text += fmt::format("{}: {} of {}\n", each.model.name,
                        report::counted(std::ssize(each.serving.pipelines), "pipeline"),
                        report::counted(each.model.stages, "GPU"));
    if (each.serving.without_group > 0)
      text += fmt::format("! {}: {} GPUs serve nothing: their DP-cells do not fill a pipeline\n",
                          each.model.name, each.serving.without_group);
    if (each.serving.across_datacenters > 0)
      text += fmt::format("! {}: {} GPUs serve nothing: their pipelines would leave a datacenter\n",
                          each.model.name, each.serving.across_datacenters);
    if (each.serving.left_over > 0)
      text += fmt::format("! {}: {} GPUs serve nothing: their datacenters' are no multiple of {}\n",
                          each.model.name, each.serving.left_over, each.model.stages);
    if (const auto error = prefill::leave_one_out(each.model))
      text += fmt::format(
          "{}: times between the profile's sizes are {}% off in the mean, {}% at most (each of {} "
          "left out in turn)\n",
          each.model.name, report::percent_text(error->mean), report::percent_text(error->worst),
          report::counted(error->sizes, "size"));
    if (!each.model.dimensions)
      text += fmt::format("{}: without a model its memory counts nothing\n", each.model.name);
    if (!each.model.decode)
      text += fmt::format("{}: without decode, keys and values and the first token count nothing\n",
                          each.model.name);
  }
  for (const FilledSchedule& filled : all) text += guarded_text(filled);
  for (const FilledSchedule& filled : all)
    for (const prefill::Served& each : filled.served)
      if (const auto& skew = each.serving.skew)
        text += fmt::format(
            "{}: {}'s skewed pipelines hold {} prompts of {} tokens in an iteration, those of "
            "equal places {}, no pipelines more than {}\n",
            filled.bubbles.schedule.name, each.model.name, skew->prompts, each.model.skewed_for,
            skew->of_equal, skew->upper_bound);
  return text;
}

void require_one_schedule(const char* option, std::size_t count) {
  if (count != 1) fail("{}: {} schedules do not go into one file. Name one.", option, count);
}

/// A file that others take for --schedule; no name: none.
void write_schedule(const std::string& file, const std::vector<FilledSchedule>& all) {
  if (file.empty()) return;
  require_one_schedule("--schedule-out", all.size());
  report::write_new_file(
      file, [&](std::ostream& out) { out << schedule::write_csv(all.front().bubbles.schedule); });
}

std::string search_text(const planner::WorthResult& found) {
  return fmt::format("best: from {}, {} judged{}\n", found.started_from,
                     report::counted(found.judged, "order"),
                     found.schedule.replicas_share_rows() ? "" : "; replicas have their own");
}

std::vector<FilledSchedule> fill_all(const Options& options, const Scenario& scenario,
                                     const PrefillInput& input) {
  std::vector<FilledSchedule> all;
  for (SimulatedBubbles& bubbles : simulated_bubbles(options, scenario))
    all.push_back(fill_bubbles(std::move(bubbles), scenario, input));
  return all;
}

/// Each schedule reads the file anew; placements are written as they are made.
std::vector<FilledSchedule> fill_streams(const Options& options, const Scenario& scenario,
                                         const PrefillInput& input) {
  std::vector<SimulatedBubbles> bubbles = simulated_bubbles(options, scenario);
  std::vector<FilledSchedule> all;
  if (options.prefill.placements_out.empty()) {
    for (SimulatedBubbles& each : bubbles)
      all.push_back(fill_from_stream(std::move(each), scenario, input, [](const Decision&) {}));
    return all;
  }
  require_one_schedule("--placements-out", bubbles.size());
  report::write_new_file(options.prefill.placements_out, [&](std::ostream& out) {
    out << kPlacementColumns;
    all.push_back(fill_from_stream(std::move(bubbles.front()), scenario, input,
                                   [&](const Decision& each) { out << placement_line(each); }));
  });
  return all;
}

/// What was asked for, by value or not.
struct Filled {
  std::vector<FilledSchedule> all{};
  std::optional<planner::WorthResult> found{};  ///< --schedule best by value: how
};

Filled fill_what_was_asked_for(const Options& options, const Scenario& scenario,
                               const PrefillInput& input) {
  if (!input.stream.empty()) return {fill_streams(options, scenario, input)};
  if (!input.by_value || options.schedule != "best") return {fill_all(options, scenario, input)};
  Filled filled;
  filled.found = find_best_by_value(options, scenario, input);
  const Arrangement arrangement = planner_options_of(options).search.arrangement;
  filled.all.push_back(
      fill_bubbles(bubbles_of(filled.found->schedule, scenario, arrangement), scenario, input));
  return filled;
}

/// Of each model: how far its profile is off a size that is left out of it; null: no profile.
ordered_json cost_model_json(const Scenario& scenario) {
  ordered_json json = ordered_json::array();
  for (const ServedModel& model : scenario.served) {
    const auto error = prefill::leave_one_out(model);
    json.push_back({{"model", model.name},
                    {"sizes_left_out", error ? error->sizes : 0},
                    {"mean_error", error ? ordered_json(error->mean) : ordered_json{}},
                    {"worst_error", error ? ordered_json(error->worst) : ordered_json{}}});
  }
  return json;
}

/// What a list's schedules are worth, as a search says it of those that it chose from.
std::vector<planner::WorthCandidate> valued(const std::vector<FilledSchedule>& all,
                                            const ScheduleValue& value) {
  std::vector<planner::WorthCandidate> candidates;
  for (std::size_t i = 0; i < all.size(); ++i)
    candidates.push_back({all[i].bubbles.schedule, worth_of(all[i], value.per_second[i])});
  return candidates;
}

ordered_json value_json(const std::vector<planner::WorthCandidate>& candidates) {
  ordered_json json = ordered_json::array();
  for (const auto& [schedule, worth] : candidates)
    json.push_back(
        {{"schedule", schedule.name},
         {"period_ns", worth.period.count()},
         {"iterations", worth.iterations},
         {"tokens_served", worth.tokens},
         {"ttft_p99_ns", worth.ttft_p99 ? ordered_json(worth.ttft_p99->count()) : ordered_json{}},
         {"wait_mean_ns", worth.wait.count()},
         {"value_per_second", worth.per_second}});
  return json;
}

/// --objective value: the prices, what is worth most, and what it was chosen from.
ordered_json value_json(const Filled& filled, const Scenario& scenario, double price) {
  const ScheduleValue value = schedule_value(scenario, filled.all, price);
  ordered_json json{{"prefill_price", price},
                    {"gpu_hour", value.gpu_hour},
                    {"gpu_hour_is_assumed", value.is_assumed},
                    {"chosen", filled.all[value.chosen].bubbles.schedule.name}};
  if (!filled.found) {
    json["candidates"] = value_json(valued(filled.all, value));
    return json;
  }
  const planner::WorthResult& found = *filled.found;
  std::vector<planner::WorthCandidate> candidates{{found.schedule, found.worth}};
  candidates.insert(candidates.end(), found.candidates.begin(), found.candidates.end());
  json["candidates"] = value_json(candidates);
  json["search"] = {{"started_from", found.started_from},
                    {"moves", found.moves},
                    {"judged", found.judged},
                    {"replicas_differ", !found.schedule.replicas_share_rows()}};
  return json;
}

}  // namespace

Answer prefill_command(const Options& options) {
  const Scenario scenario = scenario_of(options);
  const PrefillInput input = read_prefill_input(options.prefill, scenario);
  if (!options.prefill.placements_out.empty())
    report::require_new_file(options.prefill.placements_out);
  if (!options.prefill.schedule_out.empty()) report::require_new_file(options.prefill.schedule_out);
  const Filled filled = fill_what_was_asked_for(options, scenario, input);
  const std::vector<FilledSchedule>& all = filled.all;
  ordered_json valued;
  if (input.by_value) valued = value_json(filled, scenario, *input.price);
  write_schedule(options.prefill.schedule_out, all);
  if (!options.prefill.placements_out.empty() && input.stream.empty()) {
    require_one_schedule("--placements-out", all.size());
    report::write_new_file(options.prefill.placements_out, [&](std::ostream& out) {
      out << kPlacementColumns;
      for (const Decision& each : all.front().decisions) out << placement_line(each);
    });
  }
  if (!options.json)
    return {fmt::format("{}: {}; simulated, {}, {}\n\n", scenario.name, report::size_text(scenario),
                        to_string(input.policy), input.load) +
            text_of(all, table_width(options)) + "\n" +
            (input.by_value ? fmt::format("worth most: {} ($ {} of 10^6 prompt tokens)\n",
                                          valued["chosen"].get<std::string>(), *input.price)
                            : std::string{}) +
            (filled.found ? search_text(*filled.found) : std::string{}) +
            notes_text(scenario, input, all)};
  ordered_json json = record_header(options, scenario);
  json["policy"] = to_string(input.policy);
  json["load"] = input.load;
  json["cost_model"] = cost_model_json(scenario);
  json["not_counted"] = prefill::not_counted(scenario);
  json["left_out"] = left_out_of_backlog(scenario, input);
  if (input.by_value) json["value"] = valued;
  json["schedules"] = ordered_json::array();
  for (const FilledSchedule& each : all) json["schedules"].push_back(filled_json(each));
  return {report::json_text(json)};
}

}  // namespace longhaul::cli
