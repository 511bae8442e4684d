#include "engine/arrival_barrier.hpp"

#include <bit>

#include "base/index.hpp"

namespace longhaul::engine {

ArrivalBarrier::ArrivalBarrier(EngineState& state, std::vector<Rank> members, int tag, OpId op)
    : state_{state},
      members_{std::move(members)},
      tag_{tag},
      op_{op},
      rounds_{to_size(std::bit_width(members_.size() - 1))},
      out_(rounds_),
      in_(rounds_) {
  self_ = at(std::ranges::find(members_, state_.host_ranks.self()) - members_.begin());
}

void ArrivalBarrier::enter(TimePoint at, Duration lag) {
  entered_ = true;
  seen_ = {at, at + lag};
  round_ = 0;
  latest_ = {at, op_, BoundKind::rendezvous};
  if (rounds_ > 0) send_round(at);
}

void ArrivalBarrier::send_round(TimePoint at) {
  const std::size_t distance = std::size_t{1} << round_;
  const Rank from = member(members_.size() - distance);
  state_.expect(
      state_.transport.receive(from, tag_, std::as_writable_bytes(std::span{&in_[round_], 1})),
      Role::barrier, op_);
  const Rank to = member(distance);
  out_[round_] = {(at - latest_.until).count(), seen_.lag().count(),
                  static_cast<std::uint32_t>(latest_.by), 0};
  state_.expect(state_.transport.send(to, tag_, std::as_bytes(std::span{&out_[round_], 1})),
                Role::go_ahead_sent, op_);
  state_.transport.ring_doorbell(to);
}

void ArrivalBarrier::received(TimePoint at) {
  const Word& word = in_[round_];
  seen_.raise(at, Duration{word.lag_ns});
  const TimePoint came = at - Duration{word.age_ns};
  if (came > latest_.until) latest_ = {came, OpId{word.op}, BoundKind::rendezvous};
  if (++round_ < rounds_) send_round(at);
}

std::vector<Rank> all_ranks(int count) {
  std::vector<Rank> ranks(to_size(count));
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = Rank{static_cast<std::int32_t>(i)};
  return ranks;
}

}  // namespace longhaul::engine
