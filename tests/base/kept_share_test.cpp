#include "base/kept_share.hpp"

#include <gtest/gtest.h>

namespace longhaul {
namespace {

TEST(KeptShare, IsReadAsPercentOrNumberAlone) {
  EXPECT_EQ(kept_share_in("1%"), 0.01);
  EXPECT_EQ(kept_share_in("0.25"), 0.25);
  for (const char* text : {"", "%", "1 %", "1%%", "one", "nan", "inf", "0x1"})
    EXPECT_EQ(kept_share_in(text), std::nullopt) << text;
}

TEST(KeptShare, IsOfSomeAtMostAll) {
  EXPECT_TRUE(is_kept_share(1));
  EXPECT_FALSE(is_kept_share(0));
  EXPECT_FALSE(is_kept_share(1.01));
  EXPECT_TRUE(is_kept_block(2));
  EXPECT_FALSE(is_kept_block(3));
}

TEST(BlocksToKeep, AreFlooredButNeverNone) {
  EXPECT_EQ(blocks_to_keep(8, 0.5, 2), 2);
  EXPECT_EQ(blocks_to_keep(86'567'648, 0.01, 16), 54'104);
  EXPECT_EQ(blocks_to_keep(86'567'648, 0.01, 1), 865'676);
  EXPECT_EQ(blocks_to_keep(100, 0.29, 1), 29);  // 28.999999999999996 in fp64
  EXPECT_EQ(blocks_to_keep(15, 0.01, 16), 1);
  EXPECT_EQ(blocks_to_keep(10, 0.99, 4), 2);
  EXPECT_EQ(blocks_to_keep(10, 1, 4), 3) << "the short last one too";
  EXPECT_EQ(blocks_to_keep(0, 0.5, 4), 0);
}

}  // namespace
}  // namespace longhaul
