// The bubbles of measured rows, and how far the prediction of each was off.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "cli/prefill/simulated_bubbles.hpp"
#include "cli/trace/trace_source.hpp"
#include "report/record_file.hpp"
#include "report/tables.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;

/// A bubble is the same one where the same blocks open and close it.
using BubbleKey = std::tuple<std::int32_t, std::int64_t, std::int64_t>;
BubbleKey key_of(const prefill::Bubble& bubble) {
  return {bubble.rank, bubble.after_op, bubble.before_op};
}

/// Measured minus predicted; or both times.
struct Offset {
  Duration start{}, end{};
};

/// One iteration: its bubbles, and of each how far the prediction was off; nullopt: it has no such
/// bubble.
struct MeasuredIteration {
  int iteration = 0;
  prefill::IterationBubbles bubbles;
  std::vector<std::optional<Offset>> off;
};

struct MeasuredSchedule {
  std::string name;
  prefill::IterationBubbles predicted;
  std::vector<MeasuredIteration> iterations;
  std::size_t shown = 0;  ///< that whose period is nearest to the median
};

/// Prefills fill bubbles: they make none.
prefill::IterationBubbles bubbles_of_rows(std::span<const TimelineRow> rows) {
  std::vector<TimelineRow> training;
  int gpus = 0;
  for (const TimelineRow& row : rows) {
    if (row.request >= 0) continue;
    training.push_back(row);
    if (is_compute(row.kind)) gpus = std::max(gpus, row.rank + 1);
  }
  return prefill::find_bubbles(training, gpus);
}

/// Those of the iteration itself, where each has a prediction of its own, or of the only one.
std::span<const TimelineRow> predicted_rows(const Timeline& predicted, int schedule,
                                            int iteration) {
  const auto own = trace::rows_of(predicted, schedule, iteration);
  if (!own.empty()) return own;
  const auto numbers = iteration_numbers(predicted, schedule);
  return numbers.empty() ? own : trace::rows_of(predicted, schedule, numbers.front());
}

/// When a bubble opens and closes, from the iteration on in which it opens. Where its GPU is the
/// last to compute it opens with the end of that iteration, which find_bubbles() has as time 0.
Offset times_of(const prefill::Bubble& bubble, Duration period) {
  const bool opens_at_end = bubble.start == Duration{} && bubble.after_op >= 0;
  const Duration later = opens_at_end ? period : Duration{};
  return {bubble.start + later, bubble.end + later};
}

std::vector<std::optional<Offset>> offsets_of(const prefill::IterationBubbles& measured,
                                              const prefill::IterationBubbles& predicted) {
  std::map<BubbleKey, Offset> known;
  for (const prefill::Bubble& bubble : predicted.bubbles)
    known[key_of(bubble)] = times_of(bubble, predicted.period);
  std::vector<std::optional<Offset>> off;
  for (const prefill::Bubble& bubble : measured.bubbles) {
    const Offset times = times_of(bubble, measured.period);
    const auto found = known.find(key_of(bubble));
    off.push_back(found == known.end() ? std::nullopt
                                       : std::optional{Offset{times.start - found->second.start,
                                                              times.end - found->second.end}});
  }
  return off;
}

std::size_t nearest_to_median_period(const std::vector<MeasuredIteration>& iterations) {
  std::vector<Duration> periods;
  for (const MeasuredIteration& each : iterations) periods.push_back(each.bubbles.period);
  std::ranges::sort(periods);
  const Duration median = periods[(periods.size() - 1) / 2];
  const auto found = std::ranges::find_if(
      iterations, [&](const MeasuredIteration& each) { return each.bubbles.period == median; });
  return static_cast<std::size_t>(found - iterations.begin());
}

MeasuredSchedule measure_bubbles(const trace::Trace& trace, const std::string& name) {
  MeasuredSchedule schedule{name, {}, {}, 0};
  const auto at = position_of(trace.measured, name);
  if (!at) return schedule;
  const auto predicted_at = position_of(trace.predicted, name);
  for (const int number : iteration_numbers(trace.measured, *at)) {
    MeasuredIteration iteration{
        number, bubbles_of_rows(trace::rows_of(trace.measured, *at, number)), {}};
    if (predicted_at)
      schedule.predicted = bubbles_of_rows(predicted_rows(trace.predicted, *predicted_at, number));
    iteration.off = offsets_of(iteration.bubbles, schedule.predicted);
    schedule.iterations.push_back(std::move(iteration));
  }
  if (!schedule.iterations.empty()) schedule.shown = nearest_to_median_period(schedule.iterations);
  return schedule;
}

/// |start| and |end| of all bubbles of all iterations that were predicted, sorted; and how many
/// were not.
struct Spread {
  std::vector<std::int64_t> start, end;
  std::int64_t unmatched = 0;
};

Spread spread_of(const MeasuredSchedule& schedule) {
  Spread spread;
  for (const MeasuredIteration& iteration : schedule.iterations)
    for (const auto& off : iteration.off) {
      if (!off) {
        ++spread.unmatched;
        continue;
      }
      spread.start.push_back(std::abs(off->start.count()));
      spread.end.push_back(std::abs(off->end.count()));
    }
  std::ranges::sort(spread.start);
  std::ranges::sort(spread.end);
  return spread;
}

std::int64_t at_share(const std::vector<std::int64_t>& sorted, double share) {
  if (sorted.empty()) return 0;
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

ordered_json spread_json(const std::vector<std::int64_t>& sorted) {
  return {{"p50", at_share(sorted, 0.5)},
          {"p99", at_share(sorted, 0.99)},
          {"max", at_share(sorted, 1)}};
}

ordered_json measured_json(const MeasuredSchedule& schedule) {
  const MeasuredIteration& shown = schedule.iterations[schedule.shown];
  ordered_json json = bubbles_json({Schedule{}, shown.bubbles, 1, Plan{}, OpTimes{}});
  json["schedule"] = schedule.name;
  json["iteration"] = shown.iteration;
  json["iterations"] = schedule.iterations.size();
  json["predicted_period_ns"] = schedule.predicted.period.count();
  json["predicted_busy_ratio"] = schedule.predicted.busy_ratio();
  for (std::size_t i = 0; i < shown.off.size(); ++i) {
    const auto& off = shown.off[i];
    json["bubbles"][i]["start_off_ns"] = off ? ordered_json(off->start.count()) : ordered_json{};
    json["bubbles"][i]["end_off_ns"] = off ? ordered_json(off->end.count()) : ordered_json{};
  }
  const Spread spread = spread_of(schedule);
  json["off_ns"] = {{"start", spread_json(spread.start)},
                    {"end", spread_json(spread.end)},
                    {"unmatched", spread.unmatched}};
  return json;
}

std::string measured_text(const std::vector<MeasuredSchedule>& all, TableWidth width) {
  Table table{{{"schedule", Align::left},
               {"iterations"},
               {"period"},
               {"predicted"},
               {"busy"},
               {"predicted"},
               {"begin off, p50"},
               {"p99"},
               {"end off, p50"},
               {"p99"},
               {"not predicted"}}};
  for (const MeasuredSchedule& each : all) {
    const MeasuredIteration& shown = each.iterations[each.shown];
    const Spread spread = spread_of(each);
    const auto off = [](const std::vector<std::int64_t>& sorted, double share) {
      return to_text(Duration{at_share(sorted, share)});
    };
    table.add_row({each.name, std::to_string(each.iterations.size()), to_text(shown.bubbles.period),
                   to_text(each.predicted.period),
                   report::percent_text(shown.bubbles.busy_ratio()) + "%",
                   report::percent_text(each.predicted.busy_ratio()) + "%", off(spread.start, 0.5),
                   off(spread.start, 0.99), off(spread.end, 0.5), off(spread.end, 0.99),
                   std::to_string(spread.unmatched)});
  }
  return table.text(width);
}

}  // namespace

Answer measured_bubbles_command(const Options& options) {
  if (!options.files.empty())
    fail("--trace: a trace says its scenario itself. Leave {} out.", options.files.front());
  const trace::Trace trace = load_trace(options.trace, options);
  std::vector<MeasuredSchedule> all;
  for (const std::string& name : traced_schedules(trace, options)) {
    all.push_back(measure_bubbles(trace, name));
    if (all.back().iterations.empty()) all.pop_back();
  }
  if (all.empty())
    fail("{}: nothing was measured (it holds a prediction alone). Name a run's trace.",
         options.trace);
  if (!options.json)
    return {fmt::format("{}: measured bubbles, and how far the prediction was off\n\n{}",
                        options.trace, measured_text(all, table_width(options)))};
  ordered_json json = report::record_header();
  json["trace"] = options.trace;
  json["schedules"] = ordered_json::array();
  for (const MeasuredSchedule& each : all) json["schedules"].push_back(measured_json(each));
  return {report::json_text(json)};
}

}  // namespace longhaul::cli
