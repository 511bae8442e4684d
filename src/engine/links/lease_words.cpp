#include "engine/links/lease_words.hpp"

#include <algorithm>
#include <span>

namespace longhaul::engine {

void LeaseWords::send(Rank to, LeaseWord word, TimePoint at) {
  const int tag = word.kind == LeaseWord::Kind::granted ? tags_.from_home : tags_.to_home;
  word.sent_ns = (at + clock_offset_.value_or(Duration::zero())).count();
  auto kept = std::make_unique<LeaseWord>(word);
  const comm::RequestId request = transport_.send(to, tag, std::as_bytes(std::span{kept.get(), 1}));
  leaving_.emplace(request, std::move(kept));
  transport_.ring_doorbell(to);
}

void LeaseWords::expect(Rank from, int tag) {
  auto coming = std::make_unique<Coming>(Coming{from, {}});
  const comm::RequestId request =
      transport_.receive(from, tag, std::as_writable_bytes(std::span{&coming->word, 1}));
  coming_.emplace(request, std::move(coming));
}

bool LeaseWords::take(const comm::Completion& completion, TimePoint at, std::optional<Came>& came) {
  if (leaving_.erase(completion.request) > 0) return true;
  const auto found = coming_.find(completion.request);
  if (found == coming_.end()) return false;
  const auto [from, word] = *found->second;
  coming_.erase(found);
  const TimePoint sent = clock_offset_ ? TimePoint{word.sent_ns} - *clock_offset_ : at;
  came = Came{from, word, std::min(sent, at)};
  return true;
}

LeaseWord word_of(LeaseWord::Kind kind, OpId send, const LinkTable::Grant& grant, TimePoint at) {
  LeaseWord word;
  word.kind = kind;
  word.send = static_cast<std::uint32_t>(send);
  word.holder = static_cast<std::uint32_t>(grant.holder);
  word.was_held = grant.free > TimePoint{} ? 1 : 0;
  word.age_ns = (at - grant.free).count();
  word.seen_age_ns = (at - grant.let_go.seen).count();
  word.lag_ns = grant.let_go.lag().count();
  return word;
}

LinkTable::Grant grant_of(const LeaseWords::Came& came) {
  LinkTable::Grant grant;
  grant.holder = OpId{came.word.holder};
  if (came.word.was_held == 0) return grant;
  grant.free = came.sent - Duration{came.word.age_ns};
  grant.let_go.seen = came.sent - Duration{came.word.seen_age_ns};
  grant.let_go.shadow = grant.let_go.seen + Duration{came.word.lag_ns};
  return grant;
}

}  // namespace longhaul::engine
