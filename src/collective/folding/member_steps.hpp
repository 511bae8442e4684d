#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "plan/steps/collective_steps.hpp"

namespace longhaul::collective {

/// The messages of one member of a collective: lines to and from other members, and what each
/// message waits for.
struct MemberSteps {
  /// Messages of one stream with one other member, one after the other.
  struct Line {
    int other = 0;  ///< the other's place in the group
    int stream = 0;
    std::uint32_t count = 0;
  };
  /// A message of the member: of a line that comes in or goes out, and which of it.
  struct Ref {
    std::uint32_t line = 0, position = 0;
    bool in = false;
  };
  struct Send {
    std::uint32_t line = 0, position = 0;
    int step = 0;
    bool is_first = true;  ///< of its stream: it waits for the member's begin
    Bytes size;
    std::uint32_t first_wait = 0, wait_count = 0;  ///< into `waits`
  };
  std::vector<Line> out, in;
  std::vector<Send> sends;  ///< in order
  std::vector<Ref> waits;
  std::vector<Ref> last;  ///< what no other of its messages waits for

  [[nodiscard]] std::span<const Ref> waits_of(const Send& send) const {
    return {waits.data() + send.first_wait, send.wait_count};
  }
};

[[nodiscard]] MemberSteps steps_of_member(const plan::CollectiveSteps& steps, int member);
/// The same of a gather, scatter or all-reduce by a ring without the other members' messages; all
/// of its messages have this size.
[[nodiscard]] MemberSteps steps_in_ring(CollectiveKind kind, int members, int member, Bytes size);

/// Are the messages the same when each member's place is `shift` further on in the circle?
[[nodiscard]] bool same_when_turned(const plan::CollectiveSteps& steps, int shift);

/// Steps that were asked for before: a search asks for the same ones in each of its candidates.
class KnownSteps {
public:
  struct OfCollective {
    std::map<int, MemberSteps> by_place;
    bool turns = true;  ///< same_when_turned()
  };
  /// Of the members at these places; it stays where it is. A ring's messages have no sizes.
  const OfCollective& of(const plan::Collective& collective, bool in_ring,
                         std::span<const int> places, int turn);

private:
  using Key =
      std::tuple<CollectiveKind, std::size_t, plan::CollectiveAlgorithm, std::vector<int>,
                 std::vector<int>, std::vector<plan::CollectiveAlgorithm>, int, std::int64_t, int>;
  std::map<Key, OfCollective> known_;
};

}  // namespace longhaul::collective
