#pragma once

#include <span>
#include <string_view>

#include "scenario/scenario.hpp"
#include "schedule/placement.hpp"
#include "schedule/schedule.hpp"

namespace longhaul {

/// How a schedule runs the backward pass: as one B, or as D and W.
enum class Backward { whole, split };

/// Inputs of a schedule's order: counts alone, or times and links of the scenario as well.
enum class Knowledge { counts, times };

/// One kind of schedule that generate() can make. To add one: a file beside this one, a line in
/// the table of registry.cpp.
///
///     Generator{.name = "zbv", .summary = "zero bubble on a V of two chunks a device",
///               .placement = Placement::wave, .backward = Backward::split,
///               .fill = families::fill_zbv}
struct Generator {
  std::string_view name;
  std::string_view summary;  ///< one line, for lists
  Placement placement = Placement::unidirectional;
  Backward backward = Backward::whole;
  Knowledge knowledge = Knowledge::counts;
  /// Fills the rows (one per device, empty and reserved) of a schedule that is complete otherwise,
  /// and its link orders where the generator decides them. Throws Error where it is not defined.
  void (*fill)(const Scenario& scenario, Schedule& schedule) = nullptr;
};

/// All generators, in the order of a report, static ones first.
[[nodiscard]] std::span<const Generator> generators();
/// nullptr where there is none of that name.
[[nodiscard]] const Generator* find_generator(std::string_view name);

}  // namespace longhaul
