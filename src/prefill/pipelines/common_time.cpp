#include "prefill/pipelines/common_time.hpp"

#include <algorithm>
#include <utility>

#include "base/index.hpp"
#include "prefill/pipelines/pipelines.hpp"

namespace longhaul::prefill {
namespace {

/// On either side of the iteration in which the first stage computes: a bubble is at most one long.
constexpr int kPeriodsAround = 2;

}  // namespace

CommonTime::CommonTime(const IterationBubbles& iteration, const ServedModel& model, Duration whole)
    : model_{model}, whole_{whole}, period_{iteration.period}, classes_(to_size(iteration.gpus)) {
  std::vector<std::vector<std::pair<Duration, Duration>>> of_gpu(to_size(iteration.gpus));
  for (const Bubble& bubble : iteration.bubbles)
    if (bubble.length() > model.guard)
      of_gpu[at(bubble.rank)].emplace_back(bubble.start, bubble.end - model.guard);
  std::map<std::vector<std::pair<Duration, Duration>>, int> numbers;
  for (std::size_t rank = 0; rank < of_gpu.size(); ++rank) {
    std::ranges::sort(of_gpu[rank]);
    const auto [known, is_new] =
        numbers.try_emplace(of_gpu[rank], static_cast<int>(numbers.size()));
    classes_[rank] = known->second;
    if (!is_new) continue;
    std::vector<TimeRange>& times = times_.emplace_back();
    for (const auto& [start, end] : of_gpu[rank]) times.push_back({start, end});
  }
}

/// The times of a class over the periods around, earlier by a time.
std::vector<CommonTime::TimeRange> CommonTime::shifted(int gpu_class, Duration by) const {
  std::vector<TimeRange> all;
  for (int i = -kPeriodsAround; i <= kPeriodsAround; ++i)
    for (const TimeRange& range : times_[to_size(gpu_class)]) {
      const Duration shift = i * period_ - by % period_;
      all.push_back({range.start + shift, range.end + shift});
    }
  return all;
}

SkewWorth CommonTime::work_out(std::span<const int> classes) const {
  std::vector<TimeRange> common = shifted(classes.front(), Duration{});
  for (std::size_t stage = 1; stage < classes.size(); ++stage) {
    const auto other =
        shifted(classes[stage], stage_offset(model_, whole_, static_cast<int>(stage)));
    std::vector<TimeRange> both;
    for (std::size_t i = 0, j = 0; i < common.size() && j < other.size();) {
      const Duration start = std::max(common[i].start, other[j].start);
      const Duration end = std::min(common[i].end, other[j].end);
      if (start < end) both.push_back({start, end});
      ++(common[i].end < other[j].end ? i : j);
    }
    common = std::move(both);
  }
  // The first stage has the remainder of a nanosecond: no later one takes longer.
  const Duration stage_time = std::max(model_.stage_time(whole_, 0), Duration{1});
  SkewWorth worth;
  for (const TimeRange& range : common) {
    if (range.start < Duration{} || range.start >= period_) continue;
    worth.prompts += (range.end - range.start) / stage_time;
    worth.time += range.end - range.start;
  }
  return worth;
}

const SkewWorth& CommonTime::of(std::span<const int> classes) {
  const auto [known, is_new] = known_.try_emplace({classes.begin(), classes.end()});
  if (is_new && !classes.empty() && period_ > Duration{}) {
    ++looks_;
    known->second = work_out(classes);
  }
  return known->second;
}

}  // namespace longhaul::prefill
