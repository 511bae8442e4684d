#include <algorithm>
#include <cstring>

#include "base/bf16.hpp"
#include "base/error.hpp"
#include "comm/threads/thread_transport.hpp"

namespace longhaul::comm {
namespace {

void copy_part(const Exchange& from, std::size_t from_at, const Exchange& to, std::size_t to_at,
               std::size_t size) {
  LONGHAUL_ASSERT(from_at + size <= from.mine.size() && to_at + size <= to.result.size(),
                  "{} bytes at {} of {} have no room at {} of {}", size, from_at, from.mine.size(),
                  to_at, to.result.size());
  if (size > 0) std::memcpy(to.result.data() + to_at, from.mine.data() + from_at, size);
}

/// One member's numbers after the other's, for those that get any.
void gather(std::span<const Exchange> members) {
  for (const Exchange& to : members) {
    std::size_t at = 0;
    for (const Exchange& from : members) {
      if (to.result.empty()) continue;
      copy_part(from, 0, to, at, from.mine.size());
      at += from.mine.size();
    }
  }
}

/// The first member's numbers, a part for each.
void scatter(std::span<const Exchange> members) {
  std::size_t at = 0;
  for (const Exchange& to : members) {
    copy_part(members.front(), at, to, 0, to.result.size());
    at += to.result.size();
  }
}

/// Part i of each member's numbers to member i.
void transpose(std::span<const Exchange> members) {
  const std::size_t part = members.front().mine.size() / members.size();
  for (std::size_t i = 0; i < members.size(); ++i)
    for (std::size_t j = 0; j < members.size(); ++j)
      copy_part(members[j], i * part, members[i], j * part, part);
}

/// Arithmetic of a sum: in `Sum`, from and to the type that lies in buffers.
template <typename Number>
struct Plainly {
  using Stored = Number;
  using Sum = Number;
  static Sum load(Stored stored) { return stored; }
  static Stored store(Sum sum) { return sum; }
};
struct InBf16 {
  using Stored = std::uint16_t;
  using Sum = float;
  static Sum load(Stored stored) { return from_bf16(stored); }
  static Stored store(Sum sum) { return to_bf16(sum); }
};

template <typename Type>
void sum_up(CollectiveKind kind, std::span<const Exchange> members) {
  using Stored = typename Type::Stored;
  std::vector<typename Type::Sum> sums(members.front().mine.size() / sizeof(Stored));
  for (const Exchange& from : members) {
    LONGHAUL_ASSERT(from.mine.size() == sums.size() * sizeof(Stored), "{} bytes, not {}",
                    from.mine.size(), sums.size() * sizeof(Stored));
    for (std::size_t i = 0; i < sums.size(); ++i) {
      Stored stored{};
      std::memcpy(&stored, from.mine.data() + i * sizeof stored, sizeof stored);
      sums[i] += Type::load(stored);
    }
  }
  std::vector<Stored> rounded(sums.size());
  std::ranges::transform(sums, rounded.begin(), Type::store);
  const auto all = std::as_bytes(std::span{rounded});
  std::size_t at = 0;
  for (const Exchange& to : members) {
    const bool scatters = facts_of(kind).gets == Portion::share;
    const bool nothing = facts_of(kind).gets == Portion::whole_of_first && to.result.empty();
    const std::size_t size = scatters || nothing ? to.result.size() : all.size();
    LONGHAUL_ASSERT(size <= to.result.size() && at + size <= all.size(), "{} bytes at {} of {}",
                    size, at, all.size());
    if (size > 0) std::memcpy(to.result.data(), all.data() + at, size);
    if (scatters) at += size;
  }
}

}  // namespace

void exchange_among(CollectiveKind kind, std::span<const Exchange> members) {
  const CollectiveFacts& facts = facts_of(kind);
  if (facts.merging == Merging::transposed) return transpose(members);
  if (facts.merging == Merging::side_by_side)
    return facts.brings == Portion::whole_of_first && facts.gets == Portion::share
               ? scatter(members)
               : gather(members);
  switch (members.front().type) {
    case NumberType::i64: return sum_up<Plainly<std::int64_t>>(kind, members);
    case NumberType::f32: return sum_up<Plainly<float>>(kind, members);
    case NumberType::bf16: return sum_up<InBf16>(kind, members);
    case NumberType::i32: return sum_up<Plainly<std::int32_t>>(kind, members);
  }
}

bool ThreadCollectives::join(const Key& key, CollectiveKind kind, std::size_t place,
                             const Member& member) {
  std::vector<Member> members;
  {
    const std::scoped_lock lock{mutex_};
    std::vector<Member>& open = open_[key];
    open.resize(key.first.size());
    open[place] = member;
    if (std::ranges::any_of(open, [](const Member& each) { return each.inbox == nullptr; }))
      return false;
    members = std::move(open);
    open_.erase(key);
  }
  std::vector<Exchange> exchanges;
  for (const Member& each : members) exchanges.push_back(each.exchange);
  exchange_among(kind, exchanges);
  for (const Member& each : members) each.inbox->complete(each.request, 0);
  return true;
}

}  // namespace longhaul::comm
