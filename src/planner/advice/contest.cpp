#include "planner/advice/contest.hpp"

#include <algorithm>
#include <utility>

namespace longhaul::planner {
namespace {

/// Entries of a combination of ideas that are searched further.
constexpr std::size_t kSearched = 2;
constexpr double kShareOfSchedules = 0.3;

}  // namespace

Contest::Contest(const AdviceOptions& options, IdeaPool& pool, double most_entries)
    : options_{options}, pool_{pool}, most_entries_{most_entries}, begin_{now()} {}

ScenarioAdviser Contest::adviser_of(std::size_t number) {
  const Entry& entry = entries_[number];
  return {*entry.scenario,
          options_,
          pool_,
          {static_cast<int>(number), entry.base, entry.score, entry.longest}};
}

bool Contest::must_stop() {
  if (options_.stopped && options_.stopped()) pool_.stop();
  return pool_.is_stopped();
}

Duration Contest::time_left() const {
  return std::max(Duration::zero(), options_.time - (now() - begin_));
}

void Contest::tell(int steps) {
  steps_ += steps;
  const int all = static_cast<int>(entries_.size() + further_.size());
  if (const AdvisedPlan* const best = pool_.best(); best && options_.after_step)
    options_.after_step(std::min(steps_, all), all, *best);
}

void Contest::try_schedules() {
  for (; schedules_tried_ < entries_.size(); ++schedules_tried_) {
    if (pool_.best() != nullptr && must_stop()) return;
    ScenarioAdviser adviser = adviser_of(schedules_tried_);
    for (const std::string& each : entries_[schedules_tried_].first_schedules)
      adviser.try_schedule(each);
    tell(0);
    adviser.try_candidates(scaled(options_.time, kShareOfSchedules / most_entries_));
    tell(1);
  }
}

void Contest::tell_more(std::size_t number, const std::string& schedule, bool is_searched) {
  Entry& entry = entries_[number];
  entry.is_searched |= is_searched;
  if (number < schedules_tried_)
    adviser_of(number).try_schedule(schedule);
  else
    entry.first_schedules.push_back(schedule);
}

void Contest::search_further(const WithTurns& with_turns) {
  const std::size_t all = entries_.size();  // without those that take turns
  for (std::size_t number = 0; number < all; ++number)
    adviser_of(number).try_methods(time_left() / static_cast<std::int64_t>(all), Searched::no);
  for (std::size_t number = 0; number < all; ++number)
    if (entries_[number].is_searched || rank_of(number) < kSearched) further_.push_back(number);
  std::ranges::stable_sort(further_, {}, [&](std::size_t number) { return standing_of(number); });
  std::size_t left = further_.size();
  for (const std::size_t number : further_) {
    if (pool_.best() != nullptr && must_stop()) return;
    const Duration time = time_left() / static_cast<std::int64_t>(left--);
    ScenarioAdviser adviser = adviser_of(number);
    if (const auto refusal = adviser.search_orders(time); refusal && why_none_.empty())
      why_none_ = refusal->reason;
    const bool has_cells = entries_[number].scenario->parallel.cell.value_or(1) > 1;
    if (has_cells) adviser.try_turns(time);
    adviser.try_overlaps(time);
    adviser.try_methods(time, Searched::yes);
    if (!has_cells)
      try_turns(with_turns(number), time_left() / static_cast<std::int64_t>(left + 1));
    tell(1);
  }
}

void Contest::try_turns(std::optional<Entry> entry, Duration time) {
  if (!entry) return;
  add(*std::move(entry));
  ScenarioAdviser adviser = adviser_of(entries_.size() - 1);
  for (const std::string& each : entries_.back().first_schedules) adviser.try_schedule(each);
  adviser.try_candidates(scaled(time, kShareOfSchedules));
  adviser.try_turns(time);
  adviser.try_overlaps(time, only(Idea::turns));
}

std::size_t Contest::rank_of(std::size_t number) const {
  std::size_t better = 0;
  for (std::size_t other = 0; other < entries_.size(); ++other)
    if (entries_[other].base == entries_[number].base &&
        std::pair{standing_of(other), other} < std::pair{standing_of(number), number})
      ++better;
  return better;
}

}  // namespace longhaul::planner
