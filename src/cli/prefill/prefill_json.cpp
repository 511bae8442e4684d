#include <nlohmann/json.hpp>

#include "cli/prefill/filled_schedule.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;

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

/// null: GPUs have no price, or nothing was answered.
ordered_json cost_json(const std::optional<prefill::PrefillCost>& cost) {
  if (!cost) return {};
  return {{"gpu_hour", cost->gpu_hour},
          {"gpus_saved", cost->gpus_saved},
          {"training_delay", cost->training_delay},
          {"per_million_tokens_bubbles", cost->per_million_bubbles},
          {"per_million_tokens_dedicated", cost->per_million_dedicated},
          {"break_even_price", cost->break_even_price}};
}

/// Of each model with skewed pipelines: which GPUs they are, and what choosing them gained.
ordered_json skewed_json(const std::vector<prefill::Served>& served) {
  ordered_json json = ordered_json::array();
  for (const prefill::Served& each : served) {
    if (!each.serving.skew) continue;
    ordered_json pipelines = ordered_json::array();
    for (const prefill::Pipeline& pipeline : each.serving.pipelines)
      pipelines.push_back({{"pipeline", pipeline.number}, {"ranks", pipeline.ranks}});
    json.push_back({{"model", each.model.name},
                    {"tokens", each.model.skewed_for},
                    {"prompts", each.serving.skew->prompts},
                    {"prompts_of_equal_places", each.serving.skew->of_equal},
                    {"prompts_upper_bound", each.serving.skew->upper_bound},
                    {"pipelines", std::move(pipelines)}});
  }
  return json;
}

}  // namespace

ordered_json filled_json(const FilledSchedule& filled) {
  const prefill::Outcome& outcome = filled.outcome;
  ordered_json json{{"schedule", filled.bubbles.schedule.name},
                    {"period_ns", filled.bubbles.iteration.period.count()},
                    {"iterations", outcome.iterations}};
  if (auto skewed = skewed_json(filled.served); !skewed.empty()) json["skewed"] = std::move(skewed);
  json["utilisation"] = {{"training", outcome.utilisation.training},
                         {"prefill", outcome.utilisation.prefill},
                         {"total", outcome.utilisation.total},
                         {"useful", value_or_null(outcome.utilisation.useful)},
                         {"upper_bound", filled.bounds.upper()},
                         {"bound_reason", filled.bounds.reason()},
                         {"bounds",
                          {{"bubbles", filled.bounds.bubbles},
                           {"whole_prompts", value_or_null(filled.bounds.whole_prompts)},
                           {"mix", value_or_null(filled.bounds.mix)},
                           {"flow", value_or_null(filled.bounds.flow)}}}};
  json["requests"] = {{"offered", outcome.offered},
                      {"done", outcome.done},
                      {"refused", refused_json(outcome)},
                      {"lacks_bytes", outcome.lacks.count()},
                      {"unfinished", outcome.unfinished},
                      {"killed", filled.played ? filled.played->killed : 0},
                      {"late", filled.played ? filled.played->late : outcome.late},
                      {"by_length", ordered_json::array()}};
  for (const prefill::PromptClass& each : outcome.by_length) {
    json["requests"]["by_length"].push_back(
        {{"below_tokens", each.is_longest() ? ordered_json{} : ordered_json(each.below)},
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
  json["ttft_parts_ns"] = {{"network", outcome.parts.network},
                           {"decision", outcome.parts.decision},
                           {"wait", outcome.parts.wait},
                           {"compute", outcome.parts.compute},
                           {"hop", outcome.parts.hop},
                           {"kv", outcome.parts.kv},
                           {"first_token", outcome.parts.first_token}};
  const auto& played = filled.played;
  json["training_delay"] = {{"blocks_bound_by_prefill", played ? played->blocks_bound : 0},
                            {"blocks_late", played ? played->blocks_late : 0},
                            {"total_ns", played ? played->delay.count() : 0},
                            {"by_kv_ns", filled.kv_delay.count()}};
  json["declined"] = played ? played->declined : 0;
  json["ttft_error"] = filled.is_stream ? prefill::TimeHistogram::kError : 0.0;
  json["idle_ns"] = filled.is_stream ? ordered_json{} : ordered_json::object();
  for (const prefill::IdleCause cause : every<prefill::IdleCause>())
    if (!filled.is_stream)
      json["idle_ns"][to_string(cause)] = filled.idle[static_cast<std::size_t>(cause)].count();
  json["placement_ns"] = filled.placement.count();
  json["cost"] = cost_json(filled.cost);
  return json;
}

}  // namespace longhaul::cli
