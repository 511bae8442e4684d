#include <cmath>

#include "scenario/reader/sections.hpp"

namespace longhaul::scenario {
namespace {

/// Exact to a thousandth, so that what is left of a block stays a rational number of few digits.
double read_slowdown(const Field& field) {
  constexpr double kParts = 1000;
  const double slowdown = read_number(field, 1, 1000);
  return std::round(slowdown * kParts) / kParts;
}

}  // namespace

OverlapSlowdown read_overlap(const ConfigNode& root) {
  const auto section = section_of(root, "overlap", {"slowdown"});
  if (!section) return {};
  const Field field = section->require("slowdown", "the section says nothing else");
  OverlapSlowdown overlap;
  if (field.node->kind != ConfigNode::Kind::table) {
    overlap.node = overlap.datacenter = overlap.wan = read_slowdown(field);
    return overlap;
  }
  const Section levels{*field.node, field.path, every_name<NetworkLevel>()};
  const auto read = [&](NetworkLevel level, double& slowdown) {
    if (const auto given = levels.find(to_string(level))) slowdown = read_slowdown(*given);
  };
  read(NetworkLevel::node, overlap.node);
  read(NetworkLevel::datacenter, overlap.datacenter);
  read(NetworkLevel::wan, overlap.wan);
  return overlap;
}

}  // namespace longhaul::scenario
