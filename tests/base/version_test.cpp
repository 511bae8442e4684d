#include "base/version.hpp"

#include <string>

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace longhaul {
namespace {

TEST(SourcePlace, SaysNothingOfWhereTheSourcesLay) {
  EXPECT_EQ(source_place("/home/me/src/longhaul/src/cuda/handles.cpp", 12), "cuda/handles.cpp:12");
  EXPECT_EQ(source_place("/home/me/checkout/tests/base/x_test.cpp", 3), "x_test.cpp:3");
  EXPECT_EQ(source_place("plain.cpp", 4), "plain.cpp:4");
  const std::string here = source_place(std::source_location::current());
  EXPECT_EQ(here.substr(0, here.find(':')), "version_test.cpp");
}

/// An internal error is ours to mend, and says where it is in our source.
TEST(SourcePlaceDeathTest, OfAnInternalError) {
  EXPECT_DEATH(LONGHAUL_ASSERT(false, "values"),
               "internal error at version_test.cpp:[0-9]+ in .* false is false: values");
}

}  // namespace
}  // namespace longhaul
