#include "engine/links/lease_client.hpp"

namespace longhaul::engine {

void LeaseClient::ask(OpId send, Rank home, TimePoint ready, TimePoint at) {
  LeaseWord word;
  word.kind = LeaseWord::Kind::asks;
  word.send = static_cast<std::uint32_t>(send);
  word.age_ns = (at - ready).count();
  asked_[send] = at;
  words_.expect_of_home(home);
  words_.send(home, word, at);
}

void LeaseClient::let_go(OpId send, Rank home, TimePoint due, const ShadowTime& seen,
                         TimePoint at) {
  words_.send(home, word_of(LeaseWord::Kind::lets_go, send, {due, send, seen}, at), at);
}

void LeaseClient::came(const LeaseWords::Came& came, TimePoint at) {
  const auto asked = asked_.extract(OpId{came.word.send});
  const Duration took = at - asked.mapped();
  granted_[asked.key()] = {grant_of(came), took - Duration{came.word.kept_ns}};
}

std::optional<LeaseClient::Lease> LeaseClient::take(OpId send) {
  const auto granted = granted_.extract(send);
  return granted.empty() ? std::nullopt : std::optional{granted.mapped()};
}

}  // namespace longhaul::engine
