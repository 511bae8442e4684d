#include <algorithm>
#include <cstring>

#include "base/bf16.hpp"
#include "base/error.hpp"
#include "comm/threads/thread_transport.hpp"

namespace longhaul::comm {
namespace {

void gather(std::span<const Exchange> members) {
  for (const Exchange& to : members) {
    std::size_t at = 0;
    for (const Exchange& from : members) {
      LONGHAUL_ASSERT(at + from.mine.size() <= to.result.size(), "no room for {} bytes at {} of {}",
                      from.mine.size(), at, to.result.size());
      if (!from.mine.empty())
        std::memcpy(to.result.data() + at, from.mine.data(), from.mine.size());
      at += from.mine.size();
    }
  }
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
    const std::size_t size = scatters ? to.result.size() : all.size();
    LONGHAUL_ASSERT(size <= to.result.size() && at + size <= all.size(), "{} bytes at {} of {}",
                    size, at, all.size());
    if (size > 0) std::memcpy(to.result.data(), all.data() + at, size);
    if (scatters) at += size;
  }
}

}  // namespace

void exchange_among(CollectiveKind kind, std::span<const Exchange> members) {
  if (facts_of(kind).merging == Merging::side_by_side) return gather(members);
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
