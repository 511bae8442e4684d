#include "trace/merge/merge_rows.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "trace/timeline/columns.hpp"

namespace longhaul::trace {
namespace {

/// In memory at a time, of all segments whose ops interleave.
constexpr std::size_t kMostRows = std::size_t{1} << 21;
/// Open at a time; systems allow a process 1,024 and more.
constexpr std::size_t kMostOpen = 128;

/// How many segments have rows left at once.
std::size_t most_at_once(const auto& sources) {
  std::vector<std::pair<std::int64_t, int>> ends;  // a segment begins (1) or has ended (0)
  for (const auto& source : sources) {
    ends.emplace_back(source.cursor.index().first_op, 1);
    ends.emplace_back(source.cursor.index().last_op + 1, 0);
  }
  std::ranges::sort(ends);
  std::size_t now = 0, most = 0;
  for (const auto& [op, begins] : ends) {
    now = begins == 1 ? now + 1 : now - 1;
    most = std::max(most, now);
  }
  return most;
}

SegmentCursor::Reading reading_of(std::size_t at_once) {
  const std::size_t rows = kMostRows / std::max<std::size_t>(at_once, 1);
  return {std::clamp<std::size_t>(rows, 64, hdf5::kSegmentChunkRows), at_once <= kMostOpen};
}

}  // namespace

Merger::Merger(const Timeline& predicted_names, std::span<const RankClock> clocks,
               MergeTarget& target)
    : clocks_{clocks},
      target_{target},
      names_{predicted_names.schedules,
             predicted_names.datacenters,
             predicted_names.lanes,
             predicted_names.resources,
             predicted_names.collectives,
             predicted_names.operators,
             {},
             {}},
      planned_schedules_{names_.schedules.size()} {
  for (const NameColumn& table : name_columns()) tables_.emplace_back(names_.*table.names);
}

void Merger::add(const IterationKey& key, const std::map<int, SegmentFile>& files,
                 std::int64_t ranks) {
  std::vector<std::size_t> sizes;
  for (const NameColumn& table : name_columns()) sizes.push_back((names_.*table.names).size());
  const auto places = schedule_of_position_;
  target_.keep_rows();
  try {
    merge(key, files, ranks);
  } catch (const DamagedSegment&) {
    ++left_out_;
    target_.drop_rows();
    for (std::size_t t = 0; t < tables_.size(); ++t) tables_[t].shrink_to(sizes[t]);
    schedule_of_position_ = places;
  }
}

void Merger::merge(const IterationKey& key, const std::map<int, SegmentFile>& files,
                   std::int64_t ranks) {
  std::vector<Source> sources;
  std::vector<bool> covered(to_size(ranks), false);
  std::int64_t origin_ns = SegmentIndex::kNoStart;
  for (const auto& [lowest_rank, file] : files) {
    if (lowest_rank >= ranks) continue;
    const SegmentCursor& cursor = sources.emplace_back(SegmentCursor{file}).cursor;
    const SegmentIndex& index = cursor.index();
    for (std::size_t i = 0; i < index.ranks.size(); ++i) {
      const std::int64_t rank = index.ranks[i];
      if (rank < 0 || rank >= ranks || covered[at(rank)]) throw DamagedSegment{};
      covered[at(rank)] = true;
      if (index.first_start_ns[i] != SegmentIndex::kNoStart)
        origin_ns = std::min(origin_ns, moved(rank, index.first_start_ns[i]));
    }
  }
  if (!std::ranges::all_of(covered, std::identity{})) throw DamagedSegment{};
  std::erase_if(sources, [](const Source& source) { return source.cursor.is_done(); });
  merge(key, sources, origin_ns);
}

/// The segment with the lowest op hands over rows up to the next one's. Where ops of ranks lie
/// together, as lowering makes them, each segment is opened when the one before is done.
void Merger::merge(const IterationKey& key, std::vector<Source>& sources, std::int64_t origin_ns) {
  const SegmentCursor::Reading reading = reading_of(most_at_once(sources));
  std::vector<Source*> heap;
  for (Source& source : sources) heap.push_back(&source);
  const auto later = [](const Source* a, const Source* b) {
    return a->cursor.next_op() > b->cursor.next_op();
  };
  std::ranges::make_heap(heap, later);
  while (!heap.empty()) {
    std::ranges::pop_heap(heap, later);
    Source& source = *heap.back();
    heap.pop_back();
    if (!source.cursor.is_begun()) begin(key, source, reading);
    source.cursor.fill();
    const std::int64_t limit = heap.empty() ? INT64_MAX : heap.front()->cursor.next_op();
    if (source.cursor.next_op() <= limit) {
      const auto rows = source.cursor.take_below(limit);
      move(rows, source, origin_ns);
      target_.append(rows);
    }
    if (source.cursor.is_done()) {
      source.cursor.release();
    } else {
      heap.push_back(&source);
      std::ranges::push_heap(heap, later);
    }
  }
}

void Merger::begin(const IterationKey& key, Source& source, const SegmentCursor::Reading& reading) {
  source.cursor.begin(reading);
  const Timeline& names = source.cursor.names();
  for (std::size_t t = 0; t < name_columns().size(); ++t) {
    const NameColumn& table = name_columns()[t];
    auto& translation = source.translations.emplace_back();
    if (table.names == &Timeline::schedules) continue;
    for (const std::string& name : names.*table.names)
      translation.push_back(tables_[t].index_of(name));
  }
  source.schedule = schedule_of(key.schedule, names.schedules[at(source.cursor.schedule())]);
}

/// Rows as the merged timeline has them: its names, and times from the iteration's first op. An op
/// was ready no earlier than that.
void Merger::move(std::span<TimelineRow> rows, const Source& source, std::int64_t origin_ns) const {
  const auto from_origin = [&](const TimelineRow& row, std::int64_t stamp_ns) {
    return std::max<std::int64_t>(moved(row.rank, stamp_ns) - origin_ns, 0);
  };
  for (TimelineRow& row : rows) {
    for (std::size_t t = 0; t < name_columns().size(); ++t) {
      std::int32_t& index = row.*name_columns()[t].index;
      const auto& translation = source.translations[t];
      if (!translation.empty() && index >= 0) index = translation[at(index)];
    }
    row.schedule = source.schedule;
    row.ready_ns = from_origin(row, row.ready_ns);
    row.start_ns = from_origin(row, row.start_ns);
    row.end_ns = from_origin(row, row.end_ns);
  }
}

std::int64_t Merger::moved(std::int64_t rank, std::int64_t stamp_ns) const {
  return clocks_.empty() ? stamp_ns : clocks_[at(rank)].moved(stamp_ns);
}

/// A schedule's place in the merged table is its position in the run's list, where the prediction
/// holds that list; two of one name stay apart.
std::int32_t Merger::schedule_of(int position, const std::string& name) {
  const auto [at, is_new] = schedule_of_position_.try_emplace(position, 0);
  if (is_new) at->second = place(position, name);
  return at->second;
}

std::int32_t Merger::place(int position, const std::string& name) {
  auto& names = names_.schedules;
  const auto here = at(position);
  if (here < planned_schedules_ && names[here] == name) return position;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto index = static_cast<std::int32_t>(i);
    const bool taken = std::ranges::any_of(schedule_of_position_, [&](const auto& used) {
      return used.first != position && used.second == index;
    });
    if (names[i] == name && !taken) return index;
  }
  names.push_back(name);
  return static_cast<std::int32_t>(names.size() - 1);
}

}  // namespace longhaul::trace
