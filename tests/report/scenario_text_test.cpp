#include "report/scenario_text.hpp"

#include <gtest/gtest.h>

namespace longhaul::report {
namespace {

TEST(Words, CountsInSingularAndPlural) {
  EXPECT_EQ(counted(1, "stage"), "1 stage");
  EXPECT_EQ(counted(4, "stage"), "4 stages");
  EXPECT_EQ(counted(0, "WAN crossing"), "0 WAN crossings");
  EXPECT_EQ(counted(1, "microbatch"), "1 microbatch");
  EXPECT_EQ(counted(8, "microbatch"), "8 microbatches");
}

}  // namespace
}  // namespace longhaul::report
