#include "runtime/fault.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "support/plan_builder.hpp"

namespace longhaul {
namespace {

TEST(Fault, IsRead) {
  const Fault fault = parse_fault("norecv@3:10:2");
  EXPECT_EQ(fault.kind, FaultKind::no_receive);
  EXPECT_EQ(fault.rank, Rank{3});
  EXPECT_EQ(fault.op_index, 10);
  EXPECT_EQ(fault.iteration, 2);
  EXPECT_EQ(parse_fault("kill@0:1").iteration, 0);
  EXPECT_EQ(parse_fault("freeze@0:1").kind, FaultKind::freeze);
  EXPECT_EQ(parse_fault("lose@0:1").kind, FaultKind::lose);
  EXPECT_EQ(parse_fault("twice@0:1").kind, FaultKind::send_twice);
}

TEST(Fault, IsRefusedWhereItMakesNoSense) {
  for (const char* text : {"", "kill", "kill@", "kill@1", "kill@1:", "kill@1:x", "kill@1:2:3:4",
                           "stumble@1:2", "kill@-1:2", "kill@1:99999999999"})
    EXPECT_THROW((void)parse_fault(text), Error) << text;
}

TEST(Fault, StrikesOneOpOfOneRankInOneIteration) {
  bench::PlanBuilder builder{"a message", 2};
  const auto block = builder.block(1, Duration{1});
  const auto message = builder.message(0, 1, {}, {}, Bytes{1});
  const Plan plan = builder.build();
  const auto kill = parse_fault("kill@1:0:2");
  EXPECT_EQ(struck_op(kill, plan, Rank{1}, 2), builder.id(block));
  EXPECT_EQ(struck_op(kill, plan, Rank{1}, 1), std::nullopt);
  EXPECT_EQ(struck_op(kill, plan, Rank{0}, 2), std::nullopt);
  EXPECT_EQ(struck_op(parse_fault("norecv@1:0"), plan, Rank{1}, 0), builder.id(message.recv));
  EXPECT_EQ(struck_op(parse_fault("mixup@0:0"), plan, Rank{0}, 0), builder.id(message.send));
  EXPECT_EQ(struck_op(parse_fault("kill@0:0"), plan, Rank{0}, 0), std::nullopt) << "no block";
  EXPECT_EQ(struck_op(parse_fault("kill@1:9"), plan, Rank{1}, 0), std::nullopt);
}

}  // namespace
}  // namespace longhaul
