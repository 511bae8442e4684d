#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "base/text_file.hpp"
#include "base/unit_text.hpp"
#include "base/version.hpp"
#include "harness/options/run_files.hpp"
#include "harness/ranks/main.hpp"
#include "harness/training/train_run.hpp"
#include "report/page/train_page.hpp"
#include "report/record_file.hpp"
#include "report/tables.hpp"

namespace longhaul::harness {
namespace {

using nlohmann::ordered_json;

/// Above this share of ops that took longer than modelled a paced run is not one.
constexpr double kMostOverruns = 0.01;
constexpr double kMostLost = 1e-5;

ordered_json or_nothing(const auto& value) { return value ? ordered_json(*value) : ordered_json{}; }

ordered_json number_or_null(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json{};
}

ordered_json part_json(const training::DataPart& part) {
  return {{"bytes", part.bytes}, {"sha256", part.sha256}, {"samples", part.samples}};
}

ordered_json data_json(const training::DataFacts& facts) {
  return {{"name", facts.name},
          {"train", part_json(facts.train)},
          {"held_out", part_json(facts.held_out)}};
}

ordered_json points_json(const TrainCurve& curve) {
  ordered_json points = ordered_json::array();
  for (const TrainPoint& point : curve.points)
    points.push_back({point.iteration, point.elapsed.count(), number_or_null(point.train_loss),
                      number_or_null(point.validation)});
  return points;
}

/// A warm-up of 0 with onebit: a fifth of the run.
ordered_json rival_json(const training::RivalSettings& rival) {
  return {{"keep", rival.keep},
          {"momentum", rival.momentum},
          {"decay", rival.decay},
          {"warm_up", rival.warm_up},
          {"local_steps", rival.local_steps},
          {"outer_rate", rival.outer_rate},
          {"rank", rival.rank},
          {"fragments", rival.fragments},
          {"overlap", rival.overlap},
          {"mixing", rival.mixing},
          {"bits", rival.bits},
          {"feedback", rival.feedback}};
}

bool is_faithful(const TrainCurve& curve) {
  return static_cast<double>(curve.overran) <= kMostOverruns * static_cast<double>(curve.ops);
}

ordered_json settings_json(const TrainMethod& method) {
  const Training& train = method.scenario.train;
  ordered_json json{
      {"method", method.rival ? to_string(method.rival->rival) : to_string(train.compress.method)},
      {"exchange", to_string(train.compress.exchange)},
      {"staleness", train.staleness},
      {"serve", to_string(train.serve)}};
  if (!train.batch.empty()) json["batch"] = train.batch;
  if (train.gather != GradientGather::none) json["gather"] = to_string(train.gather);
  if (is_sparse(train.compress.method)) {
    json["keep"] = train.compress.keep;
    json["block"] = train.compress.block;
    json["values"] = to_string(train.compress.values);
    json["index"] = to_string(train.compress.index);
    json["share"] = to_string(train.compress.share);
    json["feedback"] = train.compress.feedback;
    json["lazy"] = to_string(method.optimizer.lazy);
  }
  if (const auto& activations = train.activations) {
    json["activations"] = to_string(activations->format);
    if (activations->format == ActivationFormat::topk) {
      json["activations_keep"] = activations->keep;
      json["activations_feedback"] = to_string(activations->feedback);
    }
  }
  if (!method.rival || training::steps_locally(method.rival->rival))
    json["optimizer"] = to_string(method.optimizer.rule);
  return json;
}

ordered_json curve_json(const TrainCurve& curve, const TrainRun& run, const TrainMethod& method) {
  ordered_json json{{"method", curve.method}};
  json["settings"] = settings_json(method);
  json["rival"] = ordered_json{};
  if (method.rival) json["rival"] = rival_json(*method.rival);
  json["seed"] = curve.seed;
  json["learning_rate"] = curve.learning_rate;
  json["kind"] = curve.is_composed ? "composed" : "measured";
  json["points"] = points_json(curve);
  json["losses"] = ordered_json::array();
  for (const double loss : curve.losses) json["losses"].push_back(number_or_null(loss));
  json["iterations_to_target"] = or_nothing(curve.iterations_to_target);
  json["time_to_target_ns"] =
      curve.time_to_target ? ordered_json(curve.time_to_target->count()) : ordered_json{};
  json["exchanges"] = curve.elapsed.size();
  const std::optional<Duration> search = run.search_cost(curve.method);
  json["search_cost_ns"] = search ? ordered_json(search->count()) : ordered_json{};
  json["period_ns"] =
      curve.period > Duration::zero() ? ordered_json(curve.period.count()) : ordered_json{};
  json["predicted_period_ns"] =
      curve.predicted_period ? ordered_json(curve.predicted_period->count()) : ordered_json{};
  json["longer_at_first_ns"] = ordered_json::array();  // of the first exchanges, which send more
  for (const Duration longer : curve.longer_at_first)
    json["longer_at_first_ns"].push_back(longer.count());
  json["fresh_share"] = or_nothing(curve.fresh_share());
  json["predicted_fresh_share"] = or_nothing(curve.predicted_fresh_share);
  json["sent"] = {{"payload_bytes", curve.payload_bytes},
                  {"encoded_bytes", curve.encoded_bytes},
                  {"between_stages_bytes", curve.between_stages}};
  json["wan"] = {{"payload_bytes", curve.wan_payload_bytes},
                 {"encoded_bytes", curve.wan_encoded_bytes},
                 {"between_stages_bytes", curve.wan_between_stages},
                 {"nominal_bytes", curve.wan_nominal_bytes}};
  if (curve.adaptation) {
    json["samples"] = curve.adaptation->samples;
    json["effective_samples"] = curve.adaptation->effective_samples;
    json["adaptation"] = report::adaptation_json(*curve.adaptation);
  }
  json["versions"] = curve.versions;
  json["mass"] = {{"lost_relative", or_nothing(curve.lost_relative)}};
  json["replay"] = ordered_json{};
  json["replicas_equal"] = or_nothing(curve.replicas_equal);
  if (curve.replay)
    json["replay"] = {{"equal", curve.replay->equal},
                      {"losses_equal", curve.replay->losses_equal},
                      {"largest_difference", curve.replay->largest_difference}};
  json["pace"] = {{"ops", curve.ops}, {"longer", curve.overran}, {"faithful", is_faithful(curve)}};
  json["messages"] = curve.checks.messages;
  json["blocks"] = curve.checks.blocks;
  json["check"] = curve.checks.wrong() == 0 ? "ok" : "wrong";
  return json;
}

std::string time_text(const ordered_json& ns) {
  return ns.is_null() ? "-" : to_text(Duration{ns.get<std::int64_t>()});
}

std::string share_text(const ordered_json& share) {
  return share.is_null() ? "-" : report::percent_text(share.get<double>()) + "%";
}

}  // namespace

ordered_json train_record(const std::vector<TrainMethod>& methods, const TrainRun& run,
                          const TrainOptions& options, const TrainSettings& settings,
                          const nlohmann::json& environment) {
  const Scenario& scenario = methods.front().scenario;
  ordered_json record = report::record_header(
      {.benchmark = "bench_train", .numbers = "measured", .command_line = options.command_line});
  record["scenario"] = scenario.name;
  record["scenario_text"] = scenario.text;
  record["schedule"] = options.schedule;
  record["ranks"] = scenario.ranks();
  record["emulate"] = options.emulate;
  record["network"] = options.emulate == "on" ? "emulated" : "as it is";
  record["compute"] = options.compute;
  record["lateness_credit_ns"] = settings.engine.credit.count();
  record["paced"] = settings.pace == device::Pace::modelled;
  record["stands_for"] =
      scenario.train.stands_for.empty() ? ordered_json{} : ordered_json(scenario.train.stands_for);
  record["environment"] = environment;
  ordered_json train;
  train["data"] = data_json(run.data);
  train["target"] = ordered_json{};
  if (settings.target)
    train["target"] = {{"kind", to_string(settings.target->kind)},
                       {"value", settings.target->value}};
  train["trials"] = ordered_json::array();
  for (const TrainTrial& trial : run.trials)
    train["trials"].push_back({{"method", trial.method},
                               {"learning_rate", trial.learning_rate},
                               {"validation", number_or_null(trial.validation)},
                               {"took_ns", trial.took.count()}});
  train["curves"] = ordered_json::array();
  for (const TrainCurve& curve : run.curves) {
    const auto method = std::ranges::find(methods, curve.method, &TrainMethod::name);
    train["curves"].push_back(curve_json(curve, run, *method));
  }
  record["train"] = std::move(train);
  return record;
}

std::string why_not_right(const TrainRun& run) {
  std::string why;
  const auto add = [&](const TrainCurve& curve, const std::string& what) {
    why +=
        fmt::format("{}{}, seed {}: {}", why.empty() ? "" : "; ", curve.method, curve.seed, what);
  };
  for (const TrainCurve& curve : run.curves) {
    if (curve.checks.wrong() > 0)
      add(curve, fmt::format("{} messages or ops were wrong", curve.checks.wrong()));
    if (curve.lost_relative && !(*curve.lost_relative <= kMostLost))
      add(curve, fmt::format("{:.2g} of the gradients was lost (at most {:.0e})",
                             *curve.lost_relative, kMostLost));
    if (curve.replicas_equal && !*curve.replicas_equal)
      add(curve, "replicas end with different weights");
    if (curve.replay && !curve.replay->equal)
      add(curve, fmt::format("one rank gets other numbers ({:.2g} apart)",
                             curve.replay->largest_difference));
  }
  return why;
}

/// How far from the target each curve ends that does not reach it.
std::string short_of_target(const ordered_json& train) {
  std::string text;
  if (train["target"].is_null()) return text;
  const double target = train["target"]["value"].get<double>();
  for (const ordered_json& curve : train["curves"]) {
    const ordered_json& points = curve["points"];
    if (!curve["iterations_to_target"].is_null() || points.empty()) continue;
    const std::string who =
        fmt::format("{}, seed {}: ", curve["method"].get<std::string>(), curve["seed"].get<int>());
    const ordered_json& last = points.back()[3];
    if (last.is_null()) {
      text += fmt::format("{}diverged, without {} = {:g}\n", who,
                          train["target"]["kind"].get<std::string>(), target);
      continue;
    }
    text += fmt::format("{}{:.3f} above the target of {:g} after {} updates\n", who,
                        last.get<double>() - target, target, points.back()[0].get<int>());
  }
  return text;
}

/// What the trials took, and of which method the best rate is at an end of the grid.
std::string search_text(const ordered_json& train) {
  std::map<std::string, std::vector<std::pair<double, double>>> trials;  // rate, validation
  std::map<std::string, std::int64_t> took;
  const ordered_json& all = train["trials"];
  for (const ordered_json& trial : all) {
    const std::string method = trial["method"].get<std::string>();
    const ordered_json& validation = trial["validation"];
    trials[method].emplace_back(
        trial["learning_rate"].get<double>(),
        validation.is_null() ? std::numeric_limits<double>::infinity() : validation.get<double>());
    took[method] += trial["took_ns"].get<std::int64_t>();
  }
  std::string text;
  for (auto& [method, of_method] : trials) {
    std::ranges::sort(of_method);
    const auto best =
        std::ranges::min_element(of_method, {}, [](const auto& each) { return each.second; });
    const bool at_end = best == of_method.begin() || std::next(best) == of_method.end();
    text += fmt::format("{}: {} trials took {}{}\n", method, of_method.size(),
                        to_text(Duration{took[method]}),
                        at_end ? fmt::format("; {:g} is at an end of the grid", best->first) : "");
  }
  return text;
}

std::string train_text(const ordered_json& record) {
  const ordered_json& train = record["train"];
  Table table{{{"method", Align::left},
               {"seed"},
               {"rate"},
               {"validation"},
               {"updates to target"},
               {"time to target"},
               {"kind", Align::left},
               {"exchange"},
               {"predicted"},
               {"fresh"},
               {"predicted"},
               {"WAN an exchange"},
               {"lost"},
               {"replay"}}};
  const ordered_json& curves = train["curves"];
  for (const ordered_json& curve : curves) {
    const ordered_json none;
    const ordered_json& points = curve["points"];
    const ordered_json& validation = points.empty() ? none : points.back()[3];
    const ordered_json &to = curve["iterations_to_target"], &lost = curve["mass"]["lost_relative"],
                       &replay = curve["replay"];
    table.add_row(
        {curve["method"].get<std::string>(), std::to_string(curve["seed"].get<int>()),
         fmt::format("{:g}", curve["learning_rate"].get<double>()),
         validation.is_null() ? (points.empty() ? "-" : "diverged")
                              : fmt::format("{:.3f}", validation.get<double>()),
         to.is_null() ? "-" : std::to_string(to.get<int>()), time_text(curve["time_to_target_ns"]),
         curve["kind"].get<std::string>(), time_text(curve["period_ns"]),
         time_text(curve["predicted_period_ns"]), share_text(curve["fresh_share"]),
         share_text(curve["predicted_fresh_share"]),
         to_text(Bytes{curve["wan"]["payload_bytes"].get<std::int64_t>() /
                       std::max<std::int64_t>(1, curve["exchanges"].get<std::int64_t>())}),
         lost.is_null() ? "-" : fmt::format("{:.1e}", lost.get<double>()),
         replay.is_null() ? "-" : (replay["equal"].get<bool>() ? "equal" : "differs")});
  }
  std::string text =
      fmt::format("{}: {} on {}{}\n\n{}", record["scenario"].get<std::string>(),
                  record["schedule"].get<std::string>(), train["data"]["name"].get<std::string>(),
                  record["stands_for"].is_null()
                      ? std::string{}
                      : " (stands for " + record["stands_for"].get<std::string>() + ")",
                  table.text());
  for (const ordered_json& curve : curves) {
    const double ops = curve["pace"]["ops"].get<double>();
    const double longer = curve["pace"]["longer"].get<double>();
    if (record["paced"].get<bool>() && !curve["pace"]["faithful"].get<bool>())
      text += fmt::format("{}: not faithful: {:.1f}% of the ops took longer than modelled\n",
                          curve["method"].get<std::string>(), 100 * longer / ops);
  }
  return text + short_of_target(train) + search_text(train);
}

void write_train_files(const ordered_json& record, const std::vector<TrainMethod>& methods,
                       const TrainRun& run, const TrainOptions& options) {
  std::filesystem::remove(options.out /
                          "curves.csv");  // of a run that was killed before its record
  write_new_file(options.out / "curves.csv", curves_csv(methods, run, options.command_line));
  write_new_file(options.out / "record.json", report::json_text(record));
  if (!options.no_report)
    fmt::print(stderr, "{}", report::write_page_of_training(options.out, record));
}

ExitCode report_complete_training(engine::Ranks& ranks, const TrainOptions& options,
                                  const std::string& wrong) {
  (void)on_rank0(ranks.world(), [&]() -> std::string {
    if (options.json) fmt::print("{}", read_text_file(options.out / "record.json"));
    fmt::print(stderr, "longhaul: {} is complete: nothing is left to run\n", options.out.string());
    if (!wrong.empty()) fmt::print(stderr, "longhaul: {}\n", wrong);
    return {};
  });
  ranks.host_ranks().mine().phase = comm::Phase::finished;
  return wrong.empty() ? ExitCode::fine : ExitCode::answer_is_no;
}

}  // namespace longhaul::harness
