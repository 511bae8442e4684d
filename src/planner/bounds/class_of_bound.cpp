#include "planner/bounds/class_of_bound.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace longhaul {
namespace {

Placement placement_of(const Schedule& like) {
  if (like.copies > 1) return Placement::bidirectional;
  if (like.chunks == like.devices) return Placement::unidirectional;
  // A V comes back to the device that it turned at.
  const auto& devices = like.device_of_chunk;
  return devices.back() == devices.front() && like.devices > 1 ? Placement::wave : Placement::loop;
}

/// "not recomputed", "every block recomputed", "chunks 0, 2 recomputed".
std::string recompute_text(const std::vector<RelaxedChunk>& chunks) {
  std::vector<std::size_t> recomputed;
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    if (chunks[c].recomputed) recomputed.push_back(c);
  }
  if (recomputed.empty()) return "not recomputed";
  if (recomputed.size() == chunks.size()) return "every block recomputed";
  return fmt::format("{} {} recomputed", recomputed.size() == 1 ? "chunk" : "chunks",
                     fmt::join(recomputed, ", "));
}

/// ", cells of 3 that share the WAN", where there are any.
std::string cell_text(const Schedule& layout) {
  if (layout.cell == 1) return {};
  return fmt::format(", cells of {} that share the WAN", layout.cell);
}

/// "any of ud, wave placement".
std::string placement_text(const std::set<Placement>& placements) {
  std::vector<const char*> names;
  for (const Placement placement : placements) names.push_back(to_string(placement));
  return fmt::format("{}{} placement", names.size() > 1 ? "any of " : "", fmt::join(names, ", "));
}

}  // namespace

void ClassOfBound::add(const Schedule& layout, const Relaxation& relaxed) {
  placements_[recompute_text(relaxed.replicas.front().chunks) + cell_text(layout)].insert(
      placement_of(layout));
}

std::string ClassOfBound::text(double budget) const {
  std::string all;
  for (const auto& [recompute, placements] : placements_)
    all += fmt::format("{}{}, whole blocks or parts, budget {}, {}", all.empty() ? "" : "; ",
                       placement_text(placements), budget, recompute);
  return all;
}

}  // namespace longhaul
