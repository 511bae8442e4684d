#include "harness/prefill/used_gpus.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

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

ordered_json utilisation_json(const PlannedStretches& planned, const PrefillRun& run) {
  ordered_json json = shares_json(shares_of(planned, run, false));
  json["upper_bound"] = planned.bounds.upper();
  json["bound_reason"] = planned.bounds.reason();
  json["bounds"] = {{"bubbles", planned.bounds.bubbles},
                    {"whole_prompts", or_null(planned.bounds.whole_prompts)},
                    {"mix", or_null(planned.bounds.mix)},
                    {"flow", or_null(planned.bounds.flow)}};
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
