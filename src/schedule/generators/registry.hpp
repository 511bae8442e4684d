#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "scenario/scenario.hpp"
#include "schedule/placement.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::schedule {

namespace families {
struct CellRules;
}

/// How a schedule runs the backward pass: as one B, or as D and W.
enum class Backward { whole, split };

/// Inputs of a schedule's order: counts alone; costs of blocks and memory as well; links too.
enum class Knowledge { counts, costs, times };

/// Is it made as if messages took no time? Then it belongs to the group `static`.
[[nodiscard]] constexpr bool is_static(Knowledge knowledge) {
  return knowledge != Knowledge::times;
}

/// One kind of schedule that generate() can make. To add one: a file beside this one, a line in
/// the table of registry.cpp.
///
///     Generator{.name = "zbv", .summary = "zero bubble on a V of two chunks a device",
///               .placement = Placement::wave, .backward = Backward::split,
///               .fill = everywhere<fill_zbv>}
struct Generator {
  std::string_view name;
  std::string_view summary;  ///< one line, for lists
  Placement placement = Placement::unidirectional;
  Backward backward = Backward::whole;
  Knowledge knowledge = Knowledge::counts;
  /// Fills the rows (one per device, empty and reserved) of a schedule that is complete otherwise,
  /// and its link orders where the generator decides them; or says why it is not defined there.
  std::optional<Refusal> (*fill)(const Scenario& scenario, Schedule& schedule) = nullptr;
  /// Its pipelines take turns on the WAN by themselves.
  bool shares_wan = false;
  /// The rules by which it decides times (timetable_of()); nullptr: it has no timetable.
  const families::CellRules* timetable = nullptr;
  /// Each W comes in parts (parallel.sub_blocks).
  bool divides_wgrad = false;
};

/// Stands before the name of a schedule whose rows are that one's and whose pipelines share the WAN
/// as Atlas' do.
inline constexpr std::string_view kSharedPrefix = "atlas+";
[[nodiscard]] std::string shared_name(std::string_view name);
/// NAME of shared_name(NAME); nullopt for other names.
[[nodiscard]] std::optional<std::string_view> name_without_sharing(std::string_view shared);

/// Those that datacenters are planned for where no one names others: of each plan the fastest
/// counts. They hold no more activations than 1F1B, or than the budget.
inline constexpr std::string_view kSitePlannerSchedules =
    "1f1b,zbv,cross-ud-sub,cross-wave,cross-loop,atlas,atlas+cross-ud";
/// The one of Atlas' own planner.
inline constexpr std::string_view kAtlasPlannerSchedule = "atlas";

/// All generators, in the order of a report, static ones first.
[[nodiscard]] std::span<const Generator> generators();
/// Those that no group has: they are defined for replicas that train together in a stream.
[[nodiscard]] std::span<const Generator> stream_generators();
/// nullptr where there is none of that name, in either.
[[nodiscard]] const Generator* find_generator(std::string_view name);

}  // namespace longhaul::schedule
