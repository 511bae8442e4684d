#pragma once

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "plan/plan.hpp"

namespace longhaul::testing {

/// Where two plans differ in more than the places of dependencies in Plan::after; empty: nowhere.
[[nodiscard]] inline std::string plan_difference(const Plan& a, const Plan& b) {
  if (a.ops.size() != b.ops.size()) return fmt::format("{} and {} ops", a.ops.size(), b.ops.size());
  for (std::size_t i = 0; i < a.ops.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    Op one = a.ops[i];
    Op other = b.ops[i];
    one.after = other.after = OpId{};
    if (one != other || !std::ranges::equal(a.after_of(id), b.after_of(id)))
      return fmt::format("op {}: {}, {}", i, to_text(a, id), to_text(b, id));
  }
  for (std::size_t l = 0; l < std::min(a.lanes.size(), b.lanes.size()); ++l)
    if (a.lanes[l].name != b.lanes[l].name || a.lanes[l].rank != b.lanes[l].rank ||
        a.lanes[l].kind != b.lanes[l].kind || a.lanes[l].peer != b.lanes[l].peer ||
        a.lanes[l].first != b.lanes[l].first || a.lanes[l].count != b.lanes[l].count)
      return fmt::format("lane {}", l);
  for (std::size_t r = 0; r < std::min(a.resources.size(), b.resources.size()); ++r)
    if (a.resources[r].name != b.resources[r].name ||
        a.resources[r].order != b.resources[r].order ||
        a.resources[r].lanes != b.resources[r].lanes)
      return fmt::format("resource {}", a.resources[r].name);
  for (std::size_t c = 0; c < std::min(a.stepped.size(), b.stepped.size()); ++c)
    if (a.stepped[c].sends != b.stepped[c].sends || a.stepped[c].receives != b.stepped[c].receives)
      return fmt::format("collective {}", c);
  const bool same = a.schedule == b.schedule && a.arrangement == b.arrangement &&
                    a.stages == b.stages && a.replicas == b.replicas &&
                    a.microbatches == b.microbatches && a.cell == b.cell &&
                    a.datacenters == b.datacenters && a.lanes.size() == b.lanes.size() &&
                    a.resources.size() == b.resources.size() && a.set_items == b.set_items &&
                    a.set_begin == b.set_begin && a.collectives == b.collectives &&
                    a.stepped.size() == b.stepped.size() && a.operators == b.operators &&
                    a.granularity == b.granularity && a.ranks.size() == b.ranks.size();
  return same ? "" : "something beside the ops";
}

}  // namespace longhaul::testing
