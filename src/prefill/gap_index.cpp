#include "prefill/gap_index.hpp"

#include <algorithm>
#include <tuple>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::prefill {
namespace {

PipelineGap shifted(const PipelineGap& gap, Duration by) {
  return {gap.start + by, gap.end + by, gap.pipeline};
}

std::vector<std::int64_t> pipelines_by_first_rank(const ServingPipelines& serving, int gpus) {
  std::vector<std::int64_t> pipelines(to_size(gpus), -1);
  for (std::size_t i = 0; i < serving.pipelines.size(); ++i)
    pipelines[at(serving.pipelines[i].ranks.front())] = static_cast<std::int64_t>(i);
  return pipelines;
}

std::vector<PipelineGap> usable_openings(const IterationBubbles& iteration,
                                         const std::vector<std::int64_t>& pipeline_of,
                                         Duration guard, Duration least) {
  std::vector<PipelineGap> openings;
  for (const Bubble& bubble : iteration.bubbles) {
    const std::int64_t pipeline = pipeline_of[at(bubble.rank)];
    if (pipeline >= 0 && bubble.length() - guard >= least)
      openings.push_back({bubble.start, bubble.end - guard, static_cast<std::uint32_t>(pipeline)});
  }
  return openings;
}

/// Of the first stages' GPUs, with its guard.
Duration longest_bubble(const IterationBubbles& iteration,
                        const std::vector<std::int64_t>& pipeline_of) {
  Duration longest{};
  for (const Bubble& bubble : iteration.bubbles)
    if (pipeline_of[at(bubble.rank)] >= 0) longest = std::max(longest, bubble.length());
  return longest;
}

}  // namespace

bool comes_before(const PipelineGap& a, const PipelineGap& b, GapOrder order) {
  if (order == GapOrder::pipeline)
    return std::tie(a.start, a.pipeline) < std::tie(b.start, b.pipeline);
  return std::tie(a.start, a.end, a.pipeline) < std::tie(b.start, b.end, b.pipeline);
}

LaterGaps::LaterGaps(Duration period, std::int64_t iterations, std::vector<PipelineGap> openings,
                     Duration most, GapOrder order)
    : period_{period},
      most_{most},
      iterations_{iterations},
      order_{order},
      openings_{std::move(openings)} {
  std::ranges::sort(openings_,
                    [&](const auto& a, const auto& b) { return comes_before(a, b, order_); });
  const std::size_t count = std::max<std::size_t>(1, (openings_.size() + kGroup - 1) / kGroup);
  for (std::size_t i = 0; i < openings_.size(); i += kGroup) firsts_.push_back(openings_[i]);
  whole_ = {.longest = std::vector<Duration>(count),
            .taken = std::vector<std::uint64_t>(count),
            .rest = std::vector<std::vector<PipelineGap>>(count)};
  none_ = whole_;
  std::ranges::fill(none_.taken, ~std::uint64_t{0});
  for (std::size_t group = 0; group < count; ++group) set_longest(whole_, group);
}

/// The last group whose first opening is not after it; the first one before all of them.
std::size_t LaterGaps::group_of(const PipelineGap& gap) const {
  const auto later = std::ranges::upper_bound(
      firsts_, gap, [&](const auto& a, const auto& b) { return comes_before(a, b, order_); });
  const auto before = later - firsts_.begin();
  return before == 0 ? 0 : to_size(before - 1);
}

const LaterGaps::Iteration* LaterGaps::find(std::int64_t iteration) const {
  if (iteration - iteration_ < std::ssize(own_)) return &own_[to_size(iteration - iteration_)];
  return iteration < iterations_ ? &whole_ : nullptr;
}

LaterGaps::Iteration& LaterGaps::own(std::int64_t iteration) {
  while (std::ssize(own_) <= iteration - iteration_)
    own_.push_back(iteration_ + std::ssize(own_) < iterations_ ? whole_ : none_);
  return own_[to_size(iteration - iteration_)];
}

void LaterGaps::set_longest(Iteration& iteration, std::size_t group) const {
  Duration longest{};
  const std::size_t end = std::min(openings_.size(), (group + 1) * kGroup);
  for (std::size_t i = group * kGroup; i < end; ++i)
    if ((iteration.taken[group] >> (i % kGroup) & 1) == 0)
      longest = std::max(longest, openings_[i].length());
  for (const PipelineGap& gap : iteration.rest[group]) longest = std::max(longest, gap.length());
  const Duration before = std::exchange(iteration.longest[group], longest);
  if (longest >= iteration.longest_of_all)
    iteration.longest_of_all = longest;
  else if (before == iteration.longest_of_all)
    iteration.longest_of_all = *std::ranges::max_element(iteration.longest);
}

void LaterGaps::insert(const PipelineGap& gap) {
  const std::int64_t iteration = gap.start / period_;
  const PipelineGap inside = shifted(gap, -period_ * iteration);
  const std::size_t group = group_of(inside);
  Iteration& own_iteration = own(iteration);
  own_iteration.rest[group].push_back(inside);
  own_iteration.longest[group] = std::max(own_iteration.longest[group], gap.length());
  own_iteration.longest_of_all = std::max(own_iteration.longest_of_all, gap.length());
}

void LaterGaps::remove(const PipelineGap& gap) {
  const std::int64_t iteration = gap.start / period_;
  const PipelineGap inside = shifted(gap, -period_ * iteration);
  const std::size_t group = group_of(inside);
  Iteration& own_iteration = own(iteration);
  if (std::erase(own_iteration.rest[group], inside) == 0) {
    const auto begin = openings_.begin() + static_cast<std::ptrdiff_t>(group * kGroup);
    const auto opening = std::find(begin, openings_.end(), inside);
    LONGHAUL_ASSERT(opening != openings_.end(), "no gap of pipeline {} begins at {} ns",
                    gap.pipeline, gap.start.count());
    own_iteration.taken[group] |= std::uint64_t{1} << to_size(opening - begin);
  }
  if (gap.length() == own_iteration.longest[group]) set_longest(own_iteration, group);
}

std::optional<PipelineGap> LaterGaps::first_in(const Iteration& iteration, std::size_t group,
                                               const PipelineGap& after, Duration length) const {
  std::optional<PipelineGap> found;
  const auto begin = openings_.begin() + static_cast<std::ptrdiff_t>(group * kGroup);
  const auto end = begin + std::min<std::ptrdiff_t>(kGroup, openings_.end() - begin);
  const auto is_not_after = [&](const PipelineGap& opening) {
    return !comes_before(after, opening, order_);
  };
  for (auto i = std::partition_point(begin, end, is_not_after); i != end && !found; ++i)
    if (i->length() >= length && (iteration.taken[group] >> (i - begin) & 1) == 0) found = *i;
  for (const PipelineGap& gap : iteration.rest[group])
    if (gap.length() >= length && comes_before(after, gap, order_) &&
        (!found || comes_before(gap, *found, order_)))
      found = gap;
  return found;
}

std::optional<PipelineGap> LaterGaps::first_after(const PipelineGap& gap, Duration length,
                                                  Duration limit) const {
  for (std::int64_t number = std::max(iteration_, gap.start / period_);; ++number) {
    const Duration begin = period_ * number;
    const Iteration* const iteration = find(number);
    if (iteration == nullptr || begin > limit) return std::nullopt;
    if (iteration->longest_of_all < length) continue;
    const PipelineGap inside = shifted(gap, -begin);  // in later iterations before all gaps
    for (std::size_t group = group_of(inside); group < groups(); ++group) {
      if (iteration->longest[group] < length) continue;
      const auto found = first_in(*iteration, group, inside, length);
      if (!found) continue;
      if (begin + found->start > limit) return std::nullopt;
      return shifted(*found, begin);
    }
  }
}

/// What began longer ago than any gap lasts has ended.
void LaterGaps::skip_ended(Duration now) {
  const Duration ended = now - most_;
  if (ended < period_ * iteration_) return;
  const std::int64_t skipped = ended / period_ - iteration_;
  if (skipped > 0) {
    const std::int64_t own_skipped = std::min<std::int64_t>(skipped, std::ssize(own_));
    own_.erase(own_.begin(), own_.begin() + own_skipped);
    iteration_ += skipped;
    next_ = 0;
  }
  const auto begin = openings_.begin() + static_cast<std::ptrdiff_t>(next_);
  const Duration inside = ended - period_ * iteration_;
  if (begin == openings_.end() || begin->start > inside) return;
  next_ =
      to_size(std::ranges::upper_bound(begin, openings_.end(), inside, {}, &PipelineGap::start) -
              openings_.begin());
}

/// Of iteration_: those that begin from the last call on by `now`.
void LaterGaps::open_iteration(Duration now, std::vector<PipelineGap>& begun) {
  const Duration begin = period_ * iteration_;
  const Iteration* const iteration = find(iteration_);
  std::size_t group = opened_group();
  for (; next_ < openings_.size() && begin + openings_[next_].start <= now; ++next_)
    if (iteration != nullptr && (iteration->taken[next_ / kGroup] >> (next_ % kGroup) & 1) == 0)
      begun.push_back(shifted(openings_[next_], begin));
  if (own_.empty()) return;
  for (; group <= opened_group(); ++group)
    std::erase_if(own_.front().rest[group], [&](const PipelineGap& gap) {
      if (begin + gap.start > now) return false;
      begun.push_back(shifted(gap, begin));
      return true;
    });
}

void LaterGaps::advance(Duration now, std::vector<PipelineGap>& begun) {
  skip_ended(now);
  for (;;) {
    open_iteration(now, begun);
    if (now < period_ * (iteration_ + 1)) return;
    if (!own_.empty()) own_.pop_front();
    ++iteration_;
    next_ = 0;
  }
}

OpenGaps::OpenGaps(std::size_t pipelines, GapOrder order)
    : order_{order},
      until_(pipelines, Duration::min()),
      group_until_(pipelines / kGroup + 1, Duration::min()) {}

void OpenGaps::open(std::uint32_t pipeline, Duration end) {
  Duration& until = until_[pipeline];
  if (end <= until) return;
  if (order_ == GapOrder::end) {
    by_end_.erase({until, pipeline});
    by_end_.insert({end, pipeline});
  }
  until = end;
  Duration& group = group_until_[pipeline / kGroup];
  group = std::max(group, end);
}

void OpenGaps::close(std::uint32_t pipeline, Duration end) {
  if (until_[pipeline] != end) return;
  until_[pipeline] = Duration::min();
  if (order_ == GapOrder::end) by_end_.erase({end, pipeline});
}

void OpenGaps::forget(Duration now) {
  for (auto first = by_end_.begin(); first != by_end_.end() && first->first <= now;) {
    until_[first->second] = Duration::min();
    first = by_end_.erase(first);
  }
}

std::optional<PipelineGap> OpenGaps::next_pipeline(std::size_t first, Duration until) {
  for (std::size_t group = first / kGroup; group < group_until_.size(); ++group) {
    if (group_until_[group] < until) continue;
    const std::size_t begin = group * kGroup, end = std::min(until_.size(), begin + kGroup);
    Duration latest = Duration::min();
    for (std::size_t i = begin; i < end; ++i) {
      if (i >= first && until_[i] >= until)
        return PipelineGap{{}, until_[i], static_cast<std::uint32_t>(i)};
      latest = std::max(latest, until_[i]);
    }
    group_until_[group] = latest;
  }
  return std::nullopt;
}

std::optional<PipelineGap> OpenGaps::next(const std::optional<PipelineGap>& last, Duration until) {
  if (order_ == GapOrder::pipeline)
    return next_pipeline(last ? std::size_t{last->pipeline} + 1 : 0, until);
  const auto found =
      last ? by_end_.upper_bound({last->end, last->pipeline}) : by_end_.lower_bound({until, 0});
  if (found == by_end_.end()) return std::nullopt;
  return PipelineGap{{}, found->first, found->second};
}

GapIndex::GapIndex(const IterationBubbles& iteration, const ServingPipelines& serving,
                   Duration guard, Duration least, const FillRange& range, GapOrder order)
    : guard_{guard},
      least_{least},
      order_{order},
      pipeline_of_{pipelines_by_first_rank(serving, iteration.gpus)},
      later_{iteration.period, range.iterations,
             usable_openings(iteration, pipeline_of_, guard, least),
             longest_bubble(iteration, pipeline_of_), order},
      open_{serving.pipelines.size(), order} {
  if (!range.from_zero) return;
  for (const Bubble& bubble : iteration.bubbles) {
    const std::int64_t pipeline = pipeline_of_[at(bubble.rank)];
    if (pipeline < 0 || bubble.end <= iteration.period) continue;
    insert(usable(static_cast<std::uint32_t>(pipeline), {{}, bubble.end - iteration.period}));
  }
}

PipelineGap GapIndex::usable(std::uint32_t pipeline, const FreeGap& gap) const {
  return {gap.start, gap.ends_bubble ? gap.end - guard_ : gap.end, pipeline};
}

void GapIndex::insert(const PipelineGap& gap) {
  if (gap.length() < least_) return;
  if (gap.start <= now_)
    open_.open(gap.pipeline, gap.end);
  else
    later_.insert(gap);
}

void GapIndex::remove(const PipelineGap& gap) {
  if (gap.length() < least_) return;
  if (gap.start <= now_)
    open_.close(gap.pipeline, gap.end);
  else
    later_.remove(gap);
}

void GapIndex::advance(Duration now) {
  if (now <= now_) return;
  now_ = now;
  begun_.clear();
  later_.advance(now, begun_);
  for (const PipelineGap& gap : begun_) open_.open(gap.pipeline, gap.end);
  open_.forget(now);
}

void GapIndex::replace(std::int32_t rank, const SplitGap& split) {
  const std::int64_t number = pipeline_of_[at(rank)];
  if (number < 0) return;
  const auto pipeline = static_cast<std::uint32_t>(number);
  remove(usable(pipeline, split.whole));
  if (split.before) insert(usable(pipeline, *split.before));
  if (split.after) insert(usable(pipeline, *split.after));
}

GapIndex::Search::Search(GapIndex& index, Duration from, Duration length, Duration limit)
    : index_{index},
      from_{from},
      length_{length},
      limit_{limit},
      later_{from, Duration::max(), UINT32_MAX} {
  if (from_ > index_.now_) find_window();
}

/// No gap that began earlier than any gap lasts reaches beyond `from` and the length.
void GapIndex::Search::find_window() {
  const Duration end = from_ + length_;
  const Duration begin = std::max(index_.now_, end - index_.later_.most() - Duration{1});
  PipelineGap last{begin, Duration::max(), UINT32_MAX};
  while (const auto gap = index_.later_.first_after(last, length_, from_)) {
    if (gap->end >= end) window_.push_back({from_, gap->end, gap->pipeline});
    last = *gap;
  }
  std::ranges::sort(
      window_, [&](const auto& a, const auto& b) { return comes_before(a, b, index_.order_); });
}

std::optional<PipelineGap> GapIndex::Search::next() {
  const bool in_window = in_window_ < window_.size();
  if (!open_is_over_) {
    auto open = index_.open_.next(open_, from_ + length_);
    if (open) open->start = from_;
    open_is_over_ = !open;
    if (open && (!in_window || comes_before(*open, window_[in_window_], index_.order_))) {
      open_ = open;
      return open;
    }
  }
  if (in_window) return window_[in_window_++];
  const auto later = index_.later_.first_after(later_, length_, limit_);
  if (later) later_ = *later;
  return later;
}

}  // namespace longhaul::prefill
