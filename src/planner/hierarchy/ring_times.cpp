#include "planner/hierarchy/ring_times.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/index.hpp"
#include "plan/steps/collective.hpp"

namespace longhaul::planner {

void RingPlayer::play(CollectiveKind kind, Bytes size, std::span<const RingLink> links,
                      RingTimes& times) {
  const auto members = std::ssize(links);
  LONGHAUL_ASSERT(members >= 2 && std::ssize(times.begin) == members, "{} members, {} begins",
                  members, times.begin.size());
  const std::int64_t longer = size.count() % members;
  const Bytes lesser{size.count() / members};
  short_.clear(), long_.clear(), latency_.clear(), sent_.clear(), arrived_.clear();
  for (std::size_t i = 0; i < links.size(); ++i) {
    short_.push_back((lesser / links[i].rate).count());
    long_.push_back(((lesser + Bytes{1}) / links[i].rate).count());
    latency_.push_back(links[i].latency.count());
    sent_.push_back(times.begin[i].count());
    arrived_.push_back(0);  // nothing is waited for before the first step
  }
  next_.resize(links.size());
  if (kind != CollectiveKind::all_gather) play_phase(Phase::scatter, longer);
  if (kind != CollectiveKind::reduce_scatter) play_phase(Phase::gather, longer);
  times.arrived.clear(), times.over.clear();
  for (std::size_t i = 0; i < links.size(); ++i) {
    times.arrived.emplace_back(arrived_[i]);
    times.over.emplace_back(std::max(arrived_[i], sent_[i]));
  }
}

/// In step k of a gather member i sends shard i - k, of a scatter shard i - k - 1.
void RingPlayer::play_phase(Phase phase, std::int64_t longer) {
  for (std::size_t k = 0; k + 1 < latency_.size(); ++k)
    play_step(phase == Phase::gather ? k : k + 1, at(longer));
}

/// The first `longer` shards have a byte more: those of members from `offset` on, around the ring.
void RingPlayer::play_step(std::size_t offset, std::size_t longer) {
  const std::size_t members = latency_.size();
  const std::size_t end = offset + longer;
  const std::size_t wrapped = end > members ? end - members : 0;
  send(0, wrapped, long_);
  send(wrapped, offset, short_);
  send(offset, std::min(end, members), long_);
  send(std::min(end, members), members, short_);
  next_[0] = sent_[members - 1] + latency_[members - 1];
  arrived_.swap(next_);
  messages_ += std::ssize(latency_);
}

void RingPlayer::send(std::size_t first, std::size_t end, const Nanoseconds& transfer) {
  for (std::size_t i = first; i < end; ++i) {
    sent_[i] = std::max(sent_[i], arrived_[i]) + transfer[i];
    if (i + 1 < sent_.size()) next_[i + 1] = sent_[i] + latency_[i];
  }
}

}  // namespace longhaul::planner
