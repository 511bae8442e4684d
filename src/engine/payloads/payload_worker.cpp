#include "engine/payloads/payload_worker.hpp"

#include <csignal>
#include <utility>

namespace longhaul::engine {
PayloadWorker::~PayloadWorker() {
  thread_.request_stop();
  changed_.notify_all();
}

std::future<void> PayloadWorker::add(std::function<void()> task) {
  std::packaged_task<void()> packaged{
      [task = std::move(task)]() mutable { std::exchange(task, nullptr)(); }};
  std::future<void> result = packaged.get_future();
  {
    const std::scoped_lock lock{mutex_};
    tasks_.push_back(std::move(packaged));
  }
  changed_.notify_all();
  if (thread_.joinable()) return result;
  sigset_t all;  // signals reach the rank's own thread: they are its watchdog's
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::jthread{[this](const std::stop_token& stop) { work(stop); }};
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return result;
}

void PayloadWorker::finish() {
  if (thread_.joinable()) add([] {}).wait();
}

void PayloadWorker::work(const std::stop_token& stop) {
  std::unique_lock lock{mutex_};
  while (changed_.wait(lock, stop, [this] { return !tasks_.empty(); })) {
    std::packaged_task<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace longhaul::engine
