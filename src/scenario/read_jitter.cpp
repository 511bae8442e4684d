#include "scenario/sections.hpp"

namespace longhaul {
namespace {

/// Standard deviation over mean; beyond it a log-normal factor is mostly tail.
constexpr double kMostSpread = 2;

}  // namespace

Jitter read_jitter(const Field& field) {
  const auto spread = [](const Field& value) { return read_number(value, 0, kMostSpread); };
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
