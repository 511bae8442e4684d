#include "plan/steps/collective_steps.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/index.hpp"
#include "plan/steps/prove.hpp"
#include "support/collectives.hpp"

namespace longhaul::plan {
namespace {

using testing::along;
using ::testing::ElementsAre;
using testing::flat;
using ::testing::HasSubstr;
using Algorithm = CollectiveAlgorithm;

std::string wrong_in(const Collective& collective) {
  const auto why = why_wrong(steps_of(collective));
  return why ? why->reason : "";
}

std::string name_of(const Collective& collective) {
  return fmt::format("{} {} of {} in {} pieces, mesh {} order {}", to_text(collective.kind),
                     to_string(collective.algorithm), collective.members.size(), collective.pieces,
                     fmt::join(collective.mesh.sizes, "x"), fmt::join(collective.mesh.order, ","));
}

/// Bytes that a member sends, of all pieces.
std::vector<std::int64_t> sent_by_member(const CollectiveSteps& steps) {
  std::vector<std::int64_t> sent(to_size(steps.members));
  for (const StepMessage& message : steps.messages) sent[at(message.from)] += message.size.count();
  return sent;
}

TEST(CollectiveSteps, EachFlatAlgorithmGivesEachMemberWhatTheKindSays) {
  int played = 0;
  for (const CollectiveKind kind : every<CollectiveKind>()) {
    for (const Algorithm algorithm : every<Algorithm>()) {
      if (algorithm == Algorithm::hierarchical) continue;
      for (int members = 1; members <= 17; ++members) {
        for (int pieces = 1; pieces <= 4; ++pieces) {
          const Collective each = flat(kind, members, Bytes{1001}, algorithm, pieces);
          if (why_no_steps(each)) continue;
          ASSERT_EQ(wrong_in(each), "") << name_of(each);
          ++played;
        }
      }
    }
  }
  EXPECT_GT(played, 1500);
}

/// Sizes of at least 2 whose product is `members`.
void append_meshes(int members, std::vector<int>& sizes, std::vector<std::vector<int>>& to) {
  if (members == 1 && sizes.size() > 1) to.push_back(sizes);
  for (int size = 2; size <= members; ++size) {
    if (members % size != 0) continue;
    sizes.push_back(size);
    append_meshes(members / size, sizes, to);
    sizes.pop_back();
  }
}

TEST(CollectiveSteps, EachMeshInEachOrderGivesEachMemberWhatTheKindSays) {
  int played = 0;
  for (int members = 4; members <= 16; ++members) {
    std::vector<std::vector<int>> meshes;
    std::vector<int> sizes;
    append_meshes(members, sizes, meshes);
    for (const auto& mesh : meshes) {
      std::vector<int> order(mesh.size());
      std::iota(order.begin(), order.end(), 0);
      do {
        for (const CollectiveKind kind : every<CollectiveKind>()) {
          for (const Algorithm first : every<Algorithm>()) {
            for (const Algorithm others :
                 {Algorithm::ring, Algorithm::direct, Algorithm::halving}) {
              std::vector<Algorithm> algorithms(mesh.size(), others);
              algorithms[at(order.back())] = first;
              for (int pieces = 1; pieces <= 4; ++pieces) {
                const Collective each = along(kind, Bytes{997}, mesh, order, algorithms, pieces);
                if (why_no_steps(each)) continue;
                ASSERT_EQ(wrong_in(each), "") << name_of(each) << to_string(first);
                ++played;
              }
            }
          }
        }
      } while (std::ranges::next_permutation(order).found);
    }
  }
  EXPECT_GT(played, 8000);
}

// In step k of an all-gather shard i-k goes to i+1, of a reduce-scatter
// i-k-1.
TEST(CollectiveSteps, ARingPassesShardsOn) {
  for (const auto& [kind, offset] :
       {std::pair{CollectiveKind::all_gather, 0}, {CollectiveKind::reduce_scatter, 1}}) {
    const CollectiveSteps steps = steps_of(flat(kind, 5, Bytes{5}, Algorithm::ring));
    ASSERT_EQ(steps.messages.size(), 20U);
    for (const StepMessage& message : steps.messages) {
      EXPECT_EQ(message.to, (message.from + 1) % 5);
      const auto ranges = steps.ranges_of(message);
      ASSERT_EQ(ranges.size(), 1U);
      EXPECT_EQ(ranges[0].count, 1U);
      EXPECT_EQ(static_cast<int>(ranges[0].first), (message.from - message.step - offset + 10) % 5);
    }
  }
}

TEST(CollectiveSteps, ShardsOfSizesThatDoNotDivide) {
  const CollectiveSteps steps =
      steps_of(flat(CollectiveKind::all_gather, 4, Bytes{10}, Algorithm::direct));
  EXPECT_THAT(sent_by_member(steps), ElementsAre(9, 9, 6, 6));  // shards of 3, 3, 2, 2
  const CollectiveSteps pieces =
      steps_of(flat(CollectiveKind::all_gather, 4, Bytes{10}, Algorithm::direct, 3));
  EXPECT_THAT(sent_by_member(pieces), ElementsAre(9, 9, 6, 6)) << "a shard stays what it is";
  EXPECT_EQ(pieces.messages.back().size, Bytes{0}) << "2 bytes in 3 pieces";
}

// Closed forms of bytes: a ring and halving send (n-1)/n of the vector a phase, an exchange the
// vector log2 n times, a tree the vector to each of n-1 members.
TEST(CollectiveSteps, SendTheBytesOfTheirClosedForms) {
  const std::int64_t size = 8 * 7 * 6 * 5 * 16;
  const auto total = [&](CollectiveKind kind, int members, Algorithm algorithm) {
    const auto sent = sent_by_member(steps_of(flat(kind, members, Bytes{size}, algorithm)));
    return std::accumulate(sent.begin(), sent.end(), std::int64_t{0});
  };
  for (const int n : {2, 4, 8, 16}) {
    for (const Algorithm algorithm : {Algorithm::ring, Algorithm::halving, Algorithm::direct}) {
      EXPECT_EQ(total(CollectiveKind::all_gather, n, algorithm), (n - 1) * size);
      EXPECT_EQ(total(CollectiveKind::reduce_scatter, n, algorithm), (n - 1) * size);
      EXPECT_EQ(total(CollectiveKind::all_reduce, n, algorithm), 2 * (n - 1) * size);
    }
    const auto doublings = std::countr_zero(static_cast<unsigned>(n));
    EXPECT_EQ(total(CollectiveKind::all_reduce, n, Algorithm::exchange), n * doublings * size);
    EXPECT_EQ(total(CollectiveKind::all_to_all, n, Algorithm::direct), (n - 1) * size);
    EXPECT_EQ(total(CollectiveKind::all_to_all, n, Algorithm::ring), n * (n - 1) / 2 * size);
    for (const Algorithm algorithm :
         {Algorithm::ring, Algorithm::direct, Algorithm::tree, Algorithm::double_tree}) {
      EXPECT_EQ(total(CollectiveKind::broadcast, n, algorithm), (n - 1) * size);
      EXPECT_EQ(total(CollectiveKind::reduce, n, algorithm), (n - 1) * size);
    }
    EXPECT_EQ(total(CollectiveKind::all_reduce, n, Algorithm::double_tree), 2 * (n - 1) * size);
  }
  EXPECT_EQ(total(CollectiveKind::gather, 8, Algorithm::direct), size / 8 * 7);
  EXPECT_EQ(total(CollectiveKind::scatter, 8, Algorithm::tree), size / 8 * 12);
}

// A mesh sends along each dimension what a flat ring of that size would: near first, the far
// dimension carries the least.
TEST(CollectiveSteps, AMeshSendsLeastAlongTheDimensionThatAReductionTakesLast) {
  const Collective near_first = along(CollectiveKind::all_reduce, Bytes{3200}, {4, 8}, {1, 0});
  const CollectiveSteps steps = steps_of(near_first);
  std::map<bool, std::int64_t> bytes;  // by: along the far dimension
  for (const StepMessage& message : steps.messages)
    bytes[message.from / 8 != message.to / 8] += message.size.count();
  EXPECT_EQ(bytes[false], 32 * 2 * 3200 * 7 / 8);
  EXPECT_EQ(bytes[true], 32 * 2 * (3200 / 8) * 3 / 4);
}

/// From, to, step and size of each message.
std::vector<std::tuple<int, int, int, std::int64_t>> messages_of(const Collective& collective) {
  std::vector<std::tuple<int, int, int, std::int64_t>> all;
  for (const StepMessage& message : steps_of(collective).messages)
    all.emplace_back(message.from, message.to, message.step, message.size.count());
  return all;
}

// An algorithm that a kind does not have along a dimension is refused, and is not another one.
TEST(CollectiveSteps, EachAlgorithmAlongADimensionSendsOtherMessages) {
  for (const CollectiveKind kind : every<CollectiveKind>()) {
    std::map<std::vector<std::tuple<int, int, int, std::int64_t>>, Algorithm> seen;
    for (const Algorithm algorithm : every<Algorithm>()) {
      const Collective each =
          along(kind, Bytes{1024}, {2, 8}, {0, 1}, {Algorithm::ring, algorithm});
      if (why_no_steps(each)) continue;
      const auto [other, is_new] = seen.try_emplace(messages_of(each), algorithm);
      EXPECT_TRUE(is_new) << to_text(kind) << ": " << to_string(algorithm) << " is "
                          << to_string(other->second);
    }
    EXPECT_GE(seen.size(), 2U);
  }
}

TEST(CollectiveSteps, SayWhyThereAreNone) {
  const auto why = [](const Collective& collective) {
    const auto refusal = why_no_steps(collective);
    return refusal ? refusal->reason : "";
  };
  EXPECT_EQ(why(along(CollectiveKind::all_gather, Bytes{8}, {2, 2}, {0, 1})), "");
  Collective wrong = along(CollectiveKind::all_gather, Bytes{8}, {2, 3}, {0, 1});
  wrong.members.pop_back();
  EXPECT_EQ(why(wrong),
            "a mesh of 2x3 has 6 places and the group 5 members. Give sizes whose product is 5.");
  // 2^32 + 4 places.
  wrong = flat(CollectiveKind::all_gather, 4, Bytes{8}, Algorithm::hierarchical);
  wrong.mesh = {{5002, 858'650}, {0, 1}, {Algorithm::ring, Algorithm::ring}};
  EXPECT_EQ(why(wrong),
            "a mesh of 5002x858650 has more than 2147483647 places and the group 4 members. Give "
            "sizes whose product is 4.");
  EXPECT_THAT(why(flat(CollectiveKind::all_reduce, 6, Bytes{8}, Algorithm::halving)),
              HasSubstr("6 members are no power of 2"));
  EXPECT_EQ(why(flat(CollectiveKind::all_reduce, 4, Bytes{3}, Algorithm::ring, 4)),
            "4 pieces are more than 3 bytes. Use fewer pieces.");
  EXPECT_EQ(why(flat(CollectiveKind::all_gather, 4, Bytes{8}, Algorithm::exchange)),
            "all-gather has no algorithm exchange. It has ring, halving, direct, hierarchical.");
  EXPECT_THAT(why(along(CollectiveKind::all_reduce, Bytes{8}, {2, 2}, {1, 0},
                        {Algorithm::ring, Algorithm::exchange})),
              HasSubstr("dimension 1 is exchanged whole, which comes last"));
  EXPECT_THAT(why(along(CollectiveKind::all_reduce, Bytes{8}, {2, 2}, {1, 1})),
              HasSubstr("does not name each of the 2 dimensions once"));
  wrong = flat(CollectiveKind::all_gather, 2, Bytes{8}, Algorithm::ring);
  wrong.members = {Rank{3}, Rank{3}};
  EXPECT_EQ(why(wrong), "rank 3 stands twice in the group. Name each once.");
  wrong.members = {Rank{3}, Rank{2}};
  EXPECT_THAT(why(wrong), HasSubstr("ascending order"));
}

}  // namespace
}  // namespace longhaul::plan
