#include "trace/timeline/columns.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longhaul::trace {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> names_of(ColumnSet columns) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < timeline_columns().size(); ++i)
    if ((columns >> i & 1U) != 0) names.emplace_back(timeline_columns()[i].name);
  return names;
}

TEST(Columns, OfTheFirstSchemaAreAlwaysInUse) {
  const std::vector<std::string> names = names_of(columns_in_use({}));
  EXPECT_EQ(names.size(), 26U);
  EXPECT_EQ(names.front(), "schedule");
  EXPECT_EQ(names.back(), "bound_kind");
  const std::vector<TimelineRow> rows(3);
  EXPECT_EQ(columns_in_use(rows), columns_in_use({}));
}

TEST(Columns, OfLaterSchemasAreInUseWhereARowSaysSomethingInThem) {
  std::vector<TimelineRow> rows(5);
  rows[2].version = 0;
  EXPECT_THAT(names_of(columns_in_use(rows) & ~columns_in_use({})), ElementsAre("version"));
  rows[4].collective = 0;
  rows[4].operator_index = 7;
  EXPECT_THAT(names_of(columns_in_use(rows) & ~columns_in_use({})),
              ElementsAre("collective", "operator", "version"));
  rows[0].step = rows[0].level = rows[0].layer = rows[0].slice = rows[0].outcome = 1;
  rows[0].slices = 2;
  rows[3].request = 4;
  rows[3].tokens = 512;
  EXPECT_THAT(names_of(columns_in_use(rows) & ~columns_in_use({})),
              ElementsAre("collective", "step", "level", "layer", "operator", "slice", "slices",
                          "outcome", "version", "request", "tokens"));
}

TEST(Columns, AreFilledAloneThatAreNamed) {
  TimelineRow from;
  from.step = 7;
  from.rank = 3;
  from.end_ns = 11;
  TimelineRow one_step;
  one_step.step = 7;
  const ColumnSet step = columns_in_use(std::span{&one_step, 1}) & ~columns_in_use({});
  std::vector<TimelineRow> rows(3);
  fill(from, step, rows);
  EXPECT_EQ(rows, std::vector<TimelineRow>(3, one_step));
  TimelineRow says_all;
  says_all.collective = says_all.step = says_all.level = says_all.layer = 2;
  says_all.operator_index = says_all.slice = says_all.outcome = says_all.version = 3;
  says_all.request = says_all.tokens = 5;
  says_all.slices = 4;
  const ColumnSet all = columns_in_use(std::span{&says_all, 1}) & ~columns_in_use({});
  std::vector<TimelineRow> others(3);
  others[1].rank = 5;
  std::vector<TimelineRow> expected(3, says_all);
  expected[1].rank = 5;
  fill(says_all, all, others);
  EXPECT_EQ(others, expected);
  fill(from, columns_in_use({}) | step, rows);
  EXPECT_EQ(rows, std::vector<TimelineRow>(3, from));
}

TEST(NameTable, AppendsEachNewNameOnce) {
  std::vector<std::string> names;
  NameTable table{names};
  EXPECT_EQ(table.index_of("west"), 0);
  EXPECT_EQ(table.index_of("east"), 1);
  EXPECT_EQ(table.index_of("west"), 0);
  EXPECT_THAT(names, ElementsAre("west", "east"));
}

TEST(NameTable, KnowsWhatTheTableHeldBefore) {
  std::vector<std::string> names{"compute", "send>1", "compute"};
  NameTable table{names};
  EXPECT_EQ(table.index_of("compute"), 0);  // the first of two
  EXPECT_EQ(table.index_of("recv<0"), 3);
  EXPECT_THAT(names, ElementsAre("compute", "send>1", "compute", "recv<0"));
}

}  // namespace
}  // namespace longhaul::trace
