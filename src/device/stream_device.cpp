#include "device/stream_device.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "device/blind_thread.hpp"

namespace longhaul::device {

StreamDevice::StreamDevice(engine::StreamWork& work, const comm::HostRanks& host_ranks, Pace pace)
    : work_{work}, host_ranks_{host_ranks}, pace_{pace} {}

StreamDevice::~StreamDevice() {
  for (std::jthread& thread : threads_) thread.request_stop();
  changed_.notify_all();
}

void StreamDevice::start(OpId op, TimePoint begin, Duration duration) {
  Job job{op,     iterations_.try_emplace(op, first_).first->second++, -1, begin, duration, {},
          nullptr};
  if (const auto told = versions_.find(op); told != versions_.end()) {
    job.version = told->second;
    versions_.erase(told);
  }
  const std::lock_guard lock{mutex_};
  waiting_.push_back(std::move(job));
  if (waiting_.size() > idle_)
    threads_.push_back(start_blind_to_signals([this](const auto& stop) { work_on(stop); }));
  changed_.notify_all();
}

TimePoint StreamDevice::due(const Job& job) const {
  return pace_ == Pace::real ? job.computed : std::max(job.computed, job.begin + job.duration);
}

std::optional<engine::FinishedBlock> StreamDevice::finished(TimePoint at) {
  {
    const std::lock_guard lock{mutex_};
    std::ranges::move(done_, std::back_inserter(computed_));
    done_.clear();
  }
  const auto failed =
      std::ranges::find_if(computed_, [](const Job& job) { return job.problem != nullptr; });
  if (failed != computed_.end()) {
    try {
      std::rethrow_exception(failed->problem);
    } catch (const std::exception& error) {
      throw engine::DeviceError{failed->op, error.what()};
    }
  }
  const auto first = std::ranges::min_element(computed_, {}, [&](const Job& job) {
    return std::pair{due(job), job.op};
  });
  if (first == computed_.end() || due(*first) > at) return std::nullopt;
  const Job job = *first;
  computed_.erase(first);
  engine::FinishedBlock block{job.op, due(job)};
  if (job.duration > Duration::zero()) {
    ++overruns_.ops;
    const bool longer = job.computed > job.begin + job.duration;
    if (longer) ++overruns_.longer;
    if (!longer && pace_ == Pace::modelled) block.begin = job.begin;
  }
  return block;
}

TimePoint StreamDevice::next_event() const {
  TimePoint next = kNever;
  for (const Job& job : computed_) next = std::min(next, due(job));
  return next;
}

void StreamDevice::work_on(const std::stop_token& stop) {
  std::unique_lock lock{mutex_};
  for (;;) {
    ++idle_;
    const bool has_work = changed_.wait(lock, stop, [this] { return !waiting_.empty(); });
    --idle_;
    if (!has_work) return;
    Job job = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    try {
      work_.run(job.op, job.iteration, job.version);
    } catch (...) {
      job.problem = std::current_exception();
    }
    job.computed = now();
    lock.lock();
    done_.push_back(std::move(job));
    host_ranks_.ring_doorbell(host_ranks_.self());
  }
}

}  // namespace longhaul::device
