#include "harness/prefill/used_gpus.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plan/link_model/weather.hpp"
#include "prefill/bounds.hpp"
#include "prefill/outcome.hpp"
#include "prefill/play/real_times.hpp"

namespace longhaul::harness {
namespace {

using nlohmann::ordered_json;

/// Shares of GPUs x wall time of all stretches with prefill.
struct Shares {
  double training = 0, prefill = 0;
  std::optional<double> useful{};
};

Shares shares_of(const PlannedStretches& planned, const PrefillRun& run, bool predicted) {
  double wall = 0, training = 0, prefill = 0, useful = 0;
  bool knows_useful = true;
  for (const StretchPair& pair : run.pairs) {
    const StretchOutcome& of = predicted ? pair.predicted : pair.with;
    wall += static_cast<double>(of.wall.count());
    training += static_cast<double>(of.training.count());
    prefill += static_cast<double>(of.prefill.count());
    for (const PlayedRequest& each : of.requests) {
      if (!each.is_done) continue;
      const auto& model = planned.served[each.model].model;
      const auto ns = model.useful_ns(each.tokens);
      knows_useful = knows_useful && ns.has_value();
      useful += ns.value_or(0);
    }
  }
  const double all = wall * planned.bubbles.gpus;
  if (all == 0) return {};
  Shares shares{training / all, prefill / all, std::nullopt};
  if (knows_useful) shares.useful = (training + useful) / all;
  return shares;
}

/// What of the run is not as the plan and the estimates say; empty: nothing.
std::string differences(const PlannedStretches& planned, const PrefillSettings& settings) {
  const bool calm = plan::Weather{planned.training, planned.scenario}.calm();
  std::vector<std::string> found = prefill::varying_times(planned.scenario, planned.requests, calm);
  if (settings.manners == prefill::Manners::careless) found.emplace_back("--policy careless");
  if (settings.compute.real) found.emplace_back("--compute real");
  return fmt::format("{}", fmt::join(found, ", "));
}

/// All idle time of the GPUs that serve: of a run whose windows, times or requests are not those of
/// the plan.
prefill::UtilisationBounds bounds_of_idle(const PlannedStretches& planned, const PrefillRun& run) {
  double wall = 0, unused = 0;
  for (const StretchPair& pair : run.pairs) {
    wall += static_cast<double>(pair.with.wall.count());
    unused += static_cast<double>(
        pair.with.idle[static_cast<std::size_t>(prefill::IdleCause::no_pipeline)].count());
  }
  prefill::UtilisationBounds bounds;
  if (wall > 0) bounds.bubbles = 1 - unused / (wall * planned.bubbles.gpus);
  return bounds;
}

/// The bounds that hold for what was played, and why there are no others.
struct KnownBounds {
  prefill::UtilisationBounds bounds;
  std::string without{};
};

KnownBounds known_bounds(const PlannedStretches& planned, const PrefillRun& run,
                         const PrefillSettings& settings) {
  if (settings.listen)
    return {bounds_of_idle(planned, run), "no one knew before what clients would ask for"};
  if (const std::string differs = differences(planned, settings); !differs.empty())
    return {bounds_of_idle(planned, run),
            "times are not those of the plan and the estimates (" + differs + ")"};
  const auto waiting = settings.backlog ? std::optional{settings.backlog->waiting} : std::nullopt;
  KnownBounds known{prefill::utilisation_bounds(planned.bubbles, planned.served, planned.requests,
                                                waiting, settings.pairs)};
  if (!run.is_stopped) return known;
  known.bounds.mix = known.bounds.flow = std::nullopt;
  known.without = "mix and flow are of all pairs, and the run was stopped";
  return known;
}

ordered_json or_null(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json{};
}

ordered_json shares_json(const Shares& shares) {
  return {{"training", shares.training},
          {"prefill", shares.prefill},
          {"total", shares.training + shares.prefill},
          {"useful", or_null(shares.useful)}};
}

}  // namespace

ordered_json utilisation_json(const PlannedStretches& planned, const PrefillRun& run,
                              const PrefillSettings& settings) {
  ordered_json json = shares_json(shares_of(planned, run, false));
  const auto [bounds, without] = known_bounds(planned, run, settings);
  json["upper_bound"] = bounds.upper();
  json["bound_reason"] = bounds.reason();
  json["bounds"] = {{"bubbles", bounds.bubbles},
                    {"whole_prompts", or_null(bounds.whole_prompts)},
                    {"mix", or_null(bounds.mix)},
                    {"flow", or_null(bounds.flow)}};
  json["bounds_left_out"] = without.empty() ? ordered_json{} : ordered_json(without);
  return json;
}

ordered_json predicted_utilisation_json(const PlannedStretches& planned, const PrefillRun& run) {
  return shares_json(shares_of(planned, run, true));
}

ordered_json idle_json(const PrefillRun& run, StretchOutcome StretchPair::*side) {
  ordered_json json = ordered_json::object();
  for (const prefill::IdleCause cause : every<prefill::IdleCause>()) {
    Duration sum{};
    for (const StretchPair& pair : run.pairs)
      sum += (pair.*side).idle[static_cast<std::size_t>(cause)];
    json[to_string(cause)] = sum.count();
  }
  return json;
}

ordered_json cost_json(const PlannedStretches& planned, const PrefillRun& run) {
  const auto price = prefill::gpu_hour_of(planned.scenario);
  if (!price) return {};
  std::vector<prefill::Decision> done;
  Duration wall{}, delay{};
  for (const StretchPair& pair : run.pairs) {
    wall += pair.with.wall;
    if (pair.is_whole) delay += pair.with.wall - pair.without.wall;
    for (const PlayedRequest& each : pair.with.requests)
      if (each.is_done)
        done.push_back({.request = each.request, .tokens = each.tokens, .model = each.model});
  }
  const auto cost = prefill::prefill_cost(
      planned.served, done, planned.bubbles.gpus * prefill::gpus_of_rank(planned.scenario),
      *price / planned.time_scale, wall, std::max(Duration{}, delay));
  if (!cost) return {};
  return {{"gpu_hour", *price},
          {"gpus_saved", cost->gpus_saved},
          {"training_delay", cost->training_delay},
          {"per_million_tokens_bubbles", cost->per_million_bubbles},
          {"per_million_tokens_dedicated", cost->per_million_dedicated},
          {"break_even_price", cost->break_even_price}};
}

ordered_json memory_json(const PrefillRun& run) {
  std::map<std::int32_t, std::pair<prefill::GpuMemory, Bytes>> gpus;
  for (const StretchPair& pair : run.pairs) {
    for (const prefill::GpuMemory& each : pair.with.memory) {
      prefill::GpuMemory& own = gpus.try_emplace(each.rank, each, Bytes{}).first->second.first;
      own.peak = std::max(own.peak, each.peak);
    }
    for (const prefill::GpuMemory& each : pair.predicted.memory) {
      Bytes& peak = gpus.try_emplace(each.rank, each, Bytes{}).first->second.second;
      peak = std::max(peak, each.peak);
    }
  }
  ordered_json all = ordered_json::array();
  std::int64_t over = 0;
  for (const auto& [rank, own] : gpus) {
    over += own.first.fits() ? 0 : 1;
    all.push_back({{"rank", rank},
                   {"capacity_bytes", own.first.capacity.count()},
                   {"peak_bytes", own.first.peak.count()},
                   {"predicted_peak_bytes", own.second.count()}});
  }
  return {{"gpus_over_capacity", over}, {"gpus", all}};
}

}  // namespace longhaul::harness
