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

const std::vector<std::string> kOverlapKeys{"slowdown", "max_chunks", "split_overhead"};

}  // namespace

OverlapPieces read_overlap_pieces(const ConfigNode& root) {
  constexpr std::int64_t kMostPieces = 255;  // Op::pieces
  const auto section = section_of(root, "overlap", kOverlapKeys);
  OverlapPieces pieces;
  if (!section) return pieces;
  if (const auto field = section->find("max_chunks"))
    pieces.most = static_cast<int>(read_integer(*field, 1, kMostPieces));
  if (const auto field = section->find("split_overhead")) pieces.overhead = read_duration(*field);
  return pieces;
}

OverlapSlowdown read_overlap(const ConfigNode& root) {
  const auto section = section_of(root, "overlap", kOverlapKeys);
  OverlapSlowdown overlap;
  if (!section) return overlap;
  if (!section->find("max_chunks") && !section->find("split_overhead"))
    (void)section->require("slowdown", "the section says nothing else");
  const auto given = section->find("slowdown");
  if (!given) return overlap;
  const Field& field = *given;
  if (field.node->kind != ConfigNode::Kind::table) {
    overlap.node = overlap.datacenter = overlap.wan = read_slowdown(field);
    return overlap;
  }
  const Section levels{*field.node, field.path, every_name<NetworkLevel>()};
  const auto read = [&](NetworkLevel level, double& slowdown) {
    if (const auto own = levels.find(to_string(level))) slowdown = read_slowdown(*own);
  };
  read(NetworkLevel::node, overlap.node);
  read(NetworkLevel::datacenter, overlap.datacenter);
  read(NetworkLevel::wan, overlap.wan);
  return overlap;
}

}  // namespace longhaul::scenario
