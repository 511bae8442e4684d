#include "scenario/reader/sections.hpp"

namespace longhaul::scenario {
namespace {

constexpr std::int64_t kMostUnits = 1 << 20;

/// "operator", "layer", or a number of layers.
std::optional<int> read_unit(const Field& field) {
  if (field.node->kind != ConfigNode::Kind::text)
    return static_cast<int>(read_integer(field, 1, kMostUnits));
  const std::size_t chosen = read_choice(field, {"operator", "layer"});
  return chosen == 1 ? std::optional{1} : std::nullopt;
}

/// A number of units, or "memory".
std::optional<int> read_prefetch(const Field& field) {
  if (field.node->kind != ConfigNode::Kind::text)
    return static_cast<int>(read_integer(field, 0, kMostUnits));
  (void)read_choice(field, {"memory"});
  return std::nullopt;
}

/// A size, or "none": all gradients of a stage together.
std::optional<Bytes> read_bucket(const Field& field) {
  if (field.node->kind == ConfigNode::Kind::text && field.node->text == "none") return std::nullopt;
  const Bytes size = read_bytes(field);
  if (size < Bytes{1})
    fail_at(field.node->place, "{} holds nothing. Give it a byte at least, or \"none\".",
            field.path);
  return size;
}

int read_gradient_bytes(const Field& field) {
  const auto bytes = static_cast<int>(read_integer(field, 2, 4));
  if (bytes == 3)
    fail_at(field.node->place,
            "{} = 3 is no size of a number (gradients are of bf16 or fp32). Write 2 or 4.",
            field.path);
  return bytes;
}

}  // namespace

std::optional<MicrobatchGroup> read_microbatch_group(const Section& parallel) {
  const auto field = parallel.find("microbatch_group");
  if (!field) return std::nullopt;
  const auto count = [](const Field& item) {
    return static_cast<int>(read_integer(item, 1, kMostUnits));
  };
  if (field->node->kind != ConfigNode::Kind::list)
    return MicrobatchGroup{count(*field), count(*field)};
  const std::vector<Field> both = elements(*field);
  if (both.size() != 2)
    fail_at(field->node->place,
            "{} has {} counts (one of forwards, one of backwards). Give one for both, or two.",
            field->path, both.size());
  return MicrobatchGroup{count(both[0]), count(both[1])};
}

ShardingOptions read_sharding(const Section& parallel) {
  ShardingOptions options;
  if (const auto field = parallel.find("sequence_parallel"))
    options.sequence_parallel = read_boolean(*field);
  if (const auto field = parallel.find("unit")) options.unit_layers = read_unit(*field);
  if (const auto field = parallel.find("prefetch")) options.prefetch = read_prefetch(*field);
  if (const auto field = parallel.find("regather"))
    options.regather = read_choice<Regather>(*field);
  if (const auto field = parallel.find("bucket")) {
    options.bucket = read_bucket(*field);
    options.no_buckets = !options.bucket;
  }
  if (const auto field = parallel.find("gradient_bytes"))
    options.gradient_bytes = read_gradient_bytes(*field);
  return options;
}

}  // namespace longhaul::scenario
