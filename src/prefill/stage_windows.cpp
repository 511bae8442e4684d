#include "prefill/stage_windows.hpp"

#include <algorithm>
#include <optional>

#include "base/index.hpp"

namespace longhaul::prefill {
namespace {

/// Sorted, apart from each other.
struct TimeRange {
  Duration start{}, end{};
};
using TimeRanges = std::vector<TimeRange>;

TimeRanges joined(TimeRanges ranges) {
  std::ranges::sort(ranges, {}, &TimeRange::start);
  TimeRanges all;
  for (const TimeRange& range : ranges) {
    if (range.end <= range.start) continue;
    if (!all.empty() && range.start <= all.back().end)
      all.back().end = std::max(all.back().end, range.end);
    else
      all.push_back(range);
  }
  return all;
}

TimeRanges intersection(const TimeRanges& a, const TimeRanges& b) {
  TimeRanges both;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Duration start = std::max(a[i].start, b[j].start);
    const Duration end = std::min(a[i].end, b[j].end);
    if (start < end) both.push_back({start, end});
    ++(a[i].end < b[j].end ? i : j);
  }
  return both;
}

/// The shortest and longest stage of the file's prompts; of chunks, of shared passes and after a
/// prefix that is there already, of what passes may take.
struct StageRange {
  Duration shortest = Duration::max(), longest{};
};
StageRange stage_range(std::size_t model, const std::vector<Served>& served,
                       const std::vector<Request>& file) {
  const ServedModel& own = served[model].model;
  StageRange range;
  const auto add = [&](std::int64_t tokens) {
    const auto whole = own.time(tokens);
    if (!whole) return;
    range.shortest = std::min(range.shortest, *whole / own.stages);
    range.longest = std::max(range.longest, *whole / own.stages);
  };
  for (const Request& request : file)
    if (served_index(request, served) == model) add(request.tokens);
  if (own.chunk > 0 || own.batch > 1 || own.prefix_cache > Bytes{})
    range.shortest = *own.time(1) / own.stages;
  return range;
}

constexpr int kPeriodsBefore = 2;

/// The bubbles of every GPU less a guard, over five periods.
std::vector<TimeRanges> bubbles_over_periods(const IterationBubbles& iteration, Duration guard) {
  std::vector<TimeRanges> all(to_size(iteration.gpus));
  for (const Bubble& bubble : iteration.bubbles)
    for (int i = -kPeriodsBefore - 1; i <= kPeriodsBefore + 1; ++i)
      if (const Duration shift = i * iteration.period; bubble.length() > guard)
        all[at(bubble.rank)].push_back({bubble.start + shift, bubble.end + shift - guard});
  for (TimeRanges& ranges : all) std::ranges::sort(ranges, {}, &TimeRange::start);
  return all;
}

TimeRanges window_of_stage(const std::vector<TimeRanges>& bubbles, const Pipeline& pipeline,
                           int stage, const ServedModel& model, const StageRange& range) {
  TimeRanges window = bubbles[at(pipeline.ranks[to_size(stage)])];
  for (int other = 0; other < model.stages; ++other) {
    if (other == stage) continue;
    const Duration slack{model.stages};  // remainders of a nanosecond lie on the first stage
    const Duration a = (stage - other) * (range.shortest + model.hop);
    const Duration b = (stage - other) * (range.longest + model.hop);
    TimeRanges shifted;
    for (const TimeRange& bubble : bubbles[at(pipeline.ranks[to_size(other)])])
      shifted.push_back(
          {bubble.start + std::min(a, b) - slack, bubble.end + std::max(a, b) + slack});
    window = intersection(window, joined(std::move(shifted)));
  }
  return window;
}

}  // namespace

std::vector<FillWindow> fill_windows(const IterationBubbles& iteration,
                                     const std::vector<Served>& served,
                                     const std::vector<Request>& file) {
  std::vector<TimeRanges> of_gpu(to_size(iteration.gpus));
  for (std::size_t i = 0; i < served.size(); ++i) {
    const ServedModel& model = served[i].model;
    const StageRange range = stage_range(i, served, file);
    if (range.longest == Duration{}) continue;
    const auto bubbles = bubbles_over_periods(iteration, model.guard);
    const bool is_near =
        (model.stages - 1) * (range.longest + model.hop) < kPeriodsBefore * iteration.period;
    for (const Pipeline& pipeline : served[i].serving.pipelines)
      for (int stage = 0; stage < model.stages; ++stage) {
        const std::int32_t rank = pipeline.ranks[to_size(stage)];
        const TimeRanges window =
            is_near ? window_of_stage(bubbles, pipeline, stage, model, range) : bubbles[at(rank)];
        of_gpu[at(rank)].insert(of_gpu[at(rank)].end(), window.begin(), window.end());
      }
  }
  std::vector<FillWindow> windows;
  for (std::size_t rank = 0; rank < of_gpu.size(); ++rank) {
    // Bubbles with guards that differ end at different times: joined where they touch or overlap,
    // which bubbles of one guard never do.
    for (const TimeRange& range : joined(std::move(of_gpu[rank])))
      if (range.end - range.start >= 2 * iteration.period)  // it never computes
        windows.push_back({static_cast<std::int32_t>(rank), Duration{}, iteration.period});
      else if (range.start >= Duration{} && range.start < iteration.period)
        windows.push_back({static_cast<std::int32_t>(rank), range.start, range.end});
  }
  return windows;
}

}  // namespace longhaul::prefill
