#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <filesystem>
#include <mutex>
#include <thread>
#include <utility>

#include "trace/file/trace_file.hpp"

namespace longhaul::harness {

/// Writes segments of a run on a thread of its own, in order, so that a rank in the middle of a
/// stream does not wait for the disk. Where the disk is slower than the stream it waits all the
/// same: kMost segments wait at most, so that memory does not grow.
class SegmentWriter {
public:
  static constexpr std::size_t kMost = 256;

  explicit SegmentWriter(std::filesystem::path directory);
  /// Writes what waits.
  ~SegmentWriter();
  SegmentWriter(const SegmentWriter&) = delete;
  SegmentWriter& operator=(const SegmentWriter&) = delete;

  /// Throws the Error of an earlier segment that could not be written.
  void write(const trace::SegmentKey& key, Timeline rows);
  /// All are on the disk when it returns. Throws likewise.
  void finish();

private:
  void work();
  void require_written();

  std::filesystem::path directory_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<trace::SegmentKey, Timeline>> waiting_;
  bool writing_ = false, over_ = false;
  std::exception_ptr problem_;
  std::thread thread_;
};

}  // namespace longhaul::harness
