#include "comm/threads/thread_transport.hpp"

#include <algorithm>
#include <atomic>

#include "base/index.hpp"

namespace longhaul::comm {

/// The group of all ranks.
struct ThreadTransport::Shared {
  explicit Shared(int ranks) : inboxes(to_size(ranks)), doorbells(to_size(ranks)) {}
  std::vector<ThreadInbox> inboxes;                                 ///< index: rank
  std::vector<std::atomic<std::atomic<std::uint32_t>*>> doorbells;  ///< likewise
  ThreadCollectives collectives;
};

ThreadTransport::ThreadTransport(const Communicator& world, const HostRanks& host_ranks)
    : host_ranks_{host_ranks},
      shared_{std::static_pointer_cast<Shared>(
          world.share(world.rank() == 0 ? std::make_shared<Shared>(world.size()) : nullptr))} {
  shared_->doorbells[index(self())] = &host_ranks_.mine().doorbell;
}

/// Others go on: nothing of theirs may end in our buffers any more.
ThreadTransport::~ThreadTransport() {
  shared_->doorbells[index(self())] = nullptr;
  mine().forget_receives();
  for (ThreadInbox& inbox : shared_->inboxes) inbox.forget_sends_of(static_cast<int>(self()));
}

ThreadInbox& ThreadTransport::inbox(Rank rank) const { return shared_->inboxes[index(rank)]; }

RequestId ThreadTransport::next_request(bool is_near) {
  const RequestId request{requests_++};
  if (!is_near) distant_.insert(request);
  return request;
}

/// No one polls by a virtual clock, on which hosts are pretended: there every doorbell rings.
void ThreadTransport::ring_doorbell(Rank to) {
  if (virtual_clock() == nullptr || host_ranks_.is_local(to)) return host_ranks_.ring_doorbell(to);
  if (auto* const doorbell = shared_->doorbells[index(to)].load()) doorbell->fetch_add(1);
}

RequestId ThreadTransport::send(Rank to, int tag, std::span<const std::byte> data) {
  const RequestId request = next_request(host_ranks_.is_local(to));
  inbox(to).put({static_cast<int>(self()), tag, data, request, &mine()});
  return request;
}

RequestId ThreadTransport::receive(Rank from, int tag, std::span<std::byte> buffer) {
  const RequestId request = next_request(host_ranks_.is_local(from));
  if (mine().expect({static_cast<int>(from), tag, buffer, request})) ring_doorbell(from);
  return request;
}

RequestId ThreadTransport::collective(CollectiveKind kind, std::span<const Rank> members,
                                      const Exchange& exchange) {
  const bool is_near =
      std::ranges::all_of(members, [&](Rank rank) { return host_ranks_.is_local(rank); });
  const RequestId request = next_request(is_near);
  std::vector<int> numbers;
  for (const Rank member : members) numbers.push_back(static_cast<int>(member));
  const auto place = std::ranges::find(members, self()) - members.begin();
  const std::int64_t count = collectives_[numbers]++;
  if (shared_->collectives.join({std::move(numbers), count}, kind, to_size(place),
                                {exchange, request, &mine()}))
    for (const Rank member : members)
      if (member != self()) ring_doorbell(member);
  return request;
}

void ThreadTransport::advance(std::vector<Completion>& done) {
  const std::size_t before = done.size();
  mine().take(done);
  if (distant_.empty()) return;
  for (std::size_t i = before; i < done.size(); ++i) distant_.erase(done[i].request);
}

}  // namespace longhaul::comm
