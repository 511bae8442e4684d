#include "streams/stream.hpp"

#include <climits>
#include <ctime>
#include <set>
#include <thread>
#include <vector>

#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "device.hpp"

struct on_host_stream {
  std::shared_ptr<longhaul::on_host::Queue> queue;
};

namespace longhaul::on_host {
namespace {

/// All streams of this process. Never destroyed: threads may run longer than main.
struct Streams {
  std::mutex mutex;
  std::set<on_host_stream*> handles;
  std::vector<std::shared_ptr<Queue>> defaults;
};

Streams& streams() {
  static auto* const all = new Streams;
  return *all;
}

std::vector<std::shared_ptr<Queue>> queues_of(int device) {
  Streams& all = streams();
  const std::scoped_lock lock{all.mutex};
  std::vector<std::shared_ptr<Queue>> queues;
  for (const auto* handle : all.handles)
    if (handle->queue->device() == device) queues.push_back(handle->queue);
  for (const auto& queue : all.defaults)
    if (queue && queue->device() == device) queues.push_back(queue);
  return queues;
}

std::shared_ptr<Queue> default_queue(int device) {
  Streams& all = streams();
  const std::scoped_lock lock{all.mutex};
  all.defaults.resize(static_cast<std::size_t>(device_count()));
  auto& queue = all.defaults[static_cast<std::size_t>(device)];
  if (!queue) queue = Queue::make(device, Queue::Kind::blocking);
  return queue;
}

/// `later` goes on after the work that `earlier` holds now.
void follow(Queue& earlier, Queue& later) {
  const auto mark = std::make_shared<Mark>();
  earlier.put_mark(mark, 1);
  later.put_wait(mark, 1);
}

}  // namespace

std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

void Mark::reach(std::uint32_t count) {
  stamp_ns = monotonic_ns();
  reached = count;
  syscall(SYS_futex, &reached, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Mark::wait(std::uint32_t count) const {
  for (;;) {
    const std::uint32_t seen = reached.load();
    if (static_cast<std::int32_t>(seen - count) >= 0) return;
    const timespec at_most{0, 20'000'000};  // the process that should wake us may have been killed
    syscall(SYS_futex, &reached, FUTEX_WAIT, seen, &at_most, nullptr, 0);
  }
}

std::shared_ptr<Queue> Queue::make(int device, Kind kind) {
  std::shared_ptr<Queue> queue{new Queue{device, kind}};
  std::thread{[queue] { queue->work(); }}.detach();
  return queue;
}

void Queue::work() {
  prctl(PR_SET_TIMERSLACK, 1);
  static_cast<void>(cudaSetDevice(device_));
  std::unique_lock lock{mutex_};
  for (;;) {
    changed_.wait(lock, [&] { return closed_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    busy_ = true;
    lock.unlock();
    dawdle();
    task();
    task = nullptr;
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

void Queue::put_any(std::function<void()> task) {
  const std::scoped_lock lock{mutex_};
  tasks_.push_back(std::move(task));
  changed_.notify_all();
}

void Queue::put(std::function<void()> work) {
  put_any([work = std::move(work)] {
    if (sticky_error() == cudaSuccess) work();
  });
}

void Queue::put_mark(std::shared_ptr<Mark> mark, std::uint32_t count) {
  put_any([mark = std::move(mark), count] { mark->reach(count); });
}

void Queue::put_wait(std::shared_ptr<const Mark> mark, std::uint32_t count) {
  put_any([mark = std::move(mark), count] {
    if (sticky_error() == cudaSuccess) mark->wait(count);
  });
}

bool Queue::idle() {
  const std::scoped_lock lock{mutex_};
  return tasks_.empty() && !busy_;
}

void Queue::drain() {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [&] { return tasks_.empty() && !busy_; });
}

void Queue::close() {
  const std::scoped_lock lock{mutex_};
  closed_ = true;
  changed_.notify_all();
}

std::shared_ptr<Queue> queue_of(cudaStream_t stream) {
  if (stream == nullptr) {
    const int device = current_device();
    auto queue = default_queue(device);
    for (const auto& other : queues_of(device))
      if (other != queue && other->kind() == Queue::Kind::blocking && !other->idle())
        follow(*other, *queue);
    return queue;
  }
  std::shared_ptr<Queue> queue;
  {
    const std::scoped_lock lock{streams().mutex};
    if (streams().handles.contains(stream)) queue = stream->queue;
  }
  if (queue && queue->kind() == Queue::Kind::blocking) {
    const auto first = default_queue(queue->device());
    if (!first->idle()) follow(*first, *queue);
  }
  return queue;
}

void drain_device(int device) {
  for (const auto& queue : queues_of(device)) queue->drain();
}

}  // namespace longhaul::on_host

using namespace longhaul::on_host;

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return longhaul::on_host::call([&] {
    if (stream == nullptr || flags > cudaStreamNonBlocking || priority > 0)
      return cudaErrorInvalidValue;
    *stream = new on_host_stream{longhaul::on_host::Queue::make(
        longhaul::on_host::current_device(), flags == 0
                                                 ? longhaul::on_host::Queue::Kind::blocking
                                                 : longhaul::on_host::Queue::Kind::non_blocking)};
    const std::scoped_lock lock{streams().mutex};
    streams().handles.insert(*stream);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, 0); }

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return longhaul::on_host::call([&] {
    {
      const std::scoped_lock lock{streams().mutex};
      if (streams().handles.erase(stream) == 0) return cudaErrorInvalidResourceHandle;
    }
    stream->queue->close();
    delete stream;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return longhaul::on_host::call([&] {
    const auto queue = longhaul::on_host::queue_of(stream);
    if (!queue) return cudaErrorInvalidResourceHandle;
    queue->drain();
    return longhaul::on_host::sticky_error();
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return longhaul::on_host::call([&] {
    const auto queue = longhaul::on_host::queue_of(stream);
    if (!queue) return cudaErrorInvalidResourceHandle;
    return queue->idle() ? longhaul::on_host::sticky_error() : cudaErrorNotReady;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user) {
  return longhaul::on_host::call([&] {
    const auto queue = longhaul::on_host::queue_of(stream);
    if (!queue) return cudaErrorInvalidResourceHandle;
    queue->put([function, user] {
      longhaul::on_host::in_host_function = true;
      function(user);
      longhaul::on_host::in_host_function = false;
    });
    return cudaSuccess;
  });
}
