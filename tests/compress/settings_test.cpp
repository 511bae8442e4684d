#include "compress/settings.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace longhaul::compress {
namespace {

TEST(Keep, IsAShare) {
  EXPECT_EQ(parse_keep("--keep", "1%"), 0.01);
  EXPECT_EQ(parse_keep("--keep", "0.25"), 0.25);
  EXPECT_EQ(parse_keep("--keep", "100%"), 1);
  for (const char* text :
       {"0", "0%", "101%", "1.5", "-1%", "nan", "inf", "", "%", "one", "1 %%", " 1%", "0x1%"})
    EXPECT_THROW(static_cast<void>(parse_keep("--keep", text)), Error) << text;
}

TEST(Settings, AreRefusedWhereTheyCannotBe) {
  EXPECT_NO_THROW(check(Settings{}));
  EXPECT_THROW(check(Settings{.block = 3}), Error);
  EXPECT_THROW(check(Settings{.block = 32}), Error);
  EXPECT_THROW(check(Settings{.keep = 0}), Error);
  EXPECT_THROW(check(Settings{.method = Method::topk, .block = 16}), Error);
}

}  // namespace
}  // namespace longhaul::compress
