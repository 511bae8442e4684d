#include "engine/tags.hpp"

#include <gtest/gtest.h>

#include "harness/profile/plan_builder.hpp"

namespace longhaul::engine {
namespace {

// Receives of words on leases are posted ahead: no message may come in their place, also where a
// transport has few tags and those of messages repeat.
TEST(Tags, OfLeasesAreOfNoMessage) {
  harness::PlanBuilder builder{"many", 2};
  std::vector<harness::PlanBuilder::Message> messages;
  for (int i = 0; i < 40; ++i) messages.push_back(builder.message(0, 1, Duration{1}, {}, {}));
  const Plan plan = builder.build();
  for (const int count : {16, 17, 18, 19, 100, 1 << 20}) {
    const Tags tags{plan, 2, count};
    const LeaseWords::Tags leases = tags.leases();
    EXPECT_NE(leases.to_home, leases.from_home);
    for (const int tag : {leases.to_home, leases.from_home}) {
      EXPECT_GE(tag, 0);
      EXPECT_LT(tag, count);
      for (const auto& message : messages) {
        EXPECT_NE(tag, tags.header(Rank{0}, builder.id(message.send)));
        EXPECT_NE(tag, tags.payload(Rank{0}, builder.id(message.send)));
        EXPECT_NE(tag, tags.go_ahead(Rank{0}, builder.id(message.send)));
      }
      for (std::uint32_t number = 0; number < 100; ++number) EXPECT_NE(tag, tags.barrier(number));
    }
  }
}

}  // namespace
}  // namespace longhaul::engine
