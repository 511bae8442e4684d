#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scenario/scenario.hpp"
#include "scenario/text/config_node.hpp"
#include "scenario/text/fields.hpp"

namespace longhaul::scenario {

/// Reads [train] and the tables below it; `scenario` has its parallel layout and its placement.
/// Returns text to append to the scenario's, so that it is complete without files.
[[nodiscard]] std::string read_train(const ConfigNode& root, Scenario& scenario);

/// train.activations: messages between stages become as long as they travel. After links, whose
/// rates may be stated in messages as they are.
void resize_activations(const ConfigNode& root, Scenario& scenario);

/// datacenter.gpu: one name, or one for each of its nodes.
[[nodiscard]] std::vector<std::string> read_gpu_names(const Field& field);

/// What a preset says: F and B of each replica's batch on its GPUs. Empty where there is no preset,
/// a datacenter names no GPU, or a model or [costs] says itself what blocks take.
[[nodiscard]] std::vector<Costs> costs_of_gpus(const ConfigNode& root, const Scenario& scenario);

/// So many samples divided in proportion to `throughput`, one each at least, by largest remainders
/// (of equal ones the first replica's). Throws Error where there are fewer samples than replicas.
[[nodiscard]] std::vector<int> divided_by_throughput(std::int64_t samples,
                                                     std::span<const double> throughput);
/// train.hetero: the samples of all batches, divided by the throughput of the replicas (StellaTrain
/// 4.1). Of a preset's GPUs: their beta; to be called before costs are read. Nothing elsewhere.
void divide_batches_of_gpus(const ConfigNode& root, Scenario& scenario);
/// The same where a scenario states times: `costs` of the replicas are of equal batches, and become
/// those of the batches that their times lead to.
void divide_batches_by_time(const ConfigNode& root, Scenario& scenario, std::vector<Costs>& costs);

/// Refuses train.batch where a replica's samples do not fit: more than train.adapt.most_batch, or
/// activations of one microbatch, with what a device always holds, above memory.capacity. After all
/// costs. Blocks that are recomputed are not looked at, nor a single stage whose place
/// `may_be_open`: a search may divide it.
void check_batches(const ConfigNode& root, const Scenario& scenario, bool may_be_open);

/// Numbers of the gradients of so many bytes of weights: bf16 of a model, otherwise f32.
[[nodiscard]] std::int64_t gradient_numbers(const Scenario& scenario, Bytes weights);
/// A size on the wire of a part of this scenario, as Training::stands_for has it.
[[nodiscard]] Bytes nominal_size(const Scenario& scenario, Bytes size);

}  // namespace longhaul::scenario
