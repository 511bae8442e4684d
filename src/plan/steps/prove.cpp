#include "plan/steps/prove.hpp"

#include <algorithm>
#include <bit>
#include <ranges>
#include <vector>

#include "base/index.hpp"

namespace longhaul::plan {
namespace {

/// Members, as bits.
using Contributors = std::vector<std::uint64_t>;

bool empty(const Contributors& set) {
  return std::ranges::all_of(set, [](std::uint64_t word) { return word == 0; });
}

int count(const Contributors& set) {
  int sum = 0;
  for (const std::uint64_t word : set) sum += std::popcount(word);
  return sum;
}

/// Is each of `part` in `all`?
bool contains(const Contributors& all, const Contributors& part) {
  for (std::size_t i = 0; i < all.size(); ++i)
    if ((part[i] & ~all[i]) != 0) return false;
  return true;
}

bool disjoint(const Contributors& a, const Contributors& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if ((a[i] & b[i]) != 0) return false;
  return true;
}

bool overlap(std::span<const ItemRange> a, std::span<const ItemRange> b) {
  return std::ranges::any_of(a, [&](const ItemRange& left) {
    return std::ranges::any_of(b, [&](const ItemRange& right) {
      return left.first < right.end() && right.first < left.end();
    });
  });
}

/// One piece of a collective.
class Play {
public:
  explicit Play(const CollectiveSteps& steps)
      : steps_{steps},
        words_{to_size(steps.members + 63) / 64},
        held_(to_size(steps.members) * steps.items(), Contributors(words_)),
        open_(to_size(steps.members)),
        waited_(steps.messages.size(), false) {
    for (int member = 0; member < steps.members; ++member)
      for (std::uint32_t item = 0; item < steps.items(); ++item)
        if (brings(member, item)) add(held(member, item), member);
  }

  /// The messages of one stream, by number.
  std::optional<Refusal> play(std::vector<std::uint32_t> messages) {
    std::ranges::stable_sort(messages, {}, [&](std::uint32_t m) { return message(m).step; });
    for (auto& arrivals : open_) arrivals.clear();
    for (std::size_t first = 0; first < messages.size();) {
      std::size_t end = first;
      while (end < messages.size() && message(messages[end]).step == message(messages[first]).step)
        ++end;
      if (auto why = play_step(std::span{messages}.subspan(first, end - first))) return why;
      first = end;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Refusal> why_not_complete() const {
    for (int member = 0; member < steps_.members; ++member) {
      for (std::uint32_t item = 0; item < steps_.items(); ++item) {
        const int wanted = contributors_wanted(member, item);
        if (wanted == 0) continue;
        const Contributors& has = held(member, item);
        const bool of_one = wanted == 1 && steps_.members > 1;
        if (count(has) != wanted || (of_one && !has_one(has, source_of(item))))
          return refused("member {} ends with {} of {} contributions to item {}.", member,
                         count(has), wanted, item);
      }
    }
    return std::nullopt;
  }

private:
  [[nodiscard]] const StepMessage& message(std::uint32_t number) const {
    return steps_.messages[number];
  }
  [[nodiscard]] Contributors& held(int member, std::uint32_t item) {
    return held_[at(member) * steps_.items() + item];
  }
  [[nodiscard]] const Contributors& held(int member, std::uint32_t item) const {
    return held_[at(member) * steps_.items() + item];
  }
  static void add(Contributors& set, int member) {
    set[at(member) / 64] |= std::uint64_t{1} << (at(member) % 64);
  }
  [[nodiscard]] static bool has_one(const Contributors& set, int member) {
    return (set[at(member) / 64] >> (at(member) % 64) & 1) != 0;
  }

  /// The member that an item comes from, where it comes from one.
  [[nodiscard]] int source_of(std::uint32_t item) const {
    const CollectiveFacts& facts = facts_of(steps_.kind);
    if (facts.merging == Merging::transposed) return static_cast<int>(item) / steps_.members;
    return facts.brings == Portion::share ? static_cast<int>(item) : 0;
  }

  [[nodiscard]] bool brings(int member, std::uint32_t item) const {
    return facts_of(steps_.kind).merging == Merging::sum || member == source_of(item);
  }

  [[nodiscard]] bool gets(int member, std::uint32_t item) const {
    const CollectiveFacts& facts = facts_of(steps_.kind);
    const auto own = static_cast<std::uint32_t>(member);
    if (facts.merging == Merging::transposed)
      return item % static_cast<std::uint32_t>(steps_.members) == own;
    if (facts.gets == Portion::share) return item == own;
    return facts.gets == Portion::whole || member == 0;
  }

  /// How many members' contributions the item must hold at a member in the end; 0: any.
  [[nodiscard]] int contributors_wanted(int member, std::uint32_t item) const {
    if (!gets(member, item)) return 0;
    return facts_of(steps_.kind).merging == Merging::sum ? steps_.members : 1;
  }

  /// What a step's messages hold when they leave; then all of them arrive.
  std::optional<Refusal> play_step(std::span<const std::uint32_t> messages) {
    std::vector<std::vector<Contributors>> carried;
    for (const std::uint32_t number : messages) {
      if (auto why = why_early(number)) return why;
      carried.emplace_back();
      for (const ItemRange& range : steps_.ranges_of(message(number)))
        for (std::uint32_t item = range.first; item < range.end(); ++item)
          carried.back().push_back(held(message(number).from, item));
    }
    for (std::size_t i = 0; i < messages.size(); ++i)
      if (auto why = arrive(messages[i], carried[i])) return why;
    return std::nullopt;
  }

  std::optional<Refusal> why_early(std::uint32_t number) {
    const StepMessage& sent = message(number);
    for (const std::uint32_t before : steps_.after_of(sent)) waited_[before] = true;
    auto& arrivals = open_[at(sent.from)];
    std::erase_if(arrivals, [&](std::uint32_t arrival) { return waited_[arrival]; });
    for (const std::uint32_t arrival : arrivals)
      if (overlap(steps_.ranges_of(message(arrival)), steps_.ranges_of(sent)))
        return refused("message {} of member {} does not wait for message {}, which brings it {}.",
                       number, sent.from, arrival, sent.adds ? "a contribution" : "an item");
    for (const ItemRange& range : steps_.ranges_of(sent))
      for (std::uint32_t item = range.first; item < range.end(); ++item)
        if (empty(held(sent.from, item)))
          return refused("member {} sends item {} to member {} in step {} and does not have it.",
                         sent.from, item, sent.to, sent.step);
    return std::nullopt;
  }

  std::optional<Refusal> arrive(std::uint32_t number, const std::vector<Contributors>& carried) {
    const StepMessage& came = message(number);
    auto content = carried.begin();
    for (const ItemRange& range : steps_.ranges_of(came)) {
      for (std::uint32_t item = range.first; item < range.end(); ++item, ++content) {
        Contributors& mine = held(came.to, item);
        if (came.adds ? !disjoint(mine, *content) : !contains(*content, mine))
          return refused(
              "step {} brings item {} to member {} {}.", came.step, item, came.to,
              came.adds ? "with a contribution that it has" : "without a contribution that it has");
        for (std::size_t word = 0; word < words_; ++word) mine[word] |= (*content)[word];
      }
    }
    open_[at(came.to)].push_back(number);
    return std::nullopt;
  }

  const CollectiveSteps& steps_;
  std::size_t words_;
  std::vector<Contributors> held_;                ///< by member, item
  std::vector<std::vector<std::uint32_t>> open_;  ///< by member: arrivals that none waits for yet
  std::vector<bool> waited_;                      ///< by message
};

}  // namespace

std::optional<Refusal> why_wrong(const CollectiveSteps& steps) {
  std::vector<std::vector<std::uint32_t>> streams;
  for (std::uint32_t m = 0; m < steps.messages.size(); ++m) {
    const std::size_t stream = at(steps.messages[m].stream);
    if (streams.size() <= stream) streams.resize(stream + 1);
    streams[stream].push_back(m);
  }
  for (int piece = 0; piece < steps.pieces; ++piece) {
    Play play{steps};
    for (const auto& stream : streams)
      if (!stream.empty() && steps.messages[stream.front()].piece == piece)
        if (auto why = play.play(stream)) return why;
    if (auto why = play.why_not_complete()) return why;
  }
  return std::nullopt;
}

}  // namespace longhaul::plan
