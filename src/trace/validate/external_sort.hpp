#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

namespace longhaul::trace {

/// A file without a name in the directory for temporary files (TMPDIR): records that do not fit
/// into memory wait there, and the system removes it however this process ends.
class SpillFile {
public:
  /// Throws Error if that directory takes no files.
  SpillFile();
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  /// Where the bytes lie from now on. Throws Error if there is no space.
  std::uint64_t append(std::span<const std::byte> bytes);
  void read(std::uint64_t offset, std::span<std::byte> bytes) const;

private:
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

/// Sorts more records than fit into memory: what exceeds `memory_bytes` waits in a file, in sorted
/// runs. Push all, then take them in order; after the last one it is empty and takes more. `Less`
/// should tell any two records apart, for the order of equal ones is not kept.
template <typename Record, typename Less>
class ExternalSort {
  static_assert(std::is_trivially_copyable_v<Record>);

public:
  explicit ExternalSort(std::size_t memory_bytes)
      : most_{std::max<std::size_t>(memory_bytes / sizeof(Record), 2)} {}

  void push(const Record& record) {
    if (records_.size() == most_) spill();
    if (records_.size() == records_.capacity())  // a vector left alone would grow beyond the most
      records_.reserve(std::min(most_, std::max<std::size_t>(2 * records_.size(), 64)));
    records_.push_back(record);
  }

  /// The next record in order; null after the last one. It stays until the next call.
  [[nodiscard]] const Record* take() {
    if (!taking_) begin_taking();
    if (runs_.empty()) {
      if (next_ < records_.size()) return &records_[next_++];
      clear();
      return nullptr;
    }
    if (taken_) advance_first();
    if (heap_.empty()) {
      clear();
      return nullptr;
    }
    taken_ = true;
    return &runs_[heap_.front()].current();
  }

private:
  /// One sorted run in the file, read piece by piece.
  struct Run {
    std::uint64_t offset = 0;
    std::size_t left = 0;  ///< records in the file
    std::vector<Record> piece;
    std::size_t at = 0;
    [[nodiscard]] const Record& current() const { return piece[at]; }
  };

  void spill() {
    std::ranges::sort(records_, Less{});
    if (!file_) file_.emplace();
    runs_.push_back({file_->append(std::as_bytes(std::span{records_})), records_.size(), {}, 0});
    records_.clear();
  }

  void begin_taking() {
    taking_ = true;
    if (runs_.empty()) {
      std::ranges::sort(records_, Less{});
      return;
    }
    if (!records_.empty()) spill();
    records_ = {};
    const std::size_t piece = std::max<std::size_t>(most_ / runs_.size(), 1);
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      runs_[i].piece.reserve(std::min(piece, runs_[i].left));
      refill(runs_[i]);
      heap_.push_back(i);
    }
    std::ranges::make_heap(heap_, later());
  }

  /// True if there was something left.
  bool refill(Run& run) {
    const std::size_t count = std::min(run.piece.capacity(), run.left);
    if (count == 0) return false;
    run.piece.resize(count);
    file_->read(run.offset, std::as_writable_bytes(std::span{run.piece}));
    run.offset += count * sizeof(Record);
    run.left -= count;
    run.at = 0;
    return true;
  }

  void advance_first() {
    taken_ = false;
    std::ranges::pop_heap(heap_, later());
    Run& run = runs_[heap_.back()];
    if (++run.at == run.piece.size() && !refill(run)) return heap_.pop_back();
    std::ranges::push_heap(heap_, later());
  }

  [[nodiscard]] auto later() const {
    return [this](std::size_t a, std::size_t b) {
      return Less{}(runs_[b].current(), runs_[a].current());
    };
  }

  void clear() {
    records_.clear();
    runs_.clear();
    heap_.clear();
    file_.reset();
    next_ = 0;
    taking_ = taken_ = false;
  }

  std::size_t most_;
  std::vector<Record> records_;
  std::optional<SpillFile> file_;
  std::vector<Run> runs_;
  std::vector<std::size_t> heap_;  ///< runs, the one of the least record first
  std::size_t next_ = 0;
  bool taking_ = false, taken_ = false;
};

}  // namespace longhaul::trace
