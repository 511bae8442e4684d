#include "trace/timeline/columns.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longhaul::trace {
namespace {

using ::testing::ElementsAre;

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
