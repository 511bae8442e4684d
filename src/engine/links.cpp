#include "engine/links.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace longhaul::engine {
namespace {

/// Sets that one lane alone holds, in its own order.
std::vector<bool> find_lane_sets(const Plan& plan) {
  std::vector<bool> lane_set;
  for (std::size_t set = 0; set + 1 < plan.set_begin.size(); ++set)
    lane_set.push_back(std::all_of(
        plan.set_items.begin() + plan.set_begin[set],
        plan.set_items.begin() + plan.set_begin[set + 1], [&](ResourceId id) {
          const Resource& resource = plan.resources[index(id)];
          return resource.lanes <= 1 && resource.capacity == 1 && resource.order.empty();
        }));
  return lane_set;
}

std::vector<Rank> hosts_of_ranks(const comm::HostRanks& host_ranks) {
  std::vector<Rank> hosts;
  for (std::int32_t rank = 0; rank < host_ranks.ranks(); ++rank)
    hosts.push_back(host_ranks.host_of(Rank{rank}));
  return hosts;
}

}  // namespace

Links::Links(const Plan& plan, const Place& place)
    : plan_{plan},
      place_{place},
      homes_{find_lease_homes(plan, hosts_of_ranks(place.host_ranks))},
      lane_set_{find_lane_sets(plan)},
      own_memory_(LinkTable::bytes(plan, place.host_ranks.self())),
      words_{place.transport, place.tags, place.clock_offset},
      client_{words_} {
  const comm::HostRanks& host_ranks = place_.host_ranks;
  own_.emplace(plan, own_memory_.data(), true, host_ranks.self());
  find_lanes();
  if (std::ranges::find(homes_.shared, true) == homes_.shared.end()) return;
  shared_memory_ = std::make_unique<comm::SharedMemory>(host_ranks.host(), LinkTable::bytes(plan));
  shared_.emplace(plan, shared_memory_->data(), host_ranks.host().rank() == 0);
  host_ranks.host().barrier();
  make_service();
}

void Links::find_lanes() {
  for (std::size_t i = 0; i < plan_.lanes.size(); ++i) {
    const Lane& lane = plan_.lanes[i];
    if (lane.kind == OpKind::send && lane.count > 0 && lane.rank == place_.host_ranks.self() &&
        !is_distant(lane.first))
      lanes_.push_back(LaneId{static_cast<std::uint32_t>(i)});
  }
}

/// For the lanes of ranks of other hosts whose home this rank is.
void Links::make_service() {
  std::vector<LeaseService::Client> clients;
  for (std::size_t i = 0; i < plan_.lanes.size(); ++i) {
    const Lane& lane = plan_.lanes[i];
    if (lane.kind != OpKind::send || lane.count == 0 ||
        home_of(lane.first) != place_.host_ranks.self() || place_.host_ranks.is_local(lane.rank))
      continue;
    auto client = std::ranges::find(clients, lane.rank, &LeaseService::Client::rank);
    if (client == clients.end()) client = clients.insert(client, {lane.rank, 0, {}});
    client->sends += lane.count;
    client->lanes.push_back(LaneId{static_cast<std::uint32_t>(i)});
    lanes_.push_back(client->lanes.back());
  }
  if (!clients.empty())
    service_.emplace(plan_, *shared_, words_, place_.events, std::move(clients));
}

void Links::begin_iteration() {
  if (service_) service_->begin_iteration();
}

std::optional<Links::Grant> Links::take(OpId send, TimePoint ready, TimePoint at) {
  Grant grant;
  if (is_distant(send)) {
    const auto lease = client_.take(send);
    if (!lease) return std::nullopt;
    grant = lease->grant;
    cost_.add_words(lease->on_the_way);
  } else if (!table_of(send).take(send, grant)) {
    return std::nullopt;
  }
  if (homes_.shared[index(plan_.op(send).resources)]) cost_.add(at - std::max(ready, grant.free));
  return grant;
}

void Links::request(OpId send, TimePoint ready, TimePoint at) {
  if (is_distant(send)) {
    has_asked_ = true;
    place_.events.note(send, comm::OpEvent::posted);
    return client_.ask(send, home_of(send), ready, at);
  }
  // What no other lane wants needs no decision: others may become ready by it in this instant.
  if (virtual_clock() != nullptr && !lane_set_[index(plan_.op(send).resources)])
    return table_of(send).ask(send, ready);
  granted_.clear();
  table_of(send).request(send, ready, granted_);
  wake_granted();
}

void Links::release(OpId send, TimePoint due, const ShadowTime& seen, TimePoint at) {
  if (is_distant(send)) return client_.let_go(send, home_of(send), due, seen, at);
  granted_.clear();
  table_of(send).release(send, due, granted_, seen);
  wake_granted();
}

/// Of ranks of other hosts the home is woken, which tells them. This rank looks by itself after it
/// has asked; not where another thread decides for it.
void Links::wake_granted() {
  for (const OpId granted : granted_) {
    const Rank rank = plan_.rank_of(granted);
    const Rank woken = place_.host_ranks.is_local(rank) ? rank : home_of(granted);
    if (woken != place_.host_ranks.self() || virtual_clock() != nullptr)
      place_.host_ranks.ring_doorbell(woken);
  }
}

bool Links::serve(TimePoint at) { return service_ && service_->tell_granted(at); }

bool Links::took(const comm::Completion& completion, TimePoint at) {
  std::optional<LeaseWords::Came> came;
  if (!words_.take(completion, at, came)) return false;
  if (!came) return true;
  if (came->word.kind == LeaseWord::Kind::granted) {
    client_.came(*came, at);
    return true;
  }
  LONGHAUL_ASSERT(service_, "op {} is leased elsewhere", came->word.send);
  granted_.clear();
  service_->came(*came, at, granted_);
  wake_granted();
  (void)serve(at);
  return true;
}

std::optional<Arbiter::Request> Links::first_request() {
  std::optional<Request> first;
  for (const LaneId lane : lanes_) {
    const auto request = table_of(plan_.lanes[index(lane)].first).first_request(lane);
    if (request && (!first || *request < *first)) first = request;
  }
  return first;
}

void Links::decide_first() {
  const auto first = first_request();
  if (!first) return;
  const OpId send{first->op};
  granted_.clear();
  table_of(send).serve(send, granted_);
  wake_granted();
}

LeaseCost Links::take_cost() { return std::exchange(cost_, {}); }

}  // namespace longhaul::engine
