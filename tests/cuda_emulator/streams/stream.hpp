#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "cuda_runtime_api.h"

namespace longhaul::on_host {

/// An event, or the end of a piece of work: the record() that it was last asked for, and the one
/// that has been reached. It may lie in memory that processes share.
struct Mark {
  std::atomic<std::uint32_t> recorded{0}, reached{0};
  std::atomic<std::int64_t> stamp_ns{0};  ///< of the last one reached

  [[nodiscard]] bool has_reached(std::uint32_t count) const {
    return static_cast<std::int32_t>(reached.load() - count) >= 0;
  }
  void reach(std::uint32_t count);
  void wait(std::uint32_t count) const;
};

[[nodiscard]] std::int64_t monotonic_ns();

/// LONGHAUL_ON_HOST_DELAYS, a seed: streams dawdle before some of their work, so that what does not
/// wait for it finds that out. Unset or 0: they do not.
void dawdle();

/// A stream: work in order on a thread of its own. Work that fails leaves the error that stays, and
/// from then on only marks are reached, so that no waiter hangs.
class Queue {
public:
  enum class Kind : std::uint8_t { blocking, non_blocking };
  [[nodiscard]] static std::shared_ptr<Queue> make(int device, Kind kind);

  void put(std::function<void()> work);
  /// Reached even after an error.
  void put_mark(std::shared_ptr<Mark> mark, std::uint32_t count);
  /// Waits after the work that is there now.
  void put_wait(std::shared_ptr<const Mark> mark, std::uint32_t count);
  [[nodiscard]] bool idle();
  void drain();
  [[nodiscard]] int device() const { return device_; }
  [[nodiscard]] Kind kind() const { return kind_; }
  /// Its thread ends once the work is done.
  void close();

private:
  Queue(int device, Kind kind) : device_{device}, kind_{kind} {}
  void work();
  void put_any(std::function<void()> task);

  int device_;
  Kind kind_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool busy_ = false, closed_ = false;
};

/// The queue of a handle (nullptr: the current device's default stream), or nullptr for a
/// handle that is none. Work of the default stream and of blocking streams waits for each other.
[[nodiscard]] std::shared_ptr<Queue> queue_of(cudaStream_t stream);
/// Waits for all streams of a device.
void drain_device(int device);

}  // namespace longhaul::on_host

struct on_host_event {
  std::shared_ptr<longhaul::on_host::Mark> mark;
  bool timed = false, shared = false, opened = false;
  int file = -1;  ///< that holds the mark, where processes share it
  int device = 0;
};
