#include <array>
#include <limits>

#include "scenario/reader/sections.hpp"

namespace longhaul {
namespace {

/// Names of the distributions, and the largest spread (standard deviation over mean) that
/// each can have: beyond 2 a log-normal factor is mostly tail, beyond 0.5 little of a normal one is
/// left between 0 and 2, beyond 1/sqrt(3) and 1 a uniform and an exponential one are below zero.
struct Distribution {
  const char* name;
  double most;
};
constexpr std::array<Distribution, 4> kDistributions{
    {{"lognormal", 2}, {"normal", 0.5}, {"uniform", 0.577}, {"exponential", 1}}};

/// Atlas figure 7: bandwidth over 24 hours from US-East (A) to Southeast Asia (B) and to US-West
/// (C), coefficient of variation. The link as a whole was slow or fast, so all its messages
/// share one factor.
struct Fluctuation {
  const char* name;
  double transfer;
};
constexpr Fluctuation kAtlasFluctuations[] = {{"atlas-a-b", 0.008}, {"atlas-a-c", 0.023}};

Jitter read_preset(const Field& field) {
  std::vector<std::string> names;
  for (const Fluctuation& each : kAtlasFluctuations) names.emplace_back(each.name);
  return {0, kAtlasFluctuations[read_choice(field, names)].transfer, 1};
}

JitterKind read_kind(const Field& field) {
  std::vector<std::string> names;
  for (const Distribution& each : kDistributions) names.emplace_back(each.name);
  return static_cast<JitterKind>(read_choice(field, names));
}

double read_spread(const Field& field, JitterKind kind) {
  const Distribution& distribution = kDistributions[index(kind)];
  const double spread = read_number(field, 0, kDistributions[0].most);
  if (spread > distribution.most)
    fail_at(field.node->place,
            "{} = {} is more than a {} distribution can have ({}, standard deviation over mean). "
            "Use less, or distribution = \"lognormal\".",
            field.path, spread, distribution.name, distribution.most);
  return spread;
}

}  // namespace

Jitter read_jitter(const Field& field) {
  if (field.node->kind == ConfigNode::Kind::text) return read_preset(field);
  Jitter jitter;
  if (field.node->kind != ConfigNode::Kind::table) {
    jitter.latency = jitter.transfer = read_spread(field, jitter.kind);
    return jitter;
  }
  const Section section{
      *field.node, field.path, {"latency", "transfer", "correlation", "distribution", "seed"}};
  if (const auto kind = section.find("distribution")) jitter.kind = read_kind(*kind);
  if (const auto latency = section.find("latency"))
    jitter.latency = read_spread(*latency, jitter.kind);
  if (const auto transfer = section.find("transfer"))
    jitter.transfer = read_spread(*transfer, jitter.kind);
  if (const auto value = section.find("correlation"))
    jitter.correlation = read_number(*value, 0, 1);
  if (const auto seed = section.find("seed"))
    jitter.seed = static_cast<std::uint64_t>(
        read_integer(*seed, 0, std::numeric_limits<std::int64_t>::max()));
  return jitter;
}

}  // namespace longhaul
