#include "cli/schedule/schedule_output.hpp"

#include <array>
#include <filesystem>
#include <ostream>
#include <sstream>
#include <system_error>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "base/unit_text.hpp"
#include "plan/export/export.hpp"
#include "plan/lowering/lower.hpp"
#include "report/record_file.hpp"
#include "report/scenario_text.hpp"
#include "schedule/csv/csv.hpp"

namespace longhaul::cli {
namespace {

/// "x.3.et" for rank 3 and "x.et", as ASTRA-sim names its files; "x.groups.json" likewise.
std::string with_infix(const std::string& out, const std::string& infix,
                       const std::string& extension) {
  std::filesystem::path path{out};
  const std::string kept = path.has_extension() ? path.extension().string() : ".et";
  path.replace_extension();
  return path.string() + "." + infix + (extension.empty() ? kept : extension);
}
std::string groups_file(const std::string& out) { return with_infix(out, "groups", ".json"); }

}  // namespace

OutputFormat output_format_of(const std::string& text) {
  if (text.empty()) return OutputFormat::longhaul;
  if (const auto format = from_string<OutputFormat>(text)) return *format;
  fail("--format: unknown format \"{}\". {}", text, suggestion(text, every_name<OutputFormat>()));
}

plan::GoalSimulator goal_simulator_of(const std::string& text, OutputFormat format) {
  if (text.empty()) return plan::GoalSimulator::atlahs;
  const auto simulator = from_string<plan::GoalSimulator>(text);
  if (!simulator)
    fail("--goal: unknown simulator \"{}\". {}", text,
         suggestion(text, every_name<plan::GoalSimulator>()));
  if (format != OutputFormat::goal)
    fail("--goal: there is no GOAL file (the format is {}). Give --format goal, or leave it out.",
         to_string(format));
  return *simulator;
}

void require_granularity(OutputFormat format, Granularity granularity) {
  if (granularity == Granularity::blocks) return;
  if (format != OutputFormat::goal && format != OutputFormat::chakra)
    fail(
        "--granularity {}: a file of format {} orders blocks (a schedule does). Give --format goal "
        "or chakra, or leave --granularity out.",
        to_string(granularity), to_string(format));
}

std::vector<schedule::Placement> placements_of(OutputFormat format) {
  std::vector<schedule::Placement> placements;
  if (format != OutputFormat::pytorch && format != OutputFormat::pytorch_comms) return placements;
  for (const schedule::Placement placement : every<schedule::Placement>()) {
    if (placement != schedule::Placement::bidirectional) placements.push_back(placement);
  }
  return placements;
}

ScheduleOutput::ScheduleOutput(OutputFormat format, plan::GoalSimulator simulator, std::string out,
                               const Scenario& scenario)
    : format_{format}, simulator_{simulator}, out_{std::move(out)} {
  if (format_ != OutputFormat::chakra) {
    report::require_new_file(out_);
    return;
  }
  for (int rank = 0; rank < scenario.ranks(); ++rank)
    report::require_new_file(with_infix(out_, std::to_string(rank), ""));
  report::require_new_file(groups_file(out_));
}

void ScheduleOutput::add(std::string name, std::string content) {
  names_.push_back(std::move(name));
  contents_.push_back(std::move(content));
}

void ScheduleOutput::prepare(const Schedule& schedule, const Scenario& scenario,
                             Arrangement arrangement, Granularity granularity) {
  const auto plan = [&] { return plan::lower_at(granularity, schedule, scenario, arrangement); };
  switch (format_) {
    case OutputFormat::longhaul:
      add(out_, schedule::write_csv(schedule, schedule::CsvFormat::longhaul));
      break;
    case OutputFormat::pytorch:
      add(out_, schedule::write_csv(schedule, schedule::CsvFormat::pytorch));
      break;
    case OutputFormat::pytorch_comms: return prepare_comms(schedule, scenario, arrangement);
    case OutputFormat::goal: return prepare_goal(plan());
    case OutputFormat::chakra: return prepare_chakra(plan());
  }
  note_ = fmt::format("wrote {}\n", out_);
}

void ScheduleOutput::prepare_comms(const Schedule& schedule, const Scenario& scenario,
                                   Arrangement arrangement) {
  (void)schedule::write_csv(schedule, schedule::CsvFormat::pytorch);  // refuses before the search
  placed_ = planner::place_gathers(schedule, scenario, arrangement).or_throw();
  add(out_, collective::pytorch_comms(schedule, placed_->gathers, placed_->spans));
  note_ = fmt::format("wrote {}\n", out_);
  if (placed_->gathers.empty()) {
    remarks_.emplace_back(
        "stages are not sharded: no UNSHARD and no RESHARD (gradient_sync is not "
        "\"zero3\")");
  } else {
    std::int64_t gathers = 0;
    for (const auto& own : placed_->gathers) gathers += std::ssize(own);
    remarks_.push_back(fmt::format(
        "{} placed by search ({} simulated): {}; with the chunks that PyTorch's lowering keeps "
        "active {}{}; nothing below {}",
        report::counted(gathers, "gather"),
        report::counted(static_cast<std::int64_t>(placed_->evaluated), "iteration"),
        to_text(placed_->makespan), to_text(placed_->usual),
        placed_->usual_fits ? "" : ", beyond the memory", to_text(placed_->bound.lower_bound)));
    if (!placed_->fits)
      remarks_.push_back(fmt::format("does not fit: {} are needed", to_text(placed_->peak)));
  }
  for (const std::string& remark : remarks_) note_ += remark + '\n';
}

void ScheduleOutput::prepare_goal(const Plan& plan) {
  std::ostringstream text;
  plan::export_goal(plan, simulator_, text);
  add(out_, std::move(text).str());
  remarks_ = plan::goal_remarks(plan, simulator_);
  note_ = fmt::format("wrote {}, for {}\n", out_, to_string(simulator_));
  for (const std::string& remark : remarks_) note_ += remark + '\n';
}

void ScheduleOutput::prepare_chakra(const Plan& plan) {
  plan::ChakraRounding rounding;
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
    std::ostringstream bytes;
    const plan::ChakraRounding mine =
        plan::export_chakra(plan, Rank{static_cast<int>(rank)}, bytes);
    rounding.blocks += mine.blocks;
    rounding.error += mine.error;
    add(with_infix(out_, std::to_string(rank), ""), std::move(bytes).str());
  }
  note_ = fmt::format("wrote {} to {}", names_.front(), names_.back());
  if (std::string groups = plan::chakra_groups(plan); !groups.empty()) {
    add(groups_file(out_), std::move(groups));
    note_ += fmt::format(" and {}", names_.back());
  }
  note_ += fmt::format(
      "\nwhole microseconds: {} were rounded by {} ns in sum; no device is ever more than 500 ns "
      "ahead or behind\n",
      report::counted(rounding.blocks, "block"), rounding.error.count());
  if (plan.extras.overlap.none()) return;
  remarks_.emplace_back(
      "blocks take longer beside messages here ([overlap]); the files have them without");
  note_ += remarks_.back() + '\n';
}

void ScheduleOutput::write() const {
  std::size_t written = 0;
  try {
    for (; written < names_.size(); ++written)
      report::write_new_file(names_[written],
                             [&](std::ostream& out) { out << contents_[written]; });
  } catch (const Error&) {
    // Some ranks' files without the others' would be taken for a whole.
    std::error_code ignored;
    while (written-- > 0) std::filesystem::remove(names_[written], ignored);
    throw;
  }
}

}  // namespace longhaul::cli
