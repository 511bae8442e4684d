#include "trace/merge/segment_cursor.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "trace/file/trace_reader.hpp"
#include "trace/hdf5/hdf5_file.hpp"

namespace longhaul::trace {
namespace {

/// Errors of HDF5 and of our own checks count as the same here.
template <typename Step>
auto undamaged(Step&& step) {
  try {
    return step();
  } catch (const Error&) {
    throw DamagedSegment{};
  }
}

hdf5::TimelineReader::Format format_of(hdf5::Id file) {
  return {hdf5::read_schema(file), hdf5::EmptyColumns::are_left_out};
}

/// A segment of a version of this program that wrote no index holds the rows of one rank.
SegmentIndex index_by_reading(hdf5::Id file, const SegmentName& name, std::uint64_t file_bytes) {
  Diagnostics findings;
  const hdf5::TimelineReader reader{file, "measured", format_of(file), file_bytes, findings};
  Timeline timeline;
  hdf5::read_all(reader, timeline, findings);
  const bool of_rank = std::ranges::all_of(
      timeline.rows, [&](const TimelineRow& row) { return row.rank == name.lowest_rank; });
  if (!findings.empty() || !timeline.left_out.empty() || !of_rank) throw DamagedSegment{};
  return index_of(timeline.rows, {name.lowest_rank});
}

SegmentIndex index_of_file(const SegmentFile& segment) {
  return undamaged([&] {
    const hdf5::Handle file = hdf5::open_file(segment.path);
    const std::uint64_t file_bytes = hdf5::size_of_file(segment.path);
    (void)hdf5::read_schema(file.get());
    return has_index(file.get()) ? read_index(file.get(), file_bytes)
                                 : index_by_reading(file.get(), segment.name, file_bytes);
  });
}

}  // namespace

SegmentCursor::SegmentCursor(SegmentFile file)
    : file_{std::move(file)}, index_{index_of_file(file_)} {
  if (std::cmp_not_equal(index_.ranks.size(), file_.name.ranks) ||
      index_.ranks.front() != file_.name.lowest_rank)
    throw DamagedSegment{};
  next_op_ = index_.first_op;
  rows_ = index_.last_op < index_.first_op ? 0 : 1;  // how many is known once it is open
  first_starts_.assign(index_.ranks.size(), SegmentIndex::kNoStart);
}

void SegmentCursor::begin(const Reading& reading) {
  reading_ = reading;
  open();
  names_ = reader_->names();
  rows_ = reader_->rows();
  if (rows_ == 0) throw DamagedSegment{};  // it says that it has some
  fill();
  if (piece_.front().op != index_.first_op) throw DamagedSegment{};
}

std::span<TimelineRow> SegmentCursor::take_below(std::int64_t limit) {
  const auto left = std::span{piece_}.subspan(at_);
  const auto end = std::ranges::lower_bound(left, limit, {}, &TimelineRow::op);
  const auto count = to_size(end - left.begin());
  const auto taken = left.first(std::max<std::size_t>(1, count));
  at_ += taken.size();
  taken_ += taken.size();
  next_op_ = at_ < piece_.size() ? piece_[at_].op : taken.back().op;
  return taken;
}

void SegmentCursor::open() {
  if (reader_) return;
  undamaged([&] {
    Diagnostics findings;
    handle_.emplace(hdf5::open_file(file_.path));
    reader_.emplace(handle_->get(), "measured", format_of(handle_->get()),
                    hdf5::size_of_file(file_.path), findings);
    // A merge that leaves rows out would make a trace that says nothing of them.
    if (!findings.empty() || !reader_->names().left_out.empty()) throw DamagedSegment{};
  });
}

void SegmentCursor::close() {
  reader_.reset();
  handle_.reset();
}

void SegmentCursor::fill() {
  if (at_ < piece_.size()) return;
  open();
  piece_.resize(to_size(std::min<std::uint64_t>(reading_.rows, rows_ - read_)));
  undamaged([&] { reader_->read(read_, piece_); });
  read_ += piece_.size();
  at_ = 0;
  check_piece();
  next_op_ = piece_.front().op;
  if (read_ == rows_) check_ends();
  if (read_ == rows_ || !reading_.stays_open) close();
}

void SegmentCursor::check_piece() {
  if (schedule_ < 0) schedule_ = piece_.front().schedule;
  for (const TimelineRow& row : piece_) {
    const auto rank = std::ranges::lower_bound(index_.ranks, row.rank);
    if (!is_sound(names_, row, schedule_, file_.name.key.iteration) || rank == index_.ranks.end() ||
        *rank != row.rank || row.op < last_op_read_)
      throw DamagedSegment{};
    last_op_read_ = row.op;
    if (!has_run(row)) continue;
    auto& first = first_starts_[at(rank - index_.ranks.begin())];
    first = std::min(first, row.start_ns);
  }
}

/// The index was right: the iteration's origin was found by it.
void SegmentCursor::check_ends() const {
  if (last_op_read_ != index_.last_op || first_starts_ != index_.first_start_ns)
    throw DamagedSegment{};
}

}  // namespace longhaul::trace
