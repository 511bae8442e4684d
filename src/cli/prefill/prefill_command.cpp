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

std::string placement_line(const Decision& each) {
  std::string csv = fmt::format("{},{},{},", each.request, each.arrival.count(), each.tokens);
  if (each.refused) return csv + fmt::format("refused,{},,,\n", to_string(*each.refused));
  return csv + fmt::format("{},,{},{},{}\n", each.unfinished ? "unfinished" : "placed",
                           each.pipeline, each.start.count(), each.end.count());
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
  if (!left_out_of_backlog(scenario, input).empty())
    text += "! a backlog's memory, keys and decode ranks count nothing\n";
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

/// Of --schedule best by value: the static schedules are there to choose from, too.
Options with_candidates(const Options& options, const PrefillInput& input) {
  Options more = options;
  if (input.by_value && options.schedule == "best") more.schedule = "static,best";
  return more;
}

void require_one_schedule(std::size_t count) {
  if (count != 1)
    fail("--placements-out: the answers of {} schedules do not go into one file. Name one.", count);
}

std::vector<FilledSchedule> fill_all(const Options& options, const Scenario& scenario,
                                     const PrefillInput& input) {
  std::vector<FilledSchedule> all;
  for (SimulatedBubbles& bubbles : simulated_bubbles(with_candidates(options, input), scenario))
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
  require_one_schedule(bubbles.size());
  report::write_new_file(options.prefill.placements_out, [&](std::ostream& out) {
    out << kPlacementColumns;
    all.push_back(fill_from_stream(std::move(bubbles.front()), scenario, input,
                                   [&](const Decision& each) { out << placement_line(each); }));
  });
  return all;
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

ordered_json value_json(const ScheduleValue& value, const std::vector<FilledSchedule>& all,
                        double price) {
  ordered_json json{{"prefill_price", price},
                    {"gpu_hour", value.gpu_hour},
                    {"gpu_hour_is_assumed", value.is_assumed},
                    {"chosen", all[value.chosen].bubbles.schedule.name},
                    {"candidates", ordered_json::array()}};
  for (std::size_t i = 0; i < all.size(); ++i)
    json["candidates"].push_back(
        {{"schedule", all[i].bubbles.schedule.name},
         {"period_ns", all[i].bubbles.iteration.period.count()},
         {"tokens_served", all[i].outcome.tokens_served},
         {"ttft_p99_ns",
          all[i].outcome.ttft ? ordered_json(all[i].outcome.ttft->p99.count()) : ordered_json{}},
         {"value_per_second", value.per_second[i]}});
  return json;
}

}  // namespace

Answer prefill_command(const Options& options) {
  const Scenario scenario = scenario_of(options);
  const PrefillInput input = read_prefill_input(options.prefill, scenario);
  if (!options.prefill.placements_out.empty())
    report::require_new_file(options.prefill.placements_out);
  std::vector<FilledSchedule> all = input.stream.empty() ? fill_all(options, scenario, input)
                                                         : fill_streams(options, scenario, input);
  std::optional<ScheduleValue> value;
  ordered_json valued;
  if (input.by_value) {
    value = schedule_value(scenario, all, *input.price);
    valued = value_json(*value, all, *input.price);
    if (options.schedule == "best") {
      std::swap(all.front(), all[value->chosen]);
      all.resize(1);
    }
  }
  if (!options.prefill.placements_out.empty() && input.stream.empty()) {
    require_one_schedule(all.size());
    report::write_new_file(options.prefill.placements_out, [&](std::ostream& out) {
      out << kPlacementColumns;
      for (const Decision& each : all.front().decisions) out << placement_line(each);
    });
  }
  if (!options.json)
    return {fmt::format("{}: {}; simulated, {}, {}\n\n", scenario.name, report::size_text(scenario),
                        to_string(input.policy), input.load) +
            text_of(all, table_width(options)) + "\n" +
            (value ? fmt::format("worth most: {} ($ {} of 10^6 prompt tokens)\n",
                                 valued["chosen"].get<std::string>(), *input.price)
                   : std::string{}) +
            notes_text(scenario, input, all)};
  ordered_json json = record_header(options, scenario);
  json["policy"] = to_string(input.policy);
  json["load"] = input.load;
  json["cost_model"] = cost_model_json(scenario);
  json["not_counted"] = prefill::not_counted(scenario);
  json["left_out"] = left_out_of_backlog(scenario, input);
  if (value) json["value"] = valued;
  json["schedules"] = ordered_json::array();
  for (const FilledSchedule& each : all) json["schedules"].push_back(filled_json(each));
  return {report::json_text(json)};
}

}  // namespace longhaul::cli
