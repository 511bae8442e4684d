#include "engine/payloads/collective_data_plane.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/index.hpp"
#include "plan/lowering/lower_collective.hpp"
#include "support/collectives.hpp"

namespace longhaul::engine {
namespace {

using testing::along;
using testing::flat;
using Algorithm = plan::CollectiveAlgorithm;

/// All members of a collective in one process; messages are handed on by hand.
class Members {
public:
  explicit Members(plan::Collective collective)
      : collective_{std::move(collective)},
        steps_{plan::steps_of(collective_)},
        plan_{plan::lower_collective(
                  collective_,
                  testing::scenario_of({.gpus = static_cast<int>(collective_.members.size())}))
                  .or_throw()} {
    for (const Rank member : collective_.members)
      planes_.push_back(std::make_unique<CollectiveDataPlane>(stepped(), collective_.size, member));
  }

  /// Plays the messages; `change` may alter a payload, and says whether it arrives. Returns the
  /// items that came out wrong, on all members.
  template <typename Change>
  std::int64_t play(int iteration, const Change& change) {
    for (auto& plane : planes_) plane->begin_iteration(1, iteration);
    for (std::uint32_t m = 0; m < steps_.messages.size(); ++m) {
      const plan::StepMessage& message = steps_.messages[m];
      const Payload payload = planes_[at(message.from)]->make(stepped().sends[m]);
      CollectiveDataPlane& receiver = *planes_[at(message.to)];
      Payload room = receiver.room(stepped().receives[m]);
      std::ranges::copy(payload.bytes, room.bytes.begin());
      if (!change(m, room)) continue;
      PayloadId found;
      refused_ +=
          receiver.check(stepped().receives[m], room.bytes, found) != Payloads::Verdict::right;
      receiver.deliver(stepped().receives[m], std::move(room));
    }
    std::int64_t wrong = 0;
    for (auto& plane : planes_) {
      EXPECT_TRUE(plane->end_iteration().empty());
      wrong += plane->wrong_items();
    }
    return wrong;
  }
  std::int64_t play(int iteration) {
    return play(iteration, [](std::uint32_t, Payload&) { return true; });
  }
  [[nodiscard]] int refused() const { return refused_; }
  [[nodiscard]] CollectiveDataPlane& plane(int member) { return *planes_[at(member)]; }
  [[nodiscard]] const plan::CollectiveSteps& steps() const { return steps_; }
  [[nodiscard]] const SteppedCollective& stepped() const { return plan_.stepped.front(); }

private:
  plan::Collective collective_;
  plan::CollectiveSteps steps_;
  Plan plan_;
  std::vector<std::unique_ptr<CollectiveDataPlane>> planes_;
  int refused_ = 0;
};

TEST(CollectiveDataPlane, EachKindByEachAlgorithmGivesTheRightNumbers) {
  int played = 0;
  for (const CollectiveKind kind : every<CollectiveKind>()) {
    for (const Algorithm algorithm : every<Algorithm>()) {
      for (const int members : {1, 2, 3, 8}) {
        for (const int pieces : {1, 3}) {
          const plan::Collective each = algorithm == Algorithm::hierarchical && members == 8
                                            ? along(kind, Bytes{1013}, {2, 4}, {1, 0}, {}, pieces)
                                            : flat(kind, members, Bytes{1013}, algorithm, pieces);
          if (plan::why_no_steps(each)) continue;
          Members all{each};
          EXPECT_EQ(all.play(0), 0) << to_text(kind) << ' ' << to_string(algorithm) << members;
          EXPECT_EQ(all.play(1), 0) << "another iteration has other numbers";
          EXPECT_EQ(all.refused(), 0);
          ++played;
        }
      }
    }
  }
  EXPECT_GT(played, 150);
}

// More members than bits of a word.
TEST(CollectiveDataPlane, CountsTheContributionsOfManyMembers) {
  Members all{flat(CollectiveKind::all_reduce, 70, Bytes{700}, Algorithm::ring)};
  EXPECT_EQ(all.play(0), 0);
}

TEST(CollectiveDataPlane, SeesALostMessageAWrongByteAndTheMessageOfAnotherIteration) {
  const plan::Collective ring = flat(CollectiveKind::all_reduce, 4, Bytes{64}, Algorithm::ring);
  Members lost{ring};
  EXPECT_GT(lost.play(0, [](std::uint32_t m, Payload&) { return m != 5; }), 0);
  Members damaged{ring};
  const auto flip = [](std::uint32_t m, Payload& payload) {
    if (m == 5) payload.bytes.back() ^= std::byte{1};
    return true;
  };
  // The shard that it was of is wrong on each of the four members.
  EXPECT_EQ(damaged.play(0, flip), 4);
  EXPECT_EQ(damaged.refused(), 0) << "its label was right";
  Members old{ring};
  std::vector<std::byte> kept;
  EXPECT_EQ(old.play(0,
                     [&](std::uint32_t m, Payload& payload) {
                       if (m == 5) kept.assign(payload.bytes.begin(), payload.bytes.end());
                       return true;
                     }),
            0);
  EXPECT_GT(old.play(1,
                     [&](std::uint32_t m, Payload& payload) {
                       if (m == 5) std::ranges::copy(kept, payload.bytes.begin());
                       return true;
                     }),
            0);
  EXPECT_EQ(old.refused(), 1);
}

TEST(CollectiveDataPlane, SeesAContributionThatComesTwice) {
  Members all{flat(CollectiveKind::reduce, 3, Bytes{30}, Algorithm::direct)};
  std::vector<std::byte> first;
  EXPECT_GT(all.play(0,
                     [&](std::uint32_t m, Payload& payload) {
                       if (m == 0) first.assign(payload.bytes.begin(), payload.bytes.end());
                       if (m == 1) std::ranges::copy(first, payload.bytes.begin());
                       return true;
                     }),
            0);
  EXPECT_EQ(all.refused(), 1);
}

// In an exchange the partner's numbers may be there before a member has sent its own: what it sends
// then is without them.
TEST(CollectiveDataPlane, WhatComesEarlyWaitsForTheMembersOwnMessage) {
  Members all{flat(CollectiveKind::all_reduce, 2, Bytes{16}, Algorithm::exchange)};
  all.plane(0).begin_iteration(1, 0);
  all.plane(1).begin_iteration(1, 0);
  const auto hand_on = [&](std::uint32_t m) {
    const plan::StepMessage& message = all.steps().messages[m];
    const Payload payload = all.plane(message.from).make(all.stepped().sends[m]);
    Payload room = all.plane(message.to).room(all.stepped().receives[m]);
    std::ranges::copy(payload.bytes, room.bytes.begin());
    all.plane(message.to).deliver(all.stepped().receives[m], std::move(room));
  };
  hand_on(1);  // from member 1, before member 0 has made its own
  hand_on(0);
  for (const int member : {0, 1}) {
    (void)all.plane(member).end_iteration();
    EXPECT_EQ(all.plane(member).wrong_items(), 0) << member;
  }
}

}  // namespace
}  // namespace longhaul::engine
