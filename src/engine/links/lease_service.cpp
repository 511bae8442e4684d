#include "engine/links/lease_service.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace longhaul::engine {

LeaseService::LeaseService(const Plan& plan, LinkTable& table, LeaseWords& words,
                           const OpEvents& events, std::vector<Client> clients)
    : plan_{plan},
      table_{table},
      words_{words},
      events_{events},
      clients_{std::move(clients)},
      to_come_(clients_.size()) {}

void LeaseService::begin_iteration() {
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    for (const LaneId id : clients_[i].lanes) {
      const Lane& lane = plan_.lanes[index(id)];
      for (std::uint32_t place = 0; place < lane.count; ++place)
        events_.note(OpId{static_cast<std::uint32_t>(index(lane.first)) + place},
                     comm::OpEvent::none);
    }
    to_come_[i] = 2 * clients_[i].sends;
    expect(i);
  }
}

/// One at a time: they come in order.
void LeaseService::expect(std::size_t client) {
  if (to_come_[client] == 0) return;
  --to_come_[client];
  words_.expect_of_client(clients_[client].rank);
}

/// The watchdog of this host follows who holds what to ranks of other hosts by the events that are
/// noted here.
void LeaseService::came(const LeaseWords::Came& came, TimePoint at, std::vector<OpId>& granted) {
  expect(to_size(std::ranges::find(clients_, came.from, &Client::rank) - clients_.begin()));
  const OpId send{came.word.send};
  if (came.word.kind == LeaseWord::Kind::lets_go) {
    const LinkTable::Grant held = grant_of(came);
    events_.note(send, comm::OpEvent::ended);
    return table_.release(send, held.free, granted, held.let_go);
  }
  events_.note(send, comm::OpEvent::posted);
  waiting_.push_back({send, came.from, at});
  const TimePoint ready = came.sent - Duration{came.word.age_ns};
  if (virtual_clock() != nullptr) return table_.ask(send, ready);
  table_.request(send, ready, granted);
}

bool LeaseService::tell_granted(TimePoint at) {
  const auto granted = std::erase_if(waiting_, [&](const Waiting& waiting) {
    LinkTable::Grant grant;
    if (!table_.take(waiting.send, grant)) return false;
    LeaseWord word = word_of(LeaseWord::Kind::granted, waiting.send, grant, at);
    word.kept_ns = (at - waiting.since).count();
    words_.send(waiting.client, word, at);
    events_.note(waiting.send, comm::OpEvent::started);
    return true;
  });
  return granted > 0;
}

}  // namespace longhaul::engine
