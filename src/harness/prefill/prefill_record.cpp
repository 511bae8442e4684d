#include "harness/prefill/prefill_record.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <nlohmann/json.hpp>

#include "base/statistics/sample.hpp"
#include "harness/prefill/live_pairs.hpp"
#include "harness/prefill/used_gpus.hpp"
#include "harness/records/pipeline_record.hpp"
#include "prefill/outcome.hpp"
#include "report/record_file.hpp"

namespace longhaul::harness {
namespace {

using nlohmann::ordered_json;

/// By id: what became of each request that was placed.
using PlayedById = std::map<std::int64_t, const PlayedRequest*>;

PlayedById played_by_id(const PrefillRun& run, StretchOutcome StretchPair::*side) {
  PlayedById played;
  for (const StretchPair& pair : run.pairs)
    for (const PlayedRequest& each : (pair.*side).requests) played[each.request] = &each;
  return played;
}

/// Of one request, or means.
template <typename Number>
ordered_json parts_json(const std::array<Number, 6>& parts) {
  const auto& [decision, wait, compute, hop, kv, first_token] = parts;
  return {{"network", 0},
          {"decision", decision},
          {"wait", wait},
          {"compute", compute},
          {"hop", hop},
          {"kv", kv},
          {"first_token", first_token}};
}

std::array<std::int64_t, 6> parts_of(const PlayedRequest& request) {
  return {request.decision.count(), request.wait.count(), request.compute.count(),
          request.hop.count(),      request.kv.count(),   request.first_token.count()};
}

/// What became of a request that was placed and did not end.
const char* why_failed(const PlayedRequest* played) {
  if (played == nullptr) return "declined";
  return played->came_wrong ? "kv" : played->was_killed ? "killed" : "declined";
}

ordered_json detail_json(const prefill::Decision& decision, const PlayedRequest* played) {
  ordered_json json{{"id", decision.request}, {"tokens", decision.tokens}};
  if (decision.refused) {
    json["answer"] = "refused";
    json["reason"] = to_string(*decision.refused);
    if (decision.lacks > Bytes{}) json["lacks_bytes"] = decision.lacks.count();
  } else {
    json["answer"] = played != nullptr && played->is_done ? "done" : "failed";
    if (json["answer"] == "failed") json["reason"] = why_failed(played);
  }
  const bool done = played != nullptr && played->is_done;
  json["ttft_ns"] = done ? ordered_json(played->ttft.count()) : ordered_json{};
  json["ttft_parts_ns"] = ordered_json{};
  if (!done) return json;
  json["ttft_parts_ns"] = parts_json(parts_of(*played));
  return json;
}

ordered_json percentiles_json(std::vector<double> sample) {
  if (sample.empty()) return {};
  std::ranges::sort(sample);
  const auto at = [&](double share) {
    const auto rank =
        static_cast<std::size_t>(std::ceil(share * static_cast<double>(sample.size())));
    return static_cast<std::int64_t>(sample[std::max<std::size_t>(rank, 1) - 1]);
  };
  return {{"p50", at(0.5)}, {"p90", at(0.9)}, {"p99", at(0.99)}, {"max", at(1)}};
}

/// TTFT of all that was answered, as measured or predicted, and the means of its parts.
void add_ttft(const PrefillRun& run, ordered_json& json) {
  for (const bool is_measured : {true, false}) {
    std::vector<double> ttft;
    std::array<double, 6> parts{};
    for (const StretchPair& pair : run.pairs)
      for (const PlayedRequest& each : (is_measured ? pair.with : pair.predicted).requests) {
        if (!each.is_done) continue;
        ttft.push_back(static_cast<double>(each.ttft.count()));
        for (std::size_t part = 0; part < parts.size(); ++part)
          parts[part] += static_cast<double>(parts_of(each)[part]);
      }
    for (double& part : parts) part /= std::max<double>(1, static_cast<double>(ttft.size()));
    const std::string name = is_measured ? "" : "predicted_";
    json[name + "ttft_ns"] = percentiles_json(ttft);
    json[name + "ttft_parts_ns"] = parts_json(parts);
  }
}

/// Keys and values of all stretches, as measured or predicted.
PlayedKv kv_of(const PrefillRun& run, StretchOutcome StretchPair::*side) {
  PlayedKv all;
  for (const StretchPair& pair : run.pairs) all += (pair.*side).kv;
  return all;
}

struct Counts {
  std::int64_t done = 0, failed = 0, tokens = 0;
  std::array<std::int64_t, every<prefill::RefusalReason>().size()> refused{};
  std::vector<prefill::PromptClass> by_length{};
};

Counts counts_of(std::vector<prefill::Decision> answers, const PlayedById& played) {
  Counts counts;
  for (prefill::Decision& each : answers) {
    if (each.refused) {
      ++counts.refused[static_cast<std::size_t>(*each.refused)];
      continue;
    }
    const auto found = played.find(each.request);
    const bool done = found != played.end() && found->second->is_done;
    ++(done ? counts.done : counts.failed);
    counts.tokens += done ? each.tokens : 0;
    each.unfinished = !done;
  }
  counts.by_length = prefill::prompt_classes(answers);
  return counts;
}

/// `offered`: of the source, not of the answers.
ordered_json requests_json(const Counts& counts, std::int64_t offered, const PrefillRun& run,
                           StretchOutcome StretchPair::*side, PrefillController controller) {
  ordered_json refused = ordered_json::object();
  for (const prefill::RefusalReason reason : every<prefill::RefusalReason>())
    refused[to_string(reason)] = counts.refused[static_cast<std::size_t>(reason)];
  std::int64_t late = 0;
  prefill::LiveTally tally;
  for (const StretchPair& pair : run.pairs) {
    late += (pair.*side).late;
    tally += (pair.*side).tally;
  }
  ordered_json by_length = ordered_json::array();
  for (const prefill::PromptClass& each : counts.by_length)
    by_length.push_back(
        {{"below_tokens", each.is_longest() ? ordered_json{} : ordered_json(each.below)},
         {"offered", each.offered},
         {"done", each.done},
         {"refused", each.refused}});
  const std::int64_t cancelled = side == &StretchPair::with ? std::ssize(run.cancelled) : 0;
  ordered_json json{{"offered", offered},
                    {"done", counts.done},
                    {"refused", refused},
                    {"failed", counts.failed},
                    {"late", late}};
  json["cancelled"] = cancelled;
  json["killed"] = tally.killed;
  if (controller == PrefillController::live) {
    json["declined"] = tally.declined;
    json["late_answers"] = tally.late_answers;
    json["latest_answer_ns"] = tally.latest_answer.count();
    json["longest_decision_ns"] = tally.longest_decision.count();
  }
  json["by_length"] = by_length;
  return json;
}

/// Requests to which the run's answers are the predicted ones: placed or refused, and where.
ordered_json agreement_json(const PrefillRun& run) {
  std::map<std::int64_t, const prefill::Decision*> predicted;
  for (const prefill::Decision& each : run.predicted_answers) predicted[each.request] = &each;
  std::int64_t both = 0, same_answer = 0, both_placed = 0, same_pipeline = 0;
  for (const prefill::Decision& each : run.answers) {
    const auto found = predicted.find(each.request);
    if (found == predicted.end()) continue;
    ++both;
    same_answer += each.refused == found->second->refused;
    if (each.refused || found->second->refused) continue;
    ++both_placed;
    same_pipeline += each.pipeline == found->second->pipeline;
  }
  return {{"in_both", both},
          {"same_answer", same_answer},
          {"placed_in_both", both_placed},
          {"same_pipeline", same_pipeline}};
}

ordered_json delay_json(const PrefillRun& run, StretchOutcome StretchPair::*side) {
  std::int64_t blocks = 0;
  Duration total{};
  for (const StretchPair& pair : run.pairs) {
    blocks += (pair.*side).blocks_bound_by_prefill;
    total += (pair.*side).delay;
  }
  const PlayedKv kv = kv_of(run, side);
  return {{"blocks_bound_by_prefill", blocks},
          {"total_ns", total.count()},
          {"messages_bound_by_kv", kv.messages_bound},
          {"by_kv_ns", kv.delay.count()}};
}

/// The verdict of `longhaul compare` on two samples of one run.
std::string verdict_of(const Ratio& ratio, double of_medians) {
  if (!ratio.interval) return "not distinguishable";
  if (ratio.interval->low > 1 && of_medians > 1) return "slower";
  if (ratio.interval->high < 1 && of_medians < 1) return "faster";
  return "not distinguishable";
}

/// `half_on_ns`: of a stretch with prefill after which the run was stopped.
ordered_json pairs_json(const PrefillRun& run) {
  std::vector<double> on, off;
  ordered_json json{{"order", ordered_json::array()},
                    {"on_ns", ordered_json::array()},
                    {"off_ns", ordered_json::array()}};
  for (const StretchPair& pair : run.pairs) {
    if (!pair.is_whole) {
      json["half_on_ns"] = pair.with.wall.count();
      continue;
    }
    on.push_back(static_cast<double>(pair.with.wall.count()));
    off.push_back(static_cast<double>(pair.without.wall.count()));
    json["order"].push_back(pair.prefill_first ? "on-off" : "off-on");
    json["on_ns"].push_back(pair.with.wall.count());
    json["off_ns"].push_back(pair.without.wall.count());
  }
  if (on.empty()) {
    for (const char* const none : {"ratio_of_medians", "ratio", "interval"}) json[none] = nullptr;
    json["verdict"] = "not distinguishable";
    json["reason"] = "no whole pair";
    return json;
  }
  const Ratio ratio = ratio_of(off, on);
  const double medians = summarize(on).median / summarize(off).median;
  json["ratio_of_medians"] = medians;
  json["ratio"] = ratio.estimate;
  json["interval"] = ratio.interval
                         ? ordered_json::array({ratio.interval->low, ratio.interval->high})
                         : ordered_json{};
  json["verdict"] = verdict_of(ratio, medians);
  if (!ratio.interval) json["reason"] = "too few pairs for an interval: 4 can tell";
  return json;
}

ordered_json schedule_json(const PlannedStretches& planned, const PrefillRun& run,
                           const PrefillSettings& settings) {
  const auto played = played_by_id(run, &StretchPair::with);
  std::vector<prefill::Decision> answered = run.answers;
  answered.insert(answered.end(), run.failed.begin(), run.failed.end());
  const Counts counts = counts_of(answered, played);
  ordered_json json{{"schedule", planned.schedule.name},
                    {"period_ns", planned.stretch_time().count() / settings.stretch},
                    {"stretch_ns", planned.stretch_time().count()}};
  json["utilisation"] = utilisation_json(planned, run, settings);
  json["predicted_utilisation"] = predicted_utilisation_json(planned, run);
  json["idle_ns"] = idle_json(run, &StretchPair::with);
  json["predicted_idle_ns"] = idle_json(run, &StretchPair::predicted);
  json["requests"] =
      requests_json(counts, std::ssize(run.offered), run, &StretchPair::with, settings.controller);
  json["predicted_requests"] = requests_json(
      counts_of(run.predicted_answers, played_by_id(run, &StretchPair::predicted)),
      std::ssize(run.predicted_answers), run, &StretchPair::predicted, settings.controller);
  json["answers_as_predicted"] = agreement_json(run);
  json["tokens_served"] = counts.tokens;
  add_ttft(run, json);
  json["training_delay"] = delay_json(run, &StretchPair::with);
  json["predicted_training_delay"] = delay_json(run, &StretchPair::predicted);
  json["placement_ns"] = settings.controller == PrefillController::planned
                             ? ordered_json(planned.placement.count())
                             : ordered_json{};
  json["cost"] = cost_json(planned, run);
  if (planned.sends_kv()) {
    const PlayedKv kv = kv_of(run, &StretchPair::with);
    json["kv"] = {{"sending", to_string(settings.kv)},
                  {"slices", kv.slices},
                  {"bytes", kv.bytes.count()},
                  {"predicted_slices", kv_of(run, &StretchPair::predicted).slices}};
    if (settings.controller == PrefillController::live)
      json["kv"]["gpus_short_of_slices"] = short_of_slices(planned, settings).gpus;
  }
  if (planned.limits_memory()) json["memory"] = memory_json(run);
  json["requests_detail"] = ordered_json::array();
  for (const prefill::Decision& each : run.answers) {
    const auto found = played.find(each.request);
    json["requests_detail"].push_back(
        detail_json(each, found == played.end() ? nullptr : found->second));
  }
  for (const prefill::Decision& each : run.failed) {
    json["requests_detail"].push_back(detail_json(each, nullptr));
    json["requests_detail"].back()["reason"] =
        prefill::gone_controller(planned.scenario.datacenters[to_size(each.datacenter)].name);
  }
  for (const prefill::Decision& each : run.cancelled)
    json["requests_detail"].push_back({{"id", each.request}, {"answer", "cancelled"}});
  return json;
}

/// Who does what, by rank: roles may share one.
ordered_json roles_json(const PlannedStretches& planned) {
  const Scenario& scenario = planned.scenario;
  ordered_json roles = ordered_json::array();
  std::vector<int> training(to_size(scenario.training_ranks()));
  std::iota(training.begin(), training.end(), 0);
  roles.push_back({{"role", "training"}, {"ranks", training}});
  const int controller = scenario.training_ranks();
  roles.push_back({{"role", "inference controller"}, {"ranks", {controller}}});
  std::map<int, std::set<std::int32_t>> serving;  // GPUs by datacenter
  for (const prefill::Served& each : planned.served)
    for (const prefill::Pipeline& own : each.serving.pipelines)
      for (const std::int32_t rank : own.ranks)
        serving[scenario.is_placed() ? static_cast<int>(index(scenario.datacenter_of(Rank{rank})))
                                     : 0]
            .insert(rank);
  const auto name_of = [&](int datacenter) {
    return scenario.datacenters.empty()
               ? ordered_json{}
               : ordered_json(scenario.datacenters[to_size(datacenter)].name);
  };
  for (const auto& [datacenter, gpus] : serving)
    roles.push_back({{"role", "BubbleTea controller"},
                     {"datacenter", name_of(datacenter)},
                     {"ranks", {controller}},
                     {"serves_on", gpus}});
  int decode = controller + 1;  // with_service_ranks()
  for (const auto& [datacenter, gpus] : serving)
    roles.push_back(
        {{"role", "decode"}, {"datacenter", name_of(datacenter)}, {"ranks", {decode++}}});
  return roles;
}

/// Do requests or datacenters have regions? On ranks each request is at hand.
bool names_regions(const PlannedStretches& planned) {
  return std::ranges::any_of(planned.requests,
                             [](const auto& each) { return !each.region.empty(); }) ||
         std::ranges::any_of(planned.scenario.datacenters,
                             [](const auto& each) { return !each.region.empty(); });
}

}  // namespace

ordered_json prefill_record(const PlannedStretches& planned, const PrefillRun& run,
                            const PrefillOptions& options, const PrefillSettings& settings,
                            const nlohmann::json& environment) {
  ordered_json record = report::record_header(
      {.benchmark = "bench_prefill", .numbers = "measured", .command_line = options.command_line});
  record["scenario"] = planned.scenario.name;
  record["scenario_text"] = planned.scenario.text;
  record["time_scale"] = planned.time_scale;
  record["compute"] = run.real ? "real" : "timed";
  if (run.real) record["pace"] = to_string(settings.pace);
  record["network"] = "emulated";
  record["lateness_credit_ns"] = settings.engine.credit.count();
  record["payload_bytes"] = settings.engine.payload.count();
  record["ranks"] = planned.scenario.ranks();
  record["training_ranks"] = planned.scenario.training_ranks();
  record["controller"] = to_string(settings.controller);
  if (settings.controller == PrefillController::live)
    record["signals"] = to_string(settings.signals);
  record["roles"] = roles_json(planned);
  record["policy"] = options.policy;
  record["load"] = settings.listen ? std::string{"clients of a socket"}
                   : settings.backlog
                       ? fmt::format("a backlog of {}", settings.backlog->waiting)
                       : fmt::format("an open loop of {} requests", planned.requests.size());
  record["not_counted"] = prefill::not_counted(planned.scenario);
  if (names_regions(planned)) record["not_counted"].push_back("regions");
  record["stretch_iterations"] = settings.stretch;
  const bool prompts_wrong = run.real && run.real->served.wrong_prompts > 0;
  const bool none_done = run.real && run.real->served.prompts == 0 && !run.answers.empty();
  record["check"] = run.wrong > 0 || prompts_wrong ? "wrong" : none_done ? "no prompt" : "ok";
  record["wrong"] = why_not_sound(run);
  if (run.real) {
    record["real"] = served_json(run.real->served);
    record["real"]["ops"] = run.real->ops;
    record["real"]["ops_longer_than_planned"] = run.real->longer;
    record["training"] = real_json(run.real->training);
  }
  if (run.is_stopped)
    record["stopped"] = {{"signal", "SIGTERM"},
                         {"pairs", std::ranges::count_if(run.pairs, &StretchPair::is_whole)},
                         {"pairs_asked", settings.pairs}};
  record["messages"] = run.messages;
  record["blocks"] = run.blocks;
  record["environment"] = environment;
  record["pairs"] = pairs_json(run);
  record["schedules"] = ordered_json::array({schedule_json(planned, run, settings)});
  return record;
}

}  // namespace longhaul::harness
