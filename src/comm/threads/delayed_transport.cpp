#include "comm/threads/delayed_transport.hpp"

#include <algorithm>
#include <map>
#include <mutex>

namespace longhaul::comm {

/// When messages that were not received yet were sent, by sender, receiver and tag.
struct DelayedTransport::Sendings {
  using Envelope = std::tuple<Rank, Rank, int>;
  void add(const Envelope& envelope, TimePoint at) {
    const std::scoped_lock lock{mutex};
    sent[envelope].push(at);
  }
  [[nodiscard]] TimePoint take(const Envelope& envelope) {
    const std::scoped_lock lock{mutex};
    std::queue<TimePoint>& first = sent[envelope];
    const TimePoint at = first.front();
    first.pop();
    if (first.empty()) sent.erase(envelope);
    return at;
  }
  std::mutex mutex;
  std::map<Envelope, std::queue<TimePoint>> sent;
};

DelayedTransport::DelayedTransport(const Communicator& world, Transport& host, Duration hop,
                                   Duration payload)
    : host_{host},
      hop_{hop},
      payload_{payload},
      sendings_{std::static_pointer_cast<Sendings>(
          world.share(world.rank() == 0 ? std::make_shared<Sendings>() : nullptr))} {}

DelayedTransport::~DelayedTransport() = default;

RequestId DelayedTransport::send(Rank to, int tag, std::span<const std::byte> data) {
  sendings_->add({self(), to, tag}, now());
  return host_.send(to, tag, data);
}

RequestId DelayedTransport::receive(Rank from, int tag, std::span<std::byte> buffer) {
  const RequestId request = host_.receive(from, tag, buffer);
  awaited_[request] = {from, tag};
  return request;
}

RequestId DelayedTransport::receive_payload(Rank from, int tag, std::span<std::byte> buffer,
                                            const cuda::LanePace& /*pace*/) {
  const RequestId request = receive(from, tag, buffer);
  awaited_[request].more = payload_;
  return request;
}

RequestId DelayedTransport::collective(CollectiveKind kind, std::span<const Rank> members,
                                       const Exchange& exchange) {
  const RequestId request = host_.collective(kind, members, exchange);
  awaited_[request] = {};
  return request;
}

void DelayedTransport::advance(std::vector<Completion>& done) {
  const TimePoint at = now();
  completions_.clear();
  host_.advance(completions_);
  for (const Completion& completion : completions_) {
    const auto awaited = awaited_.find(completion.request);
    if (awaited == awaited_.end()) {  // a send
      done.push_back(completion);
      continue;
    }
    const auto [from, tag, more] = awaited->second;
    awaited_.erase(awaited);
    const TimePoint sent = from == kNone<Rank> ? at : sendings_->take({from, self(), tag});
    coming_.emplace(std::max(at, sent + hop_ + more), came_++, completion.request,
                    completion.size_bytes);
  }
  for (; next_event() <= at; coming_.pop()) {
    const auto& [there, number, request, size] = coming_.top();
    done.push_back({request, size});
  }
}

}  // namespace longhaul::comm
