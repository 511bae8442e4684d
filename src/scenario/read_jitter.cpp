#include "scenario/sections.hpp"

namespace longhaul {
namespace {

/// Standard deviation over mean; beyond it a log-normal factor is mostly tail.
constexpr double kMostSpread = 2;

/// Atlas figure 7: bandwidth over 24 hours from US-East (A) to Southeast Asia (B) and to US-West
/// (C), coefficient of variation. The link as a whole was slow or fast, so its messages are alike.
struct Fluctuation {
  const char* name;
  double transfer;
};
constexpr Fluctuation kAtlas[] = {{"atlas-a-b", 0.008}, {"atlas-a-c", 0.023}};

Jitter read_preset(const Field& field) {
  std::vector<std::string> names;
  for (const Fluctuation& each : kAtlas) names.emplace_back(each.name);
  return {0, kAtlas[read_choice(field, names)].transfer, 1};
}

}  // namespace

Jitter read_jitter(const Field& field) {
  const auto spread = [](const Field& value) { return read_number(value, 0, kMostSpread); };
  if (field.node->kind == ConfigNode::Kind::text) return read_preset(field);
  Jitter jitter;
  if (field.node->kind != ConfigNode::Kind::table) {
    jitter.latency = jitter.transfer = spread(field);
    return jitter;
  }
  const Section section{*field.node, field.path, {"latency", "transfer", "correlation"}};
  if (const auto latency = section.find("latency")) jitter.latency = spread(*latency);
  if (const auto transfer = section.find("transfer")) jitter.transfer = spread(*transfer);
  if (const auto value = section.find("correlation"))
    jitter.correlation = read_number(*value, 0, 1);
  return jitter;
}

}  // namespace longhaul
