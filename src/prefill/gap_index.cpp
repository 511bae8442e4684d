#include "prefill/gap_index.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace longhaul::prefill {

GapIndex::GapIndex(const IterationBubbles& iteration, const std::vector<std::int32_t>& ranks,
                   Duration guard, Duration least)
    : period_{iteration.period},
      least_{least},
      open_until_(ranks.size(), Duration::min()),
      group_until_(ranks.size() / kGroup + 1, Duration::min()) {
  std::vector<std::int64_t> pipeline_of(to_size(iteration.gpus), -1);
  for (std::size_t i = 0; i < ranks.size(); ++i)
    pipeline_of[at(ranks[i])] = static_cast<std::int64_t>(i);
  for (const Bubble& bubble : iteration.bubbles) {
    const std::int64_t pipeline = pipeline_of[at(bubble.rank)];
    const Duration length = bubble.length() - guard;
    if (pipeline < 0 || length < least_) continue;
    const auto own = static_cast<std::uint32_t>(pipeline);
    openings_.push_back({bubble.start, length, own});
    longest_ = std::max(longest_, length);
    // Around the begin of iteration 0: cut there.
    if (bubble.end - guard > period_) open(own, bubble.end - guard - period_);
  }
  std::ranges::sort(openings_, [](const Opening& a, const Opening& b) {
    return std::pair{a.start, a.pipeline} < std::pair{b.start, b.pipeline};
  });
  longest_of_group_.resize(openings_.size() / kGroup + 1);
  for (std::size_t i = 0; i < openings_.size(); ++i)
    longest_of_group_[i / kGroup] = std::max(longest_of_group_[i / kGroup], openings_[i].length);
}

inline void GapIndex::open(std::uint32_t pipeline, Duration end) {
  // What is left of an earlier bubble may come after a later one has opened: that one counts.
  open_until_[pipeline] = std::max(open_until_[pipeline], end);
  Duration& group = group_until_[pipeline / kGroup];
  group = std::max(group, end);
}

void GapIndex::advance(Duration now) {
  while (!openings_.empty()) {
    const Opening& opening = openings_[next_];
    const Duration start = period_ * iteration_ + opening.start;
    if (start > now) break;
    ++opened_;
    if (opening.free_from <= iteration_) open(opening.pipeline, start + opening.length);
    if (++next_ == openings_.size()) {
      next_ = 0;
      ++iteration_;
    }
  }
  while (!remainders_.empty() && remainders_.begin()->start <= now) {
    open(remainders_.begin()->pipeline, remainders_.begin()->end);
    remainders_.erase(remainders_.begin());
  }
}

std::optional<std::size_t> GapIndex::first_in_group(std::size_t group, Duration until) {
  const std::size_t end = std::min(open_until_.size(), (group + 1) * kGroup);
  Duration latest = Duration::min();
  for (std::size_t i = group * kGroup; i < end; ++i) {
    if (open_until_[i] >= until) return i;
    latest = std::max(latest, open_until_[i]);
  }
  group_until_[group] = latest;
  return std::nullopt;
}

std::optional<std::size_t> GapIndex::first_open(Duration until) {
  for (std::size_t group = 0; group < group_until_.size(); ++group)
    if (group_until_[group] >= until)
      if (const auto found = first_in_group(group, until)) return found;
  return std::nullopt;
}

void GapIndex::keep_rest(std::uint32_t pipeline, Duration start, Duration end) {
  if (end - start >= least_) remainders_.insert({start, pipeline, end});
}

/// In a gap that begins later than now: the earliest of what is left of bubbles, and of bubbles.
std::optional<GapIndex::Place> GapIndex::place_later(Duration length) {
  auto rest = remainders_.begin();
  while (rest != remainders_.end() && rest->end - rest->start < length) ++rest;
  const bool has_rest = rest != remainders_.end();
  std::size_t i = next_;
  for (std::int64_t iteration = iteration_;; i = 0, ++iteration)
    for (; i < openings_.size(); ++i) {
      if (longest_of_group_[i / kGroup] < length) {
        i = (i / kGroup + 1) * kGroup - 1;
        continue;
      }
      Opening& opening = openings_[i];
      const Duration start = period_ * iteration + opening.start;
      if (has_rest && std::pair{rest->start, rest->pipeline} < std::pair{start, opening.pipeline}) {
        const Remainder taken = *rest;
        remainders_.erase(rest);
        keep_rest(taken.pipeline, taken.start + length, taken.end);
        return Place{taken.pipeline, taken.start};
      }
      if (opening.length < length || opening.free_from > iteration) continue;
      opening.free_from = iteration + 1;
      keep_rest(opening.pipeline, start + length, start + opening.length);
      return Place{opening.pipeline, start};
    }
}

std::optional<GapIndex::Place> GapIndex::place(Duration arrival, Duration length) {
  advance(arrival);
  if (const auto found = first_open(arrival + length)) {
    const auto pipeline = static_cast<std::uint32_t>(*found);
    const Duration end = open_until_[pipeline];
    open_until_[pipeline] = Duration::min();
    keep_rest(pipeline, arrival + length, end);
    return Place{pipeline, arrival};
  }
  if (length > longest_) return std::nullopt;
  return place_later(length);
}

}  // namespace longhaul::prefill
