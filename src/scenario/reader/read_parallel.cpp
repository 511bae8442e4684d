#include <algorithm>
#include <set>

#include "base/index.hpp"
#include "scenario/reader/link_values.hpp"
#include "scenario/reader/sections.hpp"

namespace longhaul::scenario {
namespace {

constexpr std::int64_t kMostRanks = std::int64_t{1} << 20;
constexpr std::int64_t kMostMicrobatches = std::int64_t{1} << 24;
constexpr std::int64_t kMostChunks = 1 << 10;
constexpr std::int64_t kMostSubBlocks = 255;  // Block::parts
constexpr std::int64_t kMostCell = 255;       // Op::pieces
constexpr std::int64_t kMostTensor = 1 << 10;
constexpr std::int64_t kMostBlocks = std::int64_t{1} << 31;

void refuse_absurd_counts(const Parallel& parallel, const Section& section) {
  const std::int64_t pipelines = std::int64_t{parallel.tensor} * parallel.replicas;
  const std::int64_t ranks = parallel.stages * pipelines;  // below 2^50
  if (ranks > kMostRanks)
    fail_at(section.place(), "{} stages x {} replicas{} are {} ranks ({} is the limit). Use fewer.",
            parallel.stages, parallel.replicas,
            parallel.tensor > 1 ? fmt::format(" x tensor {}", parallel.tensor) : "", ranks,
            kMostRanks);
  const std::int64_t per_chunk = ranks * parallel.microbatches;  // below 2^44
  if (per_chunk * parallel.chunks > kMostBlocks)
    fail_at(section.place(),
            "ranks x microbatches x chunks = {} ({} is the limit). Use fewer of them.",
            per_chunk * parallel.chunks, kMostBlocks);
}

/// A count for all replicas, or a list with one for each.
void read_microbatches(const Field& field, Parallel& parallel) {
  const auto count = [](const Field& item) {
    return static_cast<int>(read_integer(item, 1, kMostMicrobatches));
  };
  if (field.node->kind != ConfigNode::Kind::list) {
    parallel.microbatches = count(field);
    return;
  }
  std::vector<int> counts;
  for (const Field& item : elements(field)) counts.push_back(count(item));
  if (std::ssize(counts) != parallel.replicas)
    fail_at(field.node->place,
            "{} has {} counts (parallel.replicas = {}). Give one for each replica, or one for all.",
            field.path, counts.size(), parallel.replicas);
  parallel.microbatches = *std::ranges::max_element(counts);
  if (std::ranges::min(counts) < parallel.microbatches)
    parallel.replica_microbatches = std::move(counts);
}

/// M that makes a global batch; refused where it does not divide, with the nearest that do.
void divide_global_batch(const Field& field, int micro_batch, Parallel& parallel) {
  constexpr std::int64_t kMostSequences = std::int64_t{1} << 30;
  const std::int64_t batch = read_integer(field, 1, kMostSequences);
  const std::int64_t unit = std::int64_t{parallel.replicas} * micro_batch;
  const std::int64_t below = batch / unit * unit;
  if (batch != below)
    fail_at(field.node->place,
            "{} = {} does not divide by {} replicas x {} sequences of a microbatch. Take {}{}.",
            field.path, batch, parallel.replicas, micro_batch,
            below > 0 ? fmt::format("{} or ", below) : std::string{}, below + unit);
  if (batch / unit > kMostMicrobatches)
    fail_at(field.node->place, "{} = {} makes {} microbatches ({} are the limit). Take fewer.",
            field.path, batch, batch / unit, kMostMicrobatches);
  parallel.microbatches = static_cast<int>(batch / unit);
}

/// parallel.microbatches, or what parallel.global_batch leaves of it.
void read_batch(const Section& section, const std::optional<LoadedModel>& model,
                Parallel& parallel) {
  const auto batch = section.find("global_batch");
  if (!batch) {
    read_microbatches(section.require("microbatches", "it has no default"), parallel);
    return;
  }
  if (const auto field = section.find("microbatches"))
    fail_at(field->node->place,
            "{} and parallel.global_batch are both given (the one follows from the other). Keep "
            "one.",
            field->path);
  divide_global_batch(*batch, model ? model->model.microbatch_size : 1, parallel);
}

/// Pipelines of a DP-cell; nullopt for "auto", and where the key is missing.
std::optional<int> read_cell(const Section& section) {
  const auto field = section.find("cell");
  if (!field) return std::nullopt;
  if (field->node->kind != ConfigNode::Kind::text)
    return static_cast<int>(read_integer(*field, 1, kMostCell));
  (void)read_choice(*field, {"auto"});
  return std::nullopt;
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ',')
      words.emplace_back();
    else if (c != ' ')
      words.back() += c;
  }
  return words;
}

/// "tensor,stage,replica": each once, the fastest first.
RankOrder read_order(const Field& field) {
  const std::vector<std::string> words = split_at_commas(read_text(field));
  const std::vector<std::string> names = every_name<RankDimension>();
  const std::set<std::string> given(words.begin(), words.end());
  RankOrder order{};
  if (words.size() != order.size() || given != std::set<std::string>(names.begin(), names.end()))
    fail_at(
        field.node->place,
        "{} = {} is no order of a rank's three indices (each is named once, the fastest first). "
        "Write \"tensor,stage,replica\" or \"tensor,replica,stage\", say.",
        field.path, to_text(*field.node));
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i] = static_cast<RankDimension>(std::ranges::find(names, words[i]) - names.begin());
  return order;
}

/// Replicas that hold one copy of the weights together.
int read_shard(const Section& section, const Parallel& parallel) {
  const bool shards = parallel.gradient_sync == GradientSync::zero3;
  const auto field = section.find("shard");
  if (!field) return shards ? parallel.replicas : 1;
  const int shard = static_cast<int>(read_integer(*field, 1, kMostRanks));
  if (parallel.replicas % shard != 0)
    fail_at(field->node->place,
            "{} = {} does not divide {} replicas (all copies of the weights lie on as many). Use a "
            "divisor.",
            field->path, shard, parallel.replicas);
  if (shard > 1 && !shards)
    fail_at(field->node->place,
            "{} = {} needs gradient_sync = \"zero3\" (with \"{}\" each replica holds all weights). "
            "Set that, or remove it.",
            field->path, shard, to_string(parallel.gradient_sync));
  return shard;
}

/// Each rank of a service takes one, beside those of the ranks that train there.
void require_gpus(const Section& section, DatacenterId where, const Scenario& scenario) {
  const Datacenter& datacenter = scenario.datacenters[index(where)];
  if (!datacenter.gpus) return;
  const int gpus_of_rank = scenario.model ? scenario.model->tensor_parallel : 1;
  std::int64_t needed = 0;
  for (const Rank rank : ids<Rank>(static_cast<std::int32_t>(scenario.placement.size())))
    if (scenario.datacenter_of(rank) == where)
      needed += scenario.place_of(rank).role == RankRole::training ? gpus_of_rank : 1;
  if (needed > *datacenter.gpus)
    fail_at(section.place(),
            "with this [[service]] {} has ranks for {} GPUs (it has {}). Give it more gpus, or "
            "place fewer ranks there.",
            datacenter.name, needed, *datacenter.gpus);
}

}  // namespace

Parallel read_parallel(const ConfigNode& root, const std::optional<LoadedModel>& model) {
  const auto section = section_of(
      root, "parallel",
      {"stages", "replicas", "microbatches", "chunks", "sub_blocks", "gradient_sync", "cell",
       "tensor", "shard", "order", "sequence_parallel", "unit", "prefetch", "regather", "bucket",
       "gradient_bytes", "microbatch_group", "p2p", "global_batch"});
  if (!section)
    fail_at(root.place,
            "[parallel] is missing (stages and microbatches have no default). Add "
            "[parallel] with stages = 8 and microbatches = 16, say.");
  const auto count = [](const Field& field, std::int64_t most) {
    return static_cast<int>(read_integer(field, 1, most));
  };
  Parallel parallel;
  parallel.stages = count(section->require("stages", "it has no default"), kMostRanks);
  if (const auto field = section->find("replicas")) parallel.replicas = count(*field, kMostRanks);
  read_batch(*section, model, parallel);
  if (const auto field = section->find("chunks")) parallel.chunks = count(*field, kMostChunks);
  if (const auto field = section->find("sub_blocks"))
    parallel.sub_blocks = count(*field, kMostSubBlocks);
  if (const auto field = section->find("gradient_sync"))
    parallel.gradient_sync = read_choice<GradientSync>(*field);
  if (const auto field = section->find("tensor")) parallel.tensor = count(*field, kMostTensor);
  if (const auto field = section->find("order")) parallel.order = read_order(*field);
  parallel.shard = read_shard(*section, parallel);
  parallel.cell = read_cell(*section);
  parallel.sharding = read_sharding(*section);
  if (const auto field = section->find("p2p")) parallel.p2p = read_choice<P2pKind>(*field);
  parallel.microbatch_group = read_microbatch_group(*section);
  refuse_absurd_counts(parallel, *section);
  return parallel;
}

void read_services(const ConfigNode& root, Scenario& scenario) {
  for (const ConfigNode* table : tables_of(root, "service")) {
    const Section section{*table, "service", {"role", "datacenter", "count"}};
    ServiceRanks ranks;
    const Field role = section.require("role", "ranks that do not train do something else");
    ranks.role = read_choice<RankRole>(role);
    if (ranks.role == RankRole::training)
      fail_at(role.node->place,
              "{} = \"training\" is no service (ranks that train follow from [parallel]). Name "
              "another role.",
              role.path);
    ranks.datacenter =
        datacenter_named(section.require("datacenter", "its ranks lie in one"), scenario);
    if (const auto field = section.find("count"))
      ranks.count = static_cast<int>(read_integer(*field, 1, kMostRanks));
    if (!scenario.is_placed())
      fail_at(section.place(),
              "[[service]] beside stages without a place (who places them knows stages alone). "
              "Give each [[datacenter]] its stages.");
    scenario.add_services(ranks);
    require_gpus(section, ranks.datacenter, scenario);
  }
}

}  // namespace longhaul::scenario
