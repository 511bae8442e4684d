#include "cli/tune/family.hpp"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/program/arguments.hpp"
#include "base/program/option_values.hpp"
#include "base/table.hpp"
#include "base/text_file.hpp"
#include "base/unit_text.hpp"
#include "plan/lowering/part_lowering.hpp"
#include "planner/make_schedule.hpp"
#include "planner/tune/family.hpp"
#include "planner/tune/family_between.hpp"
#include "planner/tune/stream_period.hpp"
#include "report/adapted_stream.hpp"
#include "report/record_file.hpp"
#include "report/stream_report.hpp"
#include "scenario/training/read_train.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;

constexpr int kFamilyIterations = 24;

/// Methods are named with or without what follows the first colon.
std::vector<planner::FamilyMember> members_of(const TuneArguments& typed) {
  if (typed.curves.empty())
    fail(
        "tune: --curves is missing (how methods learn). Name a table with method, seed, exchange, "
        "serve, staleness, local_steps, wan_bytes, updates and validation.");
  std::vector<planner::FamilyMember> all =
      planner::read_family(read_text_file(typed.curves), typed.curves);
  if (typed.between)
    for (planner::FamilyMember& each : planner::members_between(all))
      all.push_back(std::move(each));
  if (typed.family == "all") return all;
  std::vector<planner::FamilyMember> chosen;
  for (const std::string& name : longhaul::words_of(typed.family, ',')) {
    const std::size_t before = chosen.size();
    for (const planner::FamilyMember& member : all)
      if (member.method == name || member.method.substr(0, member.method.find(':')) == name)
        chosen.push_back(member);
    if (chosen.size() == before)
      fail("--family: {} has no curve of \"{}\". Take all.", typed.curves, name);
  }
  std::ranges::stable_partition(chosen, [](const auto& each) { return each.between == nullptr; });
  return chosen;
}

Scenario scenario_under(const Scenario& scenario, const planner::FamilyMember& member,
                        std::optional<Bandwidth> bandwidth) {
  Scenario own =
      member.method.ends_with(planner::kHetero) ? report::by_throughput(scenario) : scenario;
  planner::exchange_as(own.train, member);
  own.parallel.microbatches = member.local_steps;
  for (Link& link : own.links)
    if (bandwidth && link.from != link.to) link.bandwidth = *bandwidth;
  return own;
}

/// As if of the model that the scenario's stands for.
double nominal_bytes(const Scenario& scenario, double bytes) {
  constexpr Bytes kTried{1'000'000'000};
  return bytes * static_cast<double>(scenario::nominal_size(scenario, kTried).count()) /
         static_cast<double>(kTried.count());
}

/// An exchange under the links, whose sets are as large as brings so many bytes over the WAN.
Duration period_of(Scenario own, const planner::FamilyMember& member, double wan_bytes) {
  const Schedule schedule = planner::make_schedule("stella", own).schedule;
  const auto plan_with = [&](Bytes message) {
    own.train.message = message;
    return plan::lower_exchanges(schedule, own, {{}, member.fragments, member.overlap});
  };
  constexpr Bytes kTried{1'000'000};
  constexpr double kMost = 1e15;
  const double crossed = planner::bytes_between_datacenters(plan_with(kTried));
  const double share = crossed > 0 ? nominal_bytes(own, wan_bytes) / crossed : 0;
  const double message = std::clamp(share * static_cast<double>(kTried.count()), 1.0, kMost);
  const auto stream =
      report::stream_report(plan_with(Bytes{std::llround(message)}), own, kFamilyIterations);
  return *stream.period;
}

struct FamilySetting {
  std::optional<Bandwidth> bandwidth;
  std::vector<planner::FamilyForecast> forecasts;
  std::optional<std::size_t> pick;
  planner::FamilyRegret regret;
};

FamilySetting family_setting(const Scenario& scenario,
                             const std::vector<planner::FamilyMember>& members, double loss,
                             std::optional<Bandwidth> bandwidth) {
  FamilySetting setting{bandwidth, {}, {}, {}};
  for (const planner::FamilyMember& member : members) {
    const Scenario own = scenario_under(scenario, member, bandwidth);
    const Duration period = period_of(own, member, member.wan_bytes);
    setting.forecasts.push_back(
        {planner::updates_to(member, loss), period, member.early_exchanges,
         member.early_exchanges > 0 ? period_of(own, member, member.early_wan_bytes) : period});
  }
  setting.pick = planner::pick(members, setting.forecasts);
  // Seeds are of runs: those of composed members come last.
  const auto ran = static_cast<std::size_t>(
      std::ranges::count_if(members, [](const auto& each) { return each.between == nullptr; }));
  setting.regret = planner::regret_of({members.begin(), members.begin() + std::ptrdiff_t(ran)},
                                      setting.forecasts, loss);
  return setting;
}

ordered_json number_or_nothing(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json{};
}

ordered_json family_json(const FamilySetting& setting,
                         const std::vector<planner::FamilyMember>& members) {
  ordered_json json;
  json["bandwidth_bits_per_second"] =
      setting.bandwidth ? ordered_json(setting.bandwidth->bits_per_second()) : ordered_json{};
  json["pick"] = setting.pick ? ordered_json(members[*setting.pick].method) : ordered_json{};
  json["methods"] = ordered_json::array();
  for (std::size_t i = 0; i < members.size(); ++i) {
    const planner::FamilyForecast& forecast = setting.forecasts[i];
    const auto ns = [&](const std::optional<double>& updates) {
      if (!updates) return ordered_json{};
      return ordered_json(
          std::llround(1e9 * forecast.seconds_of(*updates, members[i].local_steps)));
    };
    json["methods"].push_back({{"method", members[i].method},
                               {"composed", members[i].between != nullptr},
                               {"seeds", forecast.updates.runs},
                               {"reached", forecast.updates.reached},
                               {"updates", number_or_nothing(forecast.updates.median)},
                               {"period_ns", forecast.period.count()},
                               {"time_ns", ns(forecast.updates.median)},
                               {"least_ns", ns(forecast.updates.least)},
                               {"most_ns", ns(forecast.updates.most)}});
  }
  json["regret"] = {{"seeds", setting.regret.seeds},
                    {"missed", setting.regret.missed},
                    {"mean", number_or_nothing(setting.regret.mean)}};
  return json;
}

std::string family_text(const FamilySetting& setting,
                        const std::vector<planner::FamilyMember>& members, TableWidth width) {
  Table table{{{"", Align::left},
               {"method", Align::left},
               {"updates"},
               {"exchange"},
               {"time"},
               {"from"},
               {"to"},
               {"seeds"}}};
  for (std::size_t i = 0; i < members.size(); ++i) {
    const planner::FamilyForecast& forecast = setting.forecasts[i];
    const auto time = [&](const std::optional<double>& updates) {
      if (!updates) return std::string{"-"};
      const double seconds = forecast.seconds_of(*updates, members[i].local_steps);
      return to_text(Duration{std::llround(seconds * 1e9)});
    };
    const planner::UpdatesToLoss& updates = forecast.updates;
    table.add_row({setting.pick == i ? "take" : "",
                   members[i].between ? members[i].method + " (composed)" : members[i].method,
                   updates.median ? fmt::format("{:g}", *updates.median) : "-",
                   to_text(forecast.period), time(updates.median), time(updates.least),
                   time(updates.most), fmt::format("{} of {}", updates.reached, updates.runs)});
  }
  std::string text = setting.bandwidth ? to_text(*setting.bandwidth) + "\n" : std::string{};
  text += table.text(width);
  const planner::FamilyRegret& regret = setting.regret;
  if (regret.mean)
    text += fmt::format("regret of a seed that the others choose for: {:.1f}% in the mean\n",
                        100 * *regret.mean);
  if (regret.missed > 0)
    text += fmt::format("of {} seeds {} are not reached by what the others choose\n", regret.seeds,
                        regret.missed);
  return text;
}

}  // namespace

double target_loss(const TuneArguments& typed, const Scenario& scenario) {
  if (!typed.target.empty()) {
    const std::vector<std::string> words = longhaul::words_of(typed.target, '=');
    if (words.size() != 2 || words[0] != "loss")
      fail("--target {}: curves are of losses. Write --target loss=2.3.", typed.target);
    return positive_number("--target", words[1]);
  }
  if (!scenario.train.target || scenario.train.target->kind != TargetKind::loss)
    fail("{}: [train] target is no loss (until when do methods train?). Give --target loss=2.3.",
         scenario.name);
  return scenario.train.target->value;
}

Answer tune_family(const Options& options, const std::vector<Bandwidth>& bandwidths) {
  const Scenario scenario = scenario_of(options);
  if (scenario.parallel.stages != 1 || scenario.parallel.microbatches != 1 ||
      scenario.parallel.gradient_sync != GradientSync::compressed)
    fail(
        "{}: tune --family is for replicas of one stage and one microbatch that exchange "
        "compressed gradients. Name such a scenario.",
        scenario.name);
  if (scenario.train.gather != GradientGather::none)
    fail(
        "{}: tune --family beside train.gather = \"{}\" (curves do not say whether nodes summed "
        "their gradients). Write --set train.gather=none.",
        scenario.name, to_string(scenario.train.gather));
  const double loss = target_loss(options.tune, scenario);
  const std::vector<planner::FamilyMember> members = members_of(options.tune);
  std::vector<std::optional<Bandwidth>> asked{bandwidths.begin(), bandwidths.end()};
  if (asked.empty()) asked.emplace_back();
  std::string text;
  ordered_json json =
      report::record_header({.creator = "longhaul", .command_line = options.command_line});
  json["scenario"] = scenario.name;
  json["target"] = {{"kind", "loss"}, {"value", loss}};
  json["numbers"] = "updates as measured, exchanges simulated";
  json["settings"] = ordered_json::array();
  for (const std::optional<Bandwidth>& bandwidth : asked) {
    const FamilySetting setting = family_setting(scenario, members, loss, bandwidth);
    json["settings"].push_back(family_json(setting, members));
    text += (text.empty() ? "" : "\n") + family_text(setting, members, table_width(options));
  }
  return options.json ? Answer{report::json_text(json)} : Answer{text};
}

}  // namespace longhaul::cli
