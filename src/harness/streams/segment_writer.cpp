#include "harness/streams/segment_writer.hpp"

namespace longhaul::harness {
namespace {

/// The library takes one caller at a time, and ranks may be threads of this process.
std::mutex& one_at_a_time() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

SegmentWriter::SegmentWriter(std::filesystem::path directory)
    : directory_{std::move(directory)}, thread_{[this] { work(); }} {}

SegmentWriter::~SegmentWriter() {
  {
    const std::scoped_lock lock{mutex_};
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void SegmentWriter::write(const trace::SegmentKey& key, Timeline rows) {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [this] { return waiting_.size() < kMost || problem_; });
  require_written();
  waiting_.emplace_back(key, std::move(rows));
  changed_.notify_all();
}

void SegmentWriter::finish() {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [this] { return (waiting_.empty() && !writing_) || problem_; });
  require_written();
}

void SegmentWriter::require_written() {
  if (problem_) std::rethrow_exception(problem_);
}

void SegmentWriter::work() {
  std::unique_lock lock{mutex_};
  for (;;) {
    changed_.wait(lock, [this] { return !waiting_.empty() || over_; });
    if (waiting_.empty() || problem_) return;
    const auto [key, rows] = std::move(waiting_.front());
    waiting_.pop_front();
    writing_ = true;
    lock.unlock();
    std::exception_ptr problem;
    try {
      const std::scoped_lock alone{one_at_a_time()};
      trace::write_segment(directory_, key, rows);
    } catch (...) {
      problem = std::current_exception();
    }
    lock.lock();
    writing_ = false;
    problem_ = problem;
    changed_.notify_all();
  }
}

}  // namespace longhaul::harness
