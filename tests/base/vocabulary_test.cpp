#include "base/vocabulary.hpp"

#include <set>
#include <utility>

#include <gmock/gmock.h>

namespace longhaul {
namespace {

/// Numbers in traces: a number never changes, and none is used again.
TEST(Vocabulary, KeepsTheNumbersOfTraces) {
  const std::pair<const char*, int> kinds[] = {{"F", 0},
                                               {"B", 1},
                                               {"D", 2},
                                               {"W", 3},
                                               {"R", 4},
                                               {"send", 5},
                                               {"recv", 6},
                                               {"all_gather", 7},
                                               {"reduce_scatter", 8},
                                               {"all_reduce", 9},
                                               {"broadcast", 10},
                                               {"reduce", 11},
                                               {"gather", 12},
                                               {"scatter", 13},
                                               {"all_to_all", 14},
                                               {"host_task", 15},
                                               {"copy", 16},
                                               {"copy_out", 17},
                                               {"host_gather", 18},
                                               {"compress", 19},
                                               {"merge", 20},
                                               {"optimize", 21},
                                               {"copy_in", 22},
                                               {"prefill", 23}};
  for (const auto& [name, number] : kinds) {
    EXPECT_STREQ(to_string(static_cast<RowKind>(number)), name);
    EXPECT_EQ(from_string<RowKind>(name), static_cast<RowKind>(number));
  }
  const std::pair<const char*, int> legs[] = {
      {"whole", 0}, {"scatter", 1}, {"wan", 2}, {"gather", 3}};
  for (const auto& [name, number] : legs)
    EXPECT_EQ(from_string<MessageLeg>(name), static_cast<MessageLeg>(number));
  const std::pair<const char*, int> outcomes[] = {
      {"ran", 0}, {"withdrawn", 1}, {"late", 2}, {"skipped", 3}, {"undrawn", 4}};
  for (const auto& [name, number] : outcomes)
    EXPECT_EQ(from_string<Outcome>(name), static_cast<Outcome>(number));
  const std::pair<const char*, int> levels[] = {{"node", 0}, {"datacenter", 1}, {"wan", 2}};
  for (const auto& [name, number] : levels)
    EXPECT_EQ(from_string<NetworkLevel>(name), static_cast<NetworkLevel>(number));
}

TEST(Vocabulary, EachRowIsOfABlockAMessageACollectiveOrATask) {
  std::set<RowKind> rows{RowKind::send, RowKind::recv};
  for (const BlockKind kind : every<BlockKind>()) {
    EXPECT_TRUE(is_compute(row_kind_of(kind)));
    EXPECT_STREQ(to_string(row_kind_of(kind)), to_string(kind));
    rows.insert(row_kind_of(kind));
  }
  for (const CollectiveKind kind : every<CollectiveKind>()) {
    EXPECT_TRUE(is_collective(row_kind_of(kind)));
    EXPECT_STREQ(to_string(row_kind_of(kind)), to_string(kind));
    rows.insert(row_kind_of(kind));
  }
  for (const TaskKind kind : every<TaskKind>()) {
    EXPECT_TRUE(is_task(row_kind_of(kind)));
    EXPECT_STREQ(to_string(row_kind_of(kind)), to_string(kind));
    rows.insert(row_kind_of(kind));
  }
  EXPECT_EQ(rows.size(), static_cast<std::size_t>(kCountOf<RowKind>));
}

TEST(Vocabulary, AReduceScatterAndAnAllGatherAreAnAllReduce) {
  const CollectiveFacts& gather = facts_of(CollectiveKind::all_gather);
  const CollectiveFacts& scatter = facts_of(CollectiveKind::reduce_scatter);
  const CollectiveFacts& reduce = facts_of(CollectiveKind::all_reduce);
  EXPECT_EQ(reduce.rounds, gather.rounds + scatter.rounds);
  EXPECT_EQ(scatter.brought(12, 4, 3), 12U);
  EXPECT_EQ(scatter.got(12, 4, 3), 3U);
  EXPECT_EQ(gather.brought(12, 4, 3), 3U);
  EXPECT_EQ(gather.got(12, 4, 3), 12U);
  EXPECT_EQ(reduce.brought(12, 4, 0), reduce.got(12, 4, 0));
  EXPECT_TRUE(is_before_forward(CollectiveKind::all_gather));
  EXPECT_FALSE(is_before_forward(CollectiveKind::all_reduce));
}

TEST(Vocabulary, KnowsHowManyBytesANumberTakes) {
  EXPECT_EQ(bytes_of(NumberType::f32), 4U);
  EXPECT_EQ(bytes_of(NumberType::bf16), 2U);
  EXPECT_EQ(bytes_of(NumberType::i32), 4U);
  EXPECT_EQ(bytes_of(NumberType::i64), 8U);
}

}  // namespace
}  // namespace longhaul
