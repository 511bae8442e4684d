#include "device/cpu_devices.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "device/blind_thread.hpp"

namespace longhaul::device {

void TimedDevice::begin_iteration(int /*iteration*/) {
  if (!overlap_.none()) slowed_.emplace(overlap_);
}

bool TimedDevice::slow_by(const plan::Overlap& overlap) {
  overlap_ = overlap;
  slowed_.reset();
  return true;
}

void TimedDevice::message_holds(NetworkLevel level, TimePoint from, TimePoint to) {
  if (!slowed_) return;
  slowed_->add(level, from, to);
  for (Running each : std::exchange(running_, {})) {
    each.block.due = slowed_->end_of(each.block.begin, each.work);
    add(each);
  }
}

void TimedDevice::start(OpId op, TimePoint begin, Duration duration) {
  engine::FinishedBlock block{op, begin + duration, kNever, begin};
  if (slowed_) {
    // No block begins before those that run.
    TimePoint first = begin;
    for (const Running& each : running_) first = std::min(first, each.block.begin);
    slowed_->forget_before(first);
    block.due = slowed_->end_of(begin, duration);
  }
  add({block, duration});
}

void TimedDevice::add(const Running& running) {
  const auto place = std::ranges::find_if(
      running_, [&](const Running& other) { return other.block.due <= running.block.due; });
  running_.insert(place, running);
}

std::optional<engine::FinishedBlock> TimedDevice::finished(TimePoint at) {
  if (running_.empty() || at < running_.back().block.due) return std::nullopt;
  const engine::FinishedBlock done = running_.back().block;
  running_.pop_back();
  return done;
}

TimePoint TimedDevice::next_event() const {
  return running_.empty() ? kNever : running_.back().block.due;
}

LayerDevice::LayerDevice(engine::BlockWork& work, const comm::HostRanks& host_ranks)
    : work_{work},
      host_ranks_{host_ranks},
      thread_{start_blind_to_signals([this](const auto& stop) { this->work(stop); })} {}

LayerDevice::~LayerDevice() {
  thread_.request_stop();
  changed_.notify_all();
}

void LayerDevice::start(OpId op, TimePoint /*begin*/, Duration /*duration*/) {
  const std::lock_guard lock{mutex_};
  LONGHAUL_ASSERT(state_ == State::idle, "op {} starts while op {} runs", index(op), index(op_));
  op_ = op;
  state_ = State::running;
  changed_.notify_all();
}

std::optional<engine::FinishedBlock> LayerDevice::finished(TimePoint /*at*/) {
  const std::lock_guard lock{mutex_};
  if (state_ != State::done) return std::nullopt;
  state_ = State::idle;
  if (!problem_) return engine::FinishedBlock{op_, due_};
  try {
    std::rethrow_exception(std::exchange(problem_, nullptr));
  } catch (const std::exception& error) {
    throw engine::DeviceError{op_, error.what()};
  }
}

void LayerDevice::work(const std::stop_token& stop) {
  std::unique_lock lock{mutex_};
  while (changed_.wait(lock, stop, [this] { return state_ == State::running; })) {
    const OpId op = op_;
    lock.unlock();
    std::exception_ptr problem;
    try {
      work_.run(op);
      work_.ended(op);
    } catch (...) {
      problem = std::current_exception();
    }
    lock.lock();
    problem_ = problem;
    due_ = now();
    state_ = State::done;
    host_ranks_.ring_doorbell(host_ranks_.self());
  }
}

}  // namespace longhaul::device
