#include "engine/events/op_board.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace longhaul::engine {

struct OpBoard::Ring {
  alignas(64) std::atomic<std::uint64_t> written;
  alignas(64) OpNews news[kRoom];
};

struct OpBoard::Quiet {
  alignas(64) std::atomic<std::uint32_t> quiet;
  std::atomic<std::uint64_t> changes;  ///< how often it was not
  std::atomic<std::uint64_t> sent, received;
};

OpBoard::OpBoard(const comm::HostRanks& host_ranks)
    : ranks_{to_size(host_ranks.local_ranks())},
      memory_{host_ranks.host(), ranks_ * (sizeof(Ring) + sizeof(Quiet)) + ranks_ * ranks_ * 64} {
  const auto& local = host_ranks.local();
  self_ = to_size(std::ranges::find(local, host_ranks.self()) - local.begin());
  host_ranks.host().barrier();
}

OpBoard::Ring& OpBoard::ring(std::size_t rank) const {
  return reinterpret_cast<Ring*>(memory_.data())[rank];
}

OpBoard::Quiet& OpBoard::quiet(std::size_t rank) const {
  std::byte* const first = memory_.data() + ranks_ * sizeof(Ring);
  return reinterpret_cast<Quiet*>(first)[rank];
}

/// Cursors of one writer's readers lie on lines of their own.
std::atomic<std::uint64_t>& OpBoard::cursor(std::size_t writer, std::size_t reader) const {
  std::byte* const first = memory_.data() + ranks_ * (sizeof(Ring) + sizeof(Quiet));
  return *reinterpret_cast<std::atomic<std::uint64_t>*>(first + (writer * ranks_ + reader) * 64);
}

void OpBoard::join() {
  for (std::size_t writer = 0; writer < ranks_; ++writer)
    cursor(writer, self_).store(ring(writer).written.load());
  known_room_ = ring(self_).written.load();
  backlog_.clear();
  gone_ = false;
  set_quiet(false);
}

void OpBoard::leave() {
  for (std::size_t writer = 0; writer < ranks_; ++writer) cursor(writer, self_).store(kGone);
  set_quiet(true);
  gone_ = true;
}

bool OpBoard::put(const OpNews& news) {
  Ring& mine = ring(self_);
  const std::uint64_t at = mine.written.load(std::memory_order_relaxed);
  if (at >= known_room_) {
    std::uint64_t least = at;  // who has left waits for nothing
    for (std::size_t reader = 0; reader < ranks_; ++reader)
      if (reader != self_)
        least = std::min(least, cursor(self_, reader).load(std::memory_order_acquire));
    known_room_ = least + kRoom;
    if (at >= known_room_) return false;
  }
  mine.news[at % kRoom] = news;
  mine.written.store(at + 1, std::memory_order_release);
  return true;
}

void OpBoard::publish(const OpNews& news) {
  if (!backlog_.empty() || !put(news)) backlog_.push_back(news);
}

void OpBoard::flush() {
  while (!backlog_.empty() && put(backlog_.front())) backlog_.pop_front();
}

void OpBoard::read(std::vector<OpNews>& to) {
  for (std::size_t writer = 0; writer < ranks_; ++writer) {
    if (writer == self_) continue;
    const Ring& other = ring(writer);
    std::atomic<std::uint64_t>& place = cursor(writer, self_);
    std::uint64_t at = place.load(std::memory_order_relaxed);
    const std::uint64_t end = other.written.load(std::memory_order_acquire);
    if (at == end) continue;
    for (; at != end; ++at) to.push_back(other.news[at % kRoom]);
    place.store(at, std::memory_order_release);
  }
}

void OpBoard::set_quiet(bool now_quiet) {
  if (gone_) return;
  Quiet& mine = quiet(self_);
  if ((mine.quiet.load() != 0) == now_quiet) return;
  if (!now_quiet) ++mine.changes;
  mine.quiet.store(now_quiet ? 1 : 0);
}

void OpBoard::count_sent() { ++quiet(self_).sent; }
void OpBoard::count_received() { ++quiet(self_).received; }

/// How often ranks were not quiet so far; nothing where one is not, or something is on its way.
std::optional<std::uint64_t> OpBoard::look_for_quiet() const {
  std::uint64_t changes = 0, sent = 0, received = 0;
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    const Quiet& each = quiet(rank);
    if (each.quiet.load() == 0) return std::nullopt;
    changes += each.changes.load();
    sent += each.sent.load();
    received += each.received.load();
    const std::uint64_t written = ring(rank).written.load();
    for (std::size_t reader = 0; reader < ranks_; ++reader)
      if (reader != rank && cursor(rank, reader).load() < written) return std::nullopt;
  }
  if (sent != received) return std::nullopt;
  return changes;
}

/// Twice the same: no one has moved between the looks at it and at another.
bool OpBoard::all_quiet() const {
  const auto first = look_for_quiet();
  return first && look_for_quiet() == first;
}

}  // namespace longhaul::engine
