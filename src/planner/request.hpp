#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/generators/registry.hpp"

namespace longhaul::planner {

/// Schedules that are found by search, which may take long.
enum class ScheduleSearch {
  best,            ///< a search over all that is generated
  shared_best,     ///< one over the rows and the WAN turns of DP-cells
  cross_ud_opt,    ///< a solver, one stage a device
  cross_wave_opt,  ///< a solver, two chunks a device in a V
};

/// A schedule as someone asks for it, parsed: exactly one of `generator`, `search` and `file` is
/// there.
///
///   parse_schedule("zbv").generator->name        // "zbv"
///   parse_schedule("atlas+best").search          // ScheduleSearch::shared_best
///   parse_schedule("atlas+cross-ud").put_in_cells  // true
struct ScheduleRequest {
  std::string name;  ///< as it was typed
  const schedule::Generator* generator = nullptr;
  std::optional<ScheduleSearch> search;
  std::filesystem::path file;
  bool put_in_cells = false;  ///< shared_name(): its pipelines share the WAN under share_wan()
  bool from_group = false;    ///< came with a group, so that it need not be defined

  [[nodiscard]] bool is_file() const { return !file.empty(); }
  [[nodiscard]] bool is_looked_for() const { return search.has_value(); }
  /// Do the pipelines of a cell take turns on the WAN, by themselves or put in cells?
  [[nodiscard]] bool shares_wan() const;
  /// Does its generator know by which times it decided (timetable_of())?
  [[nodiscard]] bool has_timetable() const;
};

/// A schedule that someone may ask for by name.
struct ScheduleName {
  std::string name;
  std::string summary;  ///< one line, for lists
};

/// All of them, in the order of a report: static, dynamic, those that are looked for.
[[nodiscard]] const std::vector<ScheduleName>& schedule_names();

/// One name. Throws Error where it is unknown, with the nearest known one, and for a file.
[[nodiscard]] ScheduleRequest parse_schedule(std::string_view name);

/// A comma list: names, files (.csv), and the groups `static` (links decide nothing), `dynamic`
/// (they do) and `shared` (pipelines take turns on the WAN). Throws Error on unknown names and on
/// repeated ones.
[[nodiscard]] std::vector<ScheduleRequest> parse_schedules(std::string_view list);

/// The same of an option --schedule, which must be there.
[[nodiscard]] std::vector<ScheduleRequest> parse_schedule_option(std::string_view list);
/// Where the command takes exactly one.
[[nodiscard]] ScheduleRequest parse_single_schedule_option(std::string_view name);

}  // namespace longhaul::planner
