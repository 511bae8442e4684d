#include "comm/payload_transport.hpp"

#include <algorithm>

#include "comm/transport.hpp"

namespace longhaul::comm {
namespace {

/// Requests of payloads have this bit; the host's transport counts its own from 0.
constexpr std::uint32_t kPayload = 1U << 31U;

std::span<const std::byte> bytes_of(const Announcement& word) {
  return std::as_bytes(std::span{&word, 1});
}

/// The backend's message, as an error of that operation.
template <typename Call>
auto of_operation(std::optional<RequestId> request, Call&& call) {
  try {
    return call();
  } catch (const TransportError&) {
    throw;
  } catch (const Error& error) {
    throw TransportError{request, error.what()};
  }
}

}  // namespace

PayloadTransport::PayloadTransport(Transport& host, std::unique_ptr<PayloadBackend> way)
    : host_{host}, way_{std::move(way)}, tags_{host.tags() - way_->tags() - 1} {
  way_->use_tags(tags_ + 1);
}

/// The host's transport writes into an announcement that it still waits for, whenever it comes:
/// that happens only where a run was broken off, and those bytes are left to it.
PayloadTransport::~PayloadTransport() {
  for (auto& [from, inbox] : inboxes_) static_cast<void>(inbox.next.release());
  for (auto& [request, word] : announced_) static_cast<void>(word.release());
}

RequestId PayloadTransport::new_request() { return RequestId{kPayload | next_request_++}; }

RequestId PayloadTransport::send_payload(Rank to, int tag, std::span<const std::byte> data,
                                         const cuda::LanePace& pace) {
  const RequestId request = new_request();
  outgoing_[to].push_back({{request, to, data, pace}, tag});
  begin_sends(to);
  return request;
}

RequestId PayloadTransport::receive_payload(Rank from, int tag, std::span<std::byte> buffer,
                                            const cuda::LanePace& pace) {
  const RequestId request = new_request();
  inboxes_[from].waiting.push_back({{request, from, buffer, pace, {}}, tag});
  match(from);
  return request;
}

RequestId PayloadTransport::collective(CollectiveKind kind, std::span<const Rank> members,
                                       const Exchange& exchange) {
  const RequestId request = new_request();
  of_operation(request, [&] { way_->collective(request, kind, members, exchange); });
  return request;
}

void PayloadTransport::begin_sends(Rank to) {
  std::deque<Outgoing>& queue = outgoing_[to];
  while (!queue.empty()) {
    const Outgoing& first = queue.front();
    auto word = std::make_unique<Announcement>();
    word->size_bytes = first.payload.data.size();
    word->tag = first.tag;
    word->lane = static_cast<std::uint32_t>(first.payload.pace.lane);
    if (!of_operation(first.payload.request,
                      [&] { return way_->send(first.payload, word->details); }))
      return;
    const RequestId request = host_.send(to, tags_, bytes_of(*word));
    announced_.emplace(request, std::move(word));
    host_.ring_doorbell(to);
    queue.pop_front();
  }
}

/// One receive of an announcement is posted while a payload is waited for.
void PayloadTransport::listen(Rank from) {
  Inbox& inbox = inboxes_[from];
  if (inbox.next || inbox.waiting.empty()) return;
  inbox.next = std::make_unique<Announcement>();
  const RequestId request =
      host_.receive(from, tags_, std::as_writable_bytes(std::span{inbox.next.get(), 1}));
  listening_.emplace(request, from);
}

/// The first of several receives of one tag; in the order of the announcements.
void PayloadTransport::match(Rank from) {
  Inbox& inbox = inboxes_[from];
  std::vector<std::uint32_t> stopped;  // lanes whose first payload has no receive
  for (auto word = inbox.unclaimed.begin(); word != inbox.unclaimed.end();) {
    const auto found = std::ranges::find(inbox.waiting, word->tag, &Waiting::tag);
    if (found == inbox.waiting.end() || std::ranges::find(stopped, word->lane) != stopped.end()) {
      if (way_->keeps_order()) stopped.push_back(word->lane);
      ++word;
      continue;
    }
    const PayloadReceive payload = found->payload;
    inbox.waiting.erase(found);
    begin_receive(*word, payload);
    word = inbox.unclaimed.erase(word);
  }
  listen(from);
}

void PayloadTransport::begin_receive(const Announcement& word, PayloadReceive payload) {
  if (word.size_bytes > payload.buffer.size())
    throw TransportError{
        payload.request,
        fmt::format("a payload of {} bytes came from rank {} for {} (the ranks do not run the same "
                    "plan). Start all of them with the same input.",
                    word.size_bytes, index(payload.from), payload.buffer.size())};
  payload.lane_of_sender = LaneId{word.lane};
  of_operation(payload.request, [&] { way_->receive(payload, word.size_bytes, word.details); });
}

void PayloadTransport::take_host_message(const Completion& completion,
                                         std::vector<Completion>& done) {
  if (const auto heard = listening_.find(completion.request); heard != listening_.end()) {
    const Rank from = heard->second;
    listening_.erase(heard);
    Inbox& inbox = inboxes_[from];
    inbox.unclaimed.push_back(*inbox.next);
    inbox.next.reset();
    return match(from);
  }
  if (announced_.erase(completion.request) > 0 || way_->host_done(completion, done)) return;
  done.push_back(completion);
}

void PayloadTransport::advance(std::vector<Completion>& done) {
  of_host_.clear();
  host_.advance(of_host_);
  const std::vector<Completion> came = of_host_;
  for (const Completion& completion : came) take_host_message(completion, done);
  of_operation(std::nullopt, [&] { way_->advance(done); });
  for (auto& [to, queue] : outgoing_)
    if (!queue.empty()) begin_sends(to);
}

bool PayloadTransport::wants_polling() const {
  return host_.wants_polling() || way_->busy() ||
         std::ranges::any_of(outgoing_, [](const auto& entry) { return !entry.second.empty(); });
}

/// The host's count has announcements in it that were never looked at.
std::int64_t PayloadTransport::unclaimed() {
  std::int64_t count = host_.unclaimed();
  for (auto& [from, inbox] : inboxes_) count += std::ssize(std::exchange(inbox.unclaimed, {}));
  return count;
}

}  // namespace longhaul::comm
