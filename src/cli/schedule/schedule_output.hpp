#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/listed_enum.hpp"
#include "plan/export/export.hpp"
#include "plan/plan.hpp"
#include "planner/overlap/place_gathers.hpp"
#include "scenario/scenario.hpp"
#include "schedule/placement.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::cli {

/// Formats that `schedule --out` writes (docs/formats.md).
#define LONGHAUL_OUTPUT_FORMATS(X)  \
  X(longhaul, "longhaul")           \
  X(pytorch, "pytorch")             \
  X(pytorch_comms, "pytorch-comms") \
  X(goal, "goal") X(chakra, "chakra")
LONGHAUL_LISTED_ENUM(OutputFormat, LONGHAUL_OUTPUT_FORMATS);

/// "" is longhaul. Throws Error that names the nearest known format.
[[nodiscard]] OutputFormat output_format_of(const std::string& text);
/// --goal of the format goal; "" is atlahs. Throws Error that names the nearest known simulator,
/// and where another format leaves no use for it.
[[nodiscard]] plan::GoalSimulator goal_simulator_of(const std::string& text, OutputFormat format);
/// Throws Error where a format holds blocks and operators are asked for.
void require_granularity(OutputFormat format, Granularity granularity);
/// Where best may place chunks so that the format holds it; empty: anywhere.
[[nodiscard]] std::vector<schedule::Placement> placements_of(OutputFormat format);

/// A schedule in a format of others, ready to be written: nothing is on disk before write().
class ScheduleOutput {
public:
  /// Throws Error where a file of the output exists or its directory does not.
  ScheduleOutput(OutputFormat format, plan::GoalSimulator simulator, std::string out,
                 const Scenario& scenario);

  /// Throws Error with the reason where the format cannot hold the schedule.
  void prepare(const Schedule& schedule, const Scenario& scenario, Arrangement arrangement,
               Granularity granularity);
  /// Creates the files.
  void write() const;
  /// For people: what was written, what it cost, and the remarks.
  [[nodiscard]] const std::string& note() const { return note_; }
  /// For the reader of the format.
  [[nodiscard]] const std::vector<std::string>& remarks() const { return remarks_; }
  [[nodiscard]] const std::vector<std::string>& files() const { return names_; }
  /// Of pytorch-comms: where gathers of weights are, and what that takes.
  [[nodiscard]] const std::optional<planner::PlacedGathers>& placed() const { return placed_; }

private:
  void add(std::string name, std::string content);
  void prepare_comms(const Schedule& schedule, const Scenario& scenario, Arrangement arrangement);
  void prepare_goal(const Plan& plan);
  void prepare_chakra(const Plan& plan);

  OutputFormat format_;
  plan::GoalSimulator simulator_;
  std::string out_;
  std::vector<std::string> names_;
  std::vector<std::string> contents_;  ///< index: as names_
  std::string note_;
  std::vector<std::string> remarks_;
  std::optional<planner::PlacedGathers> placed_;
};

}  // namespace longhaul::cli
