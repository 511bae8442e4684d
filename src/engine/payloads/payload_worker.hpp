#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

namespace longhaul::engine {

/// A thread that fills and compares large payloads beside the engine, in the order in which it is
/// told to. It starts with its first task.
class PayloadWorker {
public:
  PayloadWorker() = default;
  ~PayloadWorker();
  PayloadWorker(const PayloadWorker&) = delete;
  PayloadWorker& operator=(const PayloadWorker&) = delete;

  /// The caller may wait for the result. What the task holds is let go before that.
  std::future<void> add(std::function<void()> task);
  /// Waits until all tasks are done.
  void finish();

private:
  void work(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::packaged_task<void()>> tasks_;
  std::jthread thread_;  ///< last: it uses the others
};

}  // namespace longhaul::engine
