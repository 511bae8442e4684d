#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "cli/command/commands.hpp"
#include "cli/trace/trace_source.hpp"
#include "cli/trace/traced_iteration.hpp"
#include "collective/explain/exposure_causes.hpp"
#include "report/record_file.hpp"

namespace longhaul::cli {
namespace {

using collective::ExplainedCommunication;
using collective::ExposureCause;
using collective::HiddenBeside;
using collective::IterationPlan;
using collective::LoweredIteration;
using collective::TimeByCause;
using nlohmann::ordered_json;

/// What a side of the trace says of the collectives of a rank.
struct ExplainedSide {
  std::string name;
  int iteration = 0;
  Duration makespan{};
  std::vector<ExplainedCommunication> all;
};

/// Collectives of one kind in blocks of one kind.
struct ExplainedKind {
  std::size_t count = 0;
  Duration duration{}, hidden{}, exposed{};
  TimeByCause causes{};
  std::vector<HiddenBeside> beside;
};

/// The kind of block that a communication is for: of its first user, or of what it needs last.
std::string block_of(const IterationPlan& plan, const ExplainedCommunication& each) {
  const collective::StageWork& work = plan.stages[each.of.stage];
  const collective::Communication& own = work.communications[each.of.communication];
  const bool gathers = own.kind == CollectiveKind::all_gather;
  const auto& operations = gathers ? own.needed_by : own.needs;
  if (operations.empty()) return "-";
  return to_string(work.operations[gathers ? operations.front() : operations.back()].work);
}

std::string kind_of(const IterationPlan& plan, const ExplainedCommunication& each) {
  const collective::Communication& own =
      plan.stages[each.of.stage].communications[each.of.communication];
  return fmt::format("{} {}, {}", to_string(own.traffic), to_text(own.kind), block_of(plan, each));
}

void add(const ExplainedCommunication& each, ExplainedKind& kind) {
  ++kind.count;
  kind.duration += each.span.end - each.span.start;
  kind.hidden += each.hidden();
  kind.exposed += each.total_exposed();
  for (std::size_t c = 0; c < kind.causes.size(); ++c) kind.causes[c] += each.exposed[c];
  for (const HiddenBeside& beside : each.beside) {
    const auto known = std::ranges::find_if(kind.beside, [&](const HiddenBeside& other) {
      return other.name == beside.name && other.work == beside.work;
    });
    if (known == kind.beside.end())
      kind.beside.push_back(beside);
    else
      known->time += beside.time;
  }
}

std::map<std::string, ExplainedKind> kinds_of(const IterationPlan& plan,
                                              const ExplainedSide& side) {
  std::map<std::string, ExplainedKind> kinds;
  for (const ExplainedCommunication& each : side.all) add(each, kinds[kind_of(plan, each)]);
  return kinds;
}

/// "resource 3 ms, lane order 1 ms": the largest first.
std::string causes_text(const TimeByCause& causes) {
  std::vector<std::pair<Duration, std::string>> parts;
  for (const ExposureCause cause : every<ExposureCause>()) {
    std::string name = to_string(cause);
    std::ranges::replace(name, '_', ' ');
    const Duration time = causes[static_cast<std::size_t>(cause)];
    if (time > Duration{}) parts.emplace_back(time, fmt::format("{} {}", name, to_text(time)));
  }
  std::ranges::stable_sort(parts, std::ranges::greater{}, [](const auto& p) { return p.first; });
  std::vector<std::string> texts;
  for (const auto& [time, text] : parts) texts.push_back(text);
  return texts.empty() ? "-" : fmt::format("{}", fmt::join(texts, ", "));
}

/// The two that hide most.
std::string beside_text_of(std::vector<HiddenBeside> beside) {
  constexpr std::size_t kMostNamed = 2;
  std::ranges::stable_sort(beside, std::ranges::greater{}, &HiddenBeside::time);
  std::vector<std::string> texts;
  for (const HiddenBeside& each : beside) {
    if (texts.size() == kMostNamed) {
      texts.emplace_back("...");
      break;
    }
    texts.push_back(fmt::format("{} {}", each.name, to_string(each.work)));
  }
  return texts.empty() ? "-" : fmt::format("{}", fmt::join(texts, ", "));
}

std::string text_of(const IterationPlan& plan, const std::vector<ExplainedSide>& sides,
                    TableWidth width) {
  std::vector<Table::Column> columns{{"collective", Align::left}, {"times"}};
  for (const char* name : {"duration", "hidden", "exposed"}) {
    columns.push_back({name});
    if (sides.size() > 1) columns.push_back({"measured"});
  }
  columns.push_back({"beside", Align::left});
  columns.push_back({"exposed by", Align::left});
  if (sides.size() > 1) columns.push_back({"measured", Align::left});
  Table table{columns};
  std::vector<std::map<std::string, ExplainedKind>> kinds;
  for (const ExplainedSide& side : sides) kinds.push_back(kinds_of(plan, side));
  for (const auto& [name, first] : kinds.front()) {
    std::vector<std::string> cells{name, std::to_string(first.count)};
    for (Duration ExplainedKind::*const part :
         {&ExplainedKind::duration, &ExplainedKind::hidden, &ExplainedKind::exposed})
      for (auto& side : kinds) cells.push_back(to_text(side[name].*part));
    cells.push_back(beside_text_of(first.beside));
    for (auto& side : kinds) cells.push_back(causes_text(side[name].causes));
    table.add_row(std::move(cells));
  }
  return table.text(width);
}

ordered_json to_json(const TimeByCause& causes) {
  ordered_json json;
  for (const ExposureCause cause : every<ExposureCause>())
    json[std::string{to_string(cause)} + "_ns"] = causes[static_cast<std::size_t>(cause)].count();
  return json;
}

ordered_json to_json(const IterationPlan& plan, const ExplainedCommunication& each) {
  const collective::Communication& own =
      plan.stages[each.of.stage].communications[each.of.communication];
  ordered_json json{{"traffic", to_string(own.traffic)},
                    {"kind", to_string(own.kind)},
                    {"block", block_of(plan, each)},
                    {"chunk", number(own.chunk)},
                    {"microbatch", number(own.microbatch)},
                    {"unit", own.unit},
                    {"size_bytes", own.size.count()},
                    {"start_ns", each.span.start.count()},
                    {"end_ns", each.span.end.count()},
                    {"duration_ns", (each.span.end - each.span.start).count()},
                    {"hidden_ns", each.hidden().count()}};
  json["beside"] = ordered_json::array();
  for (const HiddenBeside& beside : each.beside)
    json["beside"].push_back({{"operator", beside.name},
                              {"block", to_string(beside.work)},
                              {"time_ns", beside.time.count()}});
  json["exposed_ns"] = each.total_exposed().count();
  json["exposed_by"] = to_json(each.exposed);
  return json;
}

ordered_json to_json(const IterationPlan& plan, const ExplainedSide& side) {
  ExplainedKind sum;
  for (const ExplainedCommunication& each : side.all) add(each, sum);
  ordered_json json{{"iteration", side.iteration},         {"makespan_ns", side.makespan.count()},
                    {"duration_ns", sum.duration.count()}, {"hidden_ns", sum.hidden.count()},
                    {"exposed_ns", sum.exposed.count()},   {"exposed_by", to_json(sum.causes)}};
  json["collectives"] = ordered_json::array();
  for (const ExplainedCommunication& each : side.all)
    json["collectives"].push_back(to_json(plan, each));
  return json;
}

/// The rank with the most exposed communication.
Rank most_exposed(const LoweredIteration& lowered, const OpTimes& times) {
  const collective::IterationTimes all{lowered, times};
  std::optional<Rank> most;
  Duration exposed{};
  for (const Rank rank : all.ranks()) {
    const Duration own = all.exposure(rank).total_exposed();
    if (most && own <= exposed) continue;
    most = rank;
    exposed = own;
  }
  return most.value_or(Rank{});
}

/// The measured iteration whose makespan is nearest to the median.
int typical_iteration(const Timeline& timeline, int schedule) {
  std::vector<std::pair<std::int64_t, int>> makespans;
  for (const int iteration : iteration_numbers(timeline, schedule)) {
    std::int64_t end = 0;
    for (const TimelineRow& row : trace::rows_of(timeline, schedule, iteration))
      end = std::max(end, row.end_ns);
    makespans.emplace_back(end, iteration);
  }
  std::ranges::sort(makespans);
  return makespans[(makespans.size() - 1) / 2].second;
}

/// The rows of one iteration of a side; none where it has no such schedule.
struct SideRows {
  const char* name;
  const Timeline* timeline;
  int iteration = 0;
  std::span<const TimelineRow> rows;
};
std::vector<SideRows> sides_of(const trace::Trace& trace, const std::string& schedule,
                               const Options& options) {
  std::vector<SideRows> sides;
  if (const auto place = position_of(trace.predicted, schedule))
    sides.push_back({"predicted", &trace.predicted, 0, trace::rows_of(trace.predicted, *place, 0)});
  const auto place = position_of(trace.measured, schedule);
  if (!place || iteration_numbers(trace.measured, *place).empty()) return sides;
  const int iteration = options.iteration.value_or(typical_iteration(trace.measured, *place));
  sides.push_back(
      {"measured", &trace.measured, iteration, trace::rows_of(trace.measured, *place, iteration)});
  return sides;
}

Rank rank_asked(const Options& options, const Plan& plan) {
  const int ranks = static_cast<int>(plan.ranks.size());
  if (*options.rank < 0 || *options.rank >= ranks)
    fail("--rank: there is no rank {} (there are {}). Give 0 to {}.", *options.rank, ranks,
         ranks - 1);
  return Rank{*options.rank};
}

struct ExplainedSchedule {
  IterationPlan plan;
  Rank rank{};
  std::vector<ExplainedSide> sides;
};

ExplainedSchedule explain(const trace::Trace& trace, const std::string& schedule,
                          const Options& options) {
  const std::vector<SideRows> sides = sides_of(trace, schedule, options);
  const std::string& source = options.files.front();
  TracedIteration traced =
      iteration_of_trace(trace, source, schedule, *sides.front().timeline, sides.front().rows);
  ExplainedSchedule made;
  for (const SideRows& side : sides) {
    const std::optional<OpTimes> times = times_of(*side.timeline, side.rows, traced.lowered.plan);
    if (!times)
      fail("{}: the {} ops of {} are not those of its plan. Trace it again.", source, side.name,
           schedule);
    if (made.sides.empty())
      made.rank = options.rank ? rank_asked(options, traced.lowered.plan)
                               : most_exposed(traced.lowered, *times);
    made.sides.push_back({side.name, side.iteration,
                          std::ranges::max_element(*times, {}, &OpTime::end)->end,
                          collective::explained(traced.plan, traced.lowered, *times, made.rank)});
  }
  made.plan = std::move(traced.plan);
  return made;
}

/// Those that ran under an overlap.
std::vector<std::string> overlapped_schedules(const trace::Trace& trace, const Options& options) {
  std::vector<std::string> names = traced_schedules(trace, options);
  std::erase_if(names, [](const std::string& name) { return name.find('+') == std::string::npos; });
  if (names.empty())
    fail(
        "{}: nothing ran under an overlap (a schedule would be named gpipe+zero3). Trace one with "
        "--overlap.",
        options.files.front());
  return names;
}

}  // namespace

Answer trace_overlap_command(const Options& options) {
  const trace::Trace trace = load_trace(options.files.front(), options);
  const std::vector<std::string> schedules = overlapped_schedules(trace, options);
  require_iteration(trace, schedules, options);
  ordered_json json = report::record_header();
  json["trace"] = options.files.front();
  json["schedules"] = ordered_json::array();
  std::string text;
  for (const std::string& schedule : schedules) {
    const ExplainedSchedule made = explain(trace, schedule, options);
    ordered_json entry{{"schedule", schedule}, {"rank", number(made.rank)}};
    entry["predicted"] = entry["measured"] = nullptr;
    for (const ExplainedSide& side : made.sides) entry[side.name] = to_json(made.plan, side);
    json["schedules"].push_back(std::move(entry));
    if (!text.empty()) text += '\n';
    text += fmt::format(
        "{}: collectives of rank {} beside computation, {}\n\n", schedule, number(made.rank),
        made.sides.size() > 1
            ? fmt::format("predicted and measured (iteration {})", made.sides.back().iteration)
            : made.sides.front().name);
    text += text_of(made.plan, made.sides, table_width(options));
  }
  return {options.json ? report::json_text(json) : text};
}

}  // namespace longhaul::cli
