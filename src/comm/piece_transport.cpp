#include "comm/piece_transport.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace longhaul::comm {
namespace {

/// Requests of payloads in pieces have this bit; the host's transport counts its own from 0.
constexpr std::uint32_t kInPieces = 1U << 31U;
/// Pieces that a sender has posted and that have not left yet: more than a receiver takes until
/// the sender looks again.
constexpr int kMostUnsent = 64;

}  // namespace

RequestId PieceTransport::new_request() { return RequestId{kInPieces | next_request_++}; }

RequestId PieceTransport::send_payload(Rank to, int tag, std::span<const std::byte> data,
                                       const cuda::LanePace& /*pace*/) {
  const Way way{to, tag};
  if (data.size() < piece_ && !outgoing_.contains(way)) return host_.send(to, tag, data);
  const RequestId request = new_request();
  outgoing_[way].push_back({request, data});
  post_sends(way);
  return request;
}

RequestId PieceTransport::receive_payload(Rank from, int tag, std::span<std::byte> buffer,
                                          const cuda::LanePace& /*pace*/) {
  const Way way{from, tag};
  const bool is_first = !incoming_.contains(way);
  if (buffer.size() < piece_ && is_first) return host_.receive(from, tag, buffer);
  const RequestId request = new_request();
  incoming_[way].push_back({request, buffer});
  if (is_first) post_receive(way);
  return request;
}

/// All pieces of one payload before the first of the next.
void PieceTransport::post_sends(const Way& way) {
  for (Outgoing& payload : outgoing_[way]) {
    while (!payload.all_posted && payload.unsent < kMostUnsent) {
      const auto rest = payload.data.subspan(payload.posted);
      const std::size_t size = std::min(piece_, rest.size());
      sent_.emplace(host_.send(way.first, way.second, rest.first(size)),
                    std::pair{way, payload.request});
      ++payload.unsent;
      payload.posted += size;
      payload.all_posted = size < piece_;
    }
    if (!payload.all_posted) return;
  }
}

void PieceTransport::post_receive(const Way& way) {
  const Incoming& payload = incoming_.at(way).front();
  const auto rest = payload.buffer.subspan(payload.received);
  received_.emplace(host_.receive(way.first, way.second, rest.first(std::min(piece_, rest.size()))),
                    way);
}

void PieceTransport::advance(std::vector<Completion>& done) {
  const std::size_t before = done.size();
  goes_on_ = false;
  of_host_.clear();
  host_.advance(of_host_);
  for (const Completion& completion : of_host_)
    if (!take_piece(completion, done)) done.push_back(completion);
  if (next_.empty()) return;
  goes_on_ = true;
  if (done.size() > before) return;  // they are stamped before the next copy
  const Way way = next_.front();
  next_.pop_front();
  post_receive(way);
}

/// False: it is none of ours.
bool PieceTransport::take_piece(const Completion& completion, std::vector<Completion>& done) {
  if (const auto sent = sent_.find(completion.request); sent != sent_.end()) {
    const auto [way, payload] = sent->second;
    sent_.erase(sent);
    piece_sent(way, payload, done);
    return true;
  }
  const auto received = received_.find(completion.request);
  if (received == received_.end()) return false;
  const Way way = received->second;
  received_.erase(received);
  piece_received(way, completion.size_bytes, done);
  return true;
}

/// Pieces leave in the order in which they were posted; the host need not be done with them in
/// that order: a small one is copied while a large one before it waits for its receive.
void PieceTransport::piece_sent(const Way& way, RequestId payload, std::vector<Completion>& done) {
  goes_on_ = true;
  std::deque<Outgoing>& payloads = outgoing_.at(way);
  const auto of = std::ranges::find(payloads, payload, &Outgoing::request);
  if (--of->unsent > 0 || !of->all_posted) return post_sends(way);
  done.push_back({payload, 0});
  payloads.erase(of);
  if (payloads.empty()) outgoing_.erase(way);
}

void PieceTransport::piece_received(const Way& way, std::size_t size,
                                    std::vector<Completion>& done) {
  std::deque<Incoming>& payloads = incoming_.at(way);
  Incoming& first = payloads.front();
  first.received += size;
  if (size == piece_) return next_.push_back(way);
  done.push_back({first.request, first.received});
  payloads.pop_front();
  if (payloads.empty()) {
    incoming_.erase(way);
  } else {
    next_.push_back(way);
  }
}

}  // namespace longhaul::comm
