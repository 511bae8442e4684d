// The account of memory that a live controller keeps.
#include <algorithm>

#include "base/index.hpp"
#include "prefill/live/live_controller.hpp"

namespace longhaul::prefill {
namespace {

/// Longer than any stretch: what training leaves does not repeat.
constexpr Duration kOnce{std::int64_t{1} << 60};
/// What should have left by now leaves a little later.
constexpr Duration kStillHeld = std::chrono::milliseconds{1};

}  // namespace

/// From a prompt's start until its first token, and what may be late.
Duration LiveController::released_after(const Waiting& waiting) const {
  const ServedModel& own = model(waiting.model);
  return pass_span(own, waiting.whole) + after_stages(waiting) + own.guard;
}

void LiveController::hold(MemoryOverTime& memory, const Waiting& waiting, std::size_t pipeline,
                          Duration start, Duration until) const {
  const auto& ranks = live_.pipelines[pipeline].pipeline.ranks;
  for (std::size_t stage = 0; stage < ranks.size(); ++stage)
    memory.hold(ranks[stage], start, until,
                held_memory(model(waiting.model), waiting.request.tokens, static_cast<int>(stage)));
}

std::optional<MemoryOverTime> LiveController::expected_memory(Duration now) {
  if (!options_.memory) return std::nullopt;
  std::vector<std::vector<FreeMemoryStep>> steps;
  for (std::int32_t rank = 0; rank < options_.memory->gpus(); ++rank)
    steps.push_back(options_.memory->steps(rank, expected_, now));
  MemoryOverTime memory{kOnce, std::move(steps)};
  for (const Entry& entry : entries_) {
    if (entry.is_done || entry.is_withdrawn || is_killed(entry)) continue;
    const Duration start = entry.answer.start;
    hold(memory, entry.waiting, at(entry.answer.pipeline), std::min(start, now),
         std::max(start + released_after(entry.waiting), now + kStillHeld));
  }
  return memory;
}

Bytes LiveController::lacking_memory(const Waiting& waiting) const {
  if (!options_.memory) return {};
  const ServedModel& own = model(waiting.model);
  Bytes least{INT64_MAX};
  for (const Pipeline& pipeline : served_[waiting.model].serving.pipelines) {
    Bytes lacks;
    for (int stage = 0; stage < own.stages; ++stage)
      if (const std::int32_t rank = pipeline.ranks[to_size(stage)]; options_.memory->of(rank))
        lacks = std::max(
            lacks, held_memory(own, waiting.request.tokens, stage) - options_.memory->most(rank));
    least = std::min(least, lacks);
  }
  return least == Bytes{INT64_MAX} ? Bytes{} : least;
}

std::optional<Duration> LiveController::lacks_until(const MemoryOverTime& memory,
                                                    const Waiting& waiting, std::size_t pipeline,
                                                    Duration start) const {
  const auto& ranks = live_.pipelines[pipeline].pipeline.ranks;
  std::optional<Duration> last;
  for (std::size_t stage = 0; stage < ranks.size(); ++stage)
    if (const auto found = memory.last_shortage(
            ranks[stage], start, start + released_after(waiting),
            held_memory(model(waiting.model), waiting.request.tokens, static_cast<int>(stage))))
      last = std::max(last.value_or(found->until), found->until);
  return last;
}

std::optional<Duration> LiveController::earliest_of(FreeTime& free,
                                                    const std::optional<MemoryOverTime>& memory,
                                                    const Waiting& waiting, std::size_t pipeline,
                                                    Duration now, Duration limit) const {
  for (Duration from = now; from <= limit;) {
    const auto start = earliest_pass(free, model(waiting.model), live_.pipelines[pipeline].pipeline,
                                     waiting.whole, from, limit);
    if (!start || !memory) return start;
    const auto until = lacks_until(*memory, waiting, pipeline, *start);
    if (!until) return start;
    from = *until;
  }
  return std::nullopt;
}

}  // namespace longhaul::prefill
