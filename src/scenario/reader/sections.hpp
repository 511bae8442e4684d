#pragma once

#include <optional>
#include <span>
#include <string>

#include "scenario/model_costs.hpp"
#include "scenario/reader/load.hpp"
#include "scenario/scenario.hpp"
#include "scenario/text/config_node.hpp"
#include "scenario/text/fields.hpp"

namespace longhaul::scenario {

class TraceStore;

// Readers of the file's sections, in the order in which they need each other. Each throws Error
// with the place of the mistake.

/// The section [name] with its known keys; nullopt where the file has none.
[[nodiscard]] std::optional<Section> section_of(const ConfigNode& root, const std::string& name,
                                                std::vector<std::string> known);

struct LoadedModel {
  Model model;
  std::optional<LayerTimes> measured;
  ConfigPosition place;
};

/// Whether scores are computed again is of [memory].
[[nodiscard]] std::optional<LoadedModel> read_model(const ConfigNode& root);

/// M follows from parallel.global_batch where that is given.
[[nodiscard]] Parallel read_parallel(const ConfigNode& root,
                                     const std::optional<LoadedModel>& model);

/// Those keys of [parallel] that say how weights are gathered and gradients summed.
[[nodiscard]] ShardingOptions read_sharding(const Section& parallel);
/// parallel.microbatch_group: a count for forwards and backwards, or one for each.
[[nodiscard]] std::optional<MicrobatchGroup> read_microbatch_group(const Section& parallel);

/// The operators below blocks: [[operator]], those of the table that costs.operators or
/// costs.profile names, or the model's. `scenario` has its parallel layout and its layers. Refuses
/// [[operator]] beside what says otherwise what blocks take.
struct LoadedOperators {
  ModelOperators operators;
  std::vector<Duration> optimizer;  ///< of each stage, where a profile has the optimizer's step
  std::string held_text;            ///< to append to the scenario's text, so that it is complete
};
[[nodiscard]] LoadedOperators read_operators(const ConfigNode& root,
                                             const std::optional<LoadedModel>& model,
                                             const Scenario& scenario);

/// The same of costs.profile, with costs.collectives and costs.tasks; nullopt where there is none.
[[nodiscard]] std::optional<LoadedOperators> read_profile(const ConfigNode& root,
                                                          const std::optional<LoadedModel>& model,
                                                          const Scenario& scenario);
/// Of [costs]: the first of `keys` that is given and not ""; nullptr where none is.
[[nodiscard]] const char* given_in_costs(const ConfigNode& root, std::span<const char* const> keys);
/// The keys of [costs] that say how long a block takes.
[[nodiscard]] std::span<const char* const> keys_of_block_times();

/// Costs, and which sizes come from the file or a model: a default size is no ground for a time.
struct LoadedCosts {
  Costs costs;
  bool activation_known = false;
  bool message_known = false;
  bool weights_known = false;
};

/// `scenario` has its parallel layout, its layers, its operators and its placement. `optimizer`:
/// LoadedOperators::optimizer.
[[nodiscard]] LoadedCosts read_costs(const ConfigNode& root,
                                     const std::optional<LoadedModel>& model,
                                     const Scenario& scenario,
                                     const std::vector<Duration>& optimizer);

/// Costs of one replica: those that its [[replica]] gives, `common` for the rest.
[[nodiscard]] Costs changed_costs(const Section& section, int stages, const Costs& common);

/// Sets the costs of replicas that differ: by [[replica]], and by the speeds of their datacenters.
/// `scenario` has costs of speed 1.
void read_replicas(const ConfigNode& root, Scenario& scenario);

/// Layers of each stage by model.layers_per_stage: a list, "balanced" or "even". `scenario` has its
/// parallel layout and its placement.
[[nodiscard]] std::vector<int> read_layers(const ConfigNode& root, const LoadedModel& model,
                                           const Scenario& scenario);

/// Reads each [[service]] and places its ranks; after read_placement().
void read_services(const ConfigNode& root, Scenario& scenario);

/// memory.recompute: true is full.
[[nodiscard]] RecomputeKind read_recompute(const ConfigNode& root);
[[nodiscard]] Memory read_memory(const ConfigNode& root, int stages, bool activation_known);

/// [overlap]: one slowdown, or a table with one for some levels.
[[nodiscard]] OverlapSlowdown read_overlap(const ConfigNode& root);
/// The other keys of [overlap].
[[nodiscard]] OverlapPieces read_overlap_pieces(const ConfigNode& root);

/// Reads [prefill], or each [[prefill]]; returns text to append to the scenario's, so that it is
/// complete without their profiles.
[[nodiscard]] std::string read_prefill(const ConfigNode& root, Scenario& scenario);

[[nodiscard]] Run read_run(const ConfigNode& root, int stages);

/// Sets datacenters and placement; with Placing::optional several datacenters may all leave
/// their contents open.
void read_placement(const ConfigNode& root, Placing placing, Scenario& scenario);

/// Sets links and nodes; refuses a rate where the size of a message is not known.
void read_network(const ConfigNode& root, Scenario& scenario, bool message_known);

/// Reads trace, trace_repeat, loss and outage of a [[link]]. A link that a trace describes and that
/// gives no latency, or no rate, has what the trace says at time 0.
void read_weather(const Section& section, TraceStore& traces, const Scenario& scenario,
                  bool message_known, Link& link);

/// link.jitter: one number for latency and transfer, or a table.
[[nodiscard]] Jitter read_jitter(const Field& field);

/// Checks that need the whole scenario: links where messages must cross, numbers that stay in 64
/// bits. Throws Error.
void check_scenario(const ConfigNode& root, const Scenario& scenario, bool weights_known);

/// Writes one --set PATH=VALUE into the tree before it is read.
void apply_override(ConfigNode& root, const std::string& option);

}  // namespace longhaul::scenario
