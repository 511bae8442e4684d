#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/command/commands.hpp"
#include "cli/prefill/simulated_bubbles.hpp"
#include "planner/search/worth.hpp"
#include "prefill/accounts/idle_causes.hpp"
#include "prefill/bounds.hpp"
#include "prefill/inference_controller.hpp"
#include "prefill/outcome.hpp"
#include "prefill/play/play.hpp"

namespace longhaul::cli {

/// What is offered, and how it is placed.
struct PrefillInput {
  std::vector<prefill::Request> requests;  ///< of a backlog, the file
  prefill::PlacementPolicy policy = prefill::PlacementPolicy::best_fit;
  std::optional<prefill::BacklogOptions> backlog;
  prefill::KvSending sending = prefill::KvSending::layerwise;
  prefill::Routing routing = prefill::Routing::ttft;
  scenario::RegionTable regions;
  std::optional<prefill::Signals> signals;
  prefill::Overrun overrun = prefill::Overrun::finish;
  bool by_value = false;        ///< --objective value
  std::optional<double> price;  ///< $ of 10^6 tokens
  std::string load;             ///< in words
  std::string stream{};         ///< a file of requests, read one after the other; empty: `requests`
  prefill::LoadOptions offered{};  ///< of a stream
};
/// --stream: throws Error where what was asked for needs all requests at once.
void require_stream(const PrefillArguments& typed, const Scenario& scenario,
                    const PrefillInput& input);
/// What the scenario gives and placing from a backlog leaves out: "memory", "decode",
/// "prefix_cache". Empty of an open loop.
[[nodiscard]] std::vector<std::string> left_out_of_backlog(const Scenario& scenario,
                                                           const PrefillInput& input);
[[nodiscard]] PrefillInput read_prefill_input(const PrefillArguments& typed,
                                              const Scenario& scenario);

/// A schedule whose bubbles were filled.
struct FilledSchedule {
  SimulatedBubbles bubbles;
  std::vector<prefill::Served> served{};
  prefill::Outcome outcome{};
  prefill::UtilisationBounds bounds{};
  prefill::IdleTimes idle{};
  std::vector<prefill::Decision> decisions{};
  Duration kv_delay{};  ///< what training's messages waited for keys and values
  std::optional<prefill::PlayOutcome> played{};  ///< where times differ from plan and estimate
  std::optional<prefill::PrefillCost> cost{};    ///< where GPUs have a price
  Duration placement{};                          ///< of this program's time, for each decision
  bool is_stream = false;                        ///< no decision was kept, nor is `idle` known
};
[[nodiscard]] FilledSchedule fill_bubbles(SimulatedBubbles bubbles, const Scenario& scenario,
                                          const PrefillInput& input);

/// The same, and of a schedule that was not played neither `bounds` nor `idle`; no `cost`.
[[nodiscard]] FilledSchedule place_prompts(SimulatedBubbles bubbles, const Scenario& scenario,
                                           const PrefillInput& input);

/// Of a stream: `take` gets each decision, in order of arrival.
[[nodiscard]] FilledSchedule fill_from_stream(
    SimulatedBubbles bubbles, const Scenario& scenario, const PrefillInput& input,
    const std::function<void(const prefill::Decision&)>& take);

/// $ of a GPU where the scenario gives no price.
inline constexpr double kAssumedGpuHour = 2;

/// --objective value: what a second of a schedule is worth, in $: iterations, each worth the GPUs
/// of the fastest schedule for its time, and prompt tokens.
struct ScheduleValue {
  double gpu_hour = 0;
  bool is_assumed = false;         ///< the scenario gives no price
  std::vector<double> per_second;  ///< by schedule
  std::size_t chosen = 0;          ///< the largest; of equal ones the first
};
/// Of one schedule. `rank_hour`: $ of a rank's GPUs; `fastest`: the period of the fastest schedule;
/// `price`: $ of 10^6 tokens.
[[nodiscard]] double value_per_second(const FilledSchedule& filled, double rank_hour,
                                      Duration fastest, double price);
[[nodiscard]] ScheduleValue schedule_value(const Scenario& scenario,
                                           const std::vector<FilledSchedule>& all, double price);

/// As a search by value sees it.
[[nodiscard]] planner::Worth worth_of(const FilledSchedule& filled, double per_second);
/// What a search by value finds; refused where nothing fits the budget.
[[nodiscard]] Result<planner::WorthResult> try_best_by_value(const planner::SearchOptions& search,
                                                             const Scenario& scenario,
                                                             const PrefillInput& input);
/// The same of `--schedule best --objective value`, with its progress. Throws Error where nothing
/// fits.
[[nodiscard]] planner::WorthResult find_best_by_value(const Options& options,
                                                      const Scenario& scenario,
                                                      const PrefillInput& input);

[[nodiscard]] nlohmann::ordered_json filled_json(const FilledSchedule& filled);

}  // namespace longhaul::cli
