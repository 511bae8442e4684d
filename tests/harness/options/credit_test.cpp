#include "harness/options/credit.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace longhaul::harness {
namespace {

using namespace std::chrono_literals;

TEST(Credit, IsATimeFromNoneOn) {
  EXPECT_EQ(credit_of("1ms"), 1ms);
  EXPECT_EQ(credit_of("0s"), 0ns);
  EXPECT_THROW((void)credit_of("-1ms"), Error);
  EXPECT_THROW((void)credit_of("soon"), Error);
}

TEST(Credit, IsRecordedAsItWasUsed) {
  const auto json = credit_json({8, 2, 300us, 200us});
  EXPECT_EQ(json["ops"], 8);
  EXPECT_EQ(json["credited"], 2);
  EXPECT_EQ(json["total_ns"], 300'000);
  EXPECT_EQ(json["largest_ns"], 200'000);
  EXPECT_EQ(credit_text({8, 2, 300us, 200us}),
            "credit for lateness: 300 us in 2 of 8 ops, 200 us at most\n");
  EXPECT_EQ(credit_text({8, 0, 0us, 0us}), "");
}

}  // namespace
}  // namespace longhaul::harness
