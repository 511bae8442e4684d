#include <array>
#include <limits>

#include "scenario/reader/sections.hpp"

namespace longhaul::scenario {
namespace {

/// The largest spread (standard deviation over mean) that a distribution can have.
double largest_spread(JitterKind kind) {
#define LONGHAUL_LARGEST_SPREAD(enumerator, name, most) most,
  constexpr std::array kMost{LONGHAUL_JITTER_KINDS(LONGHAUL_LARGEST_SPREAD)};
#undef LONGHAUL_LARGEST_SPREAD
  return kMost[static_cast<std::size_t>(kind)];
}

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

double read_spread(const Field& field, JitterKind kind) {
  const double spread = read_number(field, 0, largest_spread(JitterKind::lognormal));
  if (spread > largest_spread(kind))
    fail_at(field.node->place,
            "{} = {} is more than a {} distribution can have ({}, standard deviation over mean). "
            "Use less, or distribution = \"lognormal\".",
            field.path, spread, to_string(kind), largest_spread(kind));
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
  if (const auto kind = section.find("distribution")) jitter.kind = read_choice<JitterKind>(*kind);
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

}  // namespace longhaul::scenario
