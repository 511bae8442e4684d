#include "comm/cuda/lanes.hpp"

#include <algorithm>

#include "comm/blocking_call.hpp"
#include "comm/cuda/buffer_pool.hpp"

namespace longhaul::comm {

bool is_on_device(const void* data) {
  cudaPointerAttributes attributes{};
  const cudaError_t code = cudaPointerGetAttributes(&attributes, data);
  if (code == cudaErrorInvalidValue) {  // what drivers before CUDA 11 say of the host's memory
    static_cast<void>(cudaGetLastError());
    return false;
  }
  cuda::check(code);
  return attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
}

Lanes::Lanes(int index) : clock_{cuda::DeviceClock::of(index)} { cuda::load_spin_kernels(); }

/// Work under way uses marks and buffers: they must outlive it.
Lanes::~Lanes() { wait(); }

void Lanes::wait() const {
  const BlockingCall guard{"the last transfers on a GPU", std::chrono::seconds{10}};
  for (const auto& [key, stream] : streams_)
    cuda::report(cudaStreamSynchronize(stream.get()), "waiting for a lane's last transfers");
}

cudaStream_t Lanes::stream(Side side, LaneId lane, Rank peer) {
  const std::tuple key{side, lane, peer};
  auto found = streams_.find(key);
  if (found == streams_.end())
    found = streams_.emplace(key, cuda::Stream{cuda::Urgency::high}).first;
  return found->second.get();
}

Lanes::MarkHandle Lanes::begin(cudaStream_t stream) {
  MarkHandle mark;
  if (free_marks_.empty()) {
    mark = std::make_unique<Mark>();
  } else {
    mark = std::move(free_marks_.back());
    free_marks_.pop_back();
  }
  mark->stamps[0] = {};
  cuda::stamp(&mark->stamps[0].begin, stream);
  return mark;
}

void Lanes::end(Work work, cudaStream_t stream) {
  cuda::stamp(&work.mark->transferred[0], stream);
  const TimePoint from = work.pace.from;
  cuda::hold_after(&work.mark->stamps[0], from == TimePoint{} ? 0 : clock_.to_device(from),
                   static_cast<std::uint64_t>(work.pace.hold.count()), stream);
  work.mark->event.record(stream);
  under_way_.push_back(std::move(work));
}

void Lanes::after(cudaStream_t stream, std::function<void()> what) {
  cuda::Event event;
  if (!free_events_.empty()) {
    event = std::move(free_events_.back());
    free_events_.pop_back();
  }
  event.record(stream);
  waiting_.push_back({std::move(event), std::move(what)});
}

Completion Lanes::completion_of(const Work& work) const {
  return {work.request, work.size_bytes, clock_.to_host(work.mark->stamps[0].end),
          clock_.to_host(work.mark->transferred[0])};
}

void Lanes::advance(std::vector<Completion>& done) {
  std::vector<std::function<void()>> calls;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    if (!at->event.done()) {
      ++at;
      continue;
    }
    calls.push_back(std::move(at->what));
    free_events_.push_back(std::move(at->event));
    at = waiting_.erase(at);
  }
  for (const auto& call : calls) call();  // which may begin more
  for (auto at = under_way_.begin(); at != under_way_.end();) {
    if (!at->mark->event.done()) {
      ++at;
      continue;
    }
    if (at->then) at->then();
    done.push_back(completion_of(*at));
    free_marks_.push_back(std::move(at->mark));
    at = under_way_.erase(at);
  }
}

TimePoint Lanes::next_event() const {
  TimePoint first = kNever;
  for (const Work& work : under_way_)
    if (work.pace.from != TimePoint{} && work.pace.hold > Duration::zero())
      first = std::min(first, work.pace.from + work.pace.hold);
  return first;
}

}  // namespace longhaul::comm
