#include "engine/payloads/fault.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "device/cpu_devices.hpp"
#include "device/failing_device.hpp"
#include "support/ranks/relayed_message.hpp"

namespace longhaul::engine {
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
  EXPECT_EQ(parse_fault("device@0:1").kind, FaultKind::device);
  EXPECT_EQ(parse_fault("kill@0:send3:1").aim, FaultAim::send);
  EXPECT_EQ(parse_fault("kill@0:recv3:1").aim, FaultAim::recv);
  EXPECT_EQ(parse_fault("freeze@0:write0:1").aim, FaultAim::write);
}

TEST(Fault, IsRefusedWhereItMakesNoSense) {
  for (const char* text :
       {"", "kill", "kill@", "kill@1", "kill@1:", "kill@1:x", "kill@1:2:3:4", "stumble@1:2",
        "kill@-1:2", "kill@1:99999999999", "kill@1:wan", "kill@1:pan2", "lose@1:send2",
        "lose@1:recv2", "kill@1:send", "device@1:write0", "kill@1:relaywan2", "wan@1:2"})
    EXPECT_THROW((void)parse_fault(text), Error) << text;
}

TEST(Fault, StrikesOneOpOfOneRankInOneIteration) {
  harness::PlanBuilder builder{"a message", 2};
  const auto block = builder.block(1, Duration{1});
  const auto message = builder.message(0, 1, {}, {}, Bytes{1});
  const Plan plan = builder.build();
  const auto kill = parse_fault("kill@1:0:2");
  EXPECT_EQ(find_fault_op(kill, plan, Rank{1}, 2), builder.id(block));
  EXPECT_EQ(find_fault_op(kill, plan, Rank{1}, 1), std::nullopt);
  EXPECT_EQ(find_fault_op(kill, plan, Rank{0}, 2), std::nullopt);
  EXPECT_EQ(find_fault_op(parse_fault("norecv@1:0"), plan, Rank{1}, 0), builder.id(message.recv));
  EXPECT_EQ(find_fault_op(parse_fault("mixup@0:0"), plan, Rank{0}, 0), builder.id(message.send));
  EXPECT_EQ(find_fault_op(parse_fault("kill@0:0"), plan, Rank{0}, 0), std::nullopt) << "no block";
  EXPECT_EQ(find_fault_op(parse_fault("device@1:0"), plan, Rank{1}, 0), builder.id(block));
  EXPECT_EQ(find_fault_op(parse_fault("kill@0:send0"), plan, Rank{0}, 0), builder.id(message.send));
  EXPECT_EQ(find_fault_op(parse_fault("kill@0:send1"), plan, Rank{0}, 0), std::nullopt);
  EXPECT_EQ(find_fault_op(parse_fault("kill@1:recv0"), plan, Rank{1}, 0), builder.id(message.recv));
  const auto write = parse_fault("kill@1:write0:2");
  EXPECT_EQ(find_fault_op(write, plan, Rank{1}, 2), std::nullopt) << "no op of the plan";
  EXPECT_TRUE(strikes_write(write, Rank{1}, 2));
  EXPECT_FALSE(strikes_write(write, Rank{0}, 2));
  EXPECT_FALSE(strikes_write(write, Rank{1}, 1));
  EXPECT_EQ(find_fault_op(parse_fault("kill@1:9"), plan, Rank{1}, 0), std::nullopt);
}

TEST(Fault, ADeviceFailsFromTheStruckBlockOn) {
  harness::PlanBuilder builder{"two blocks", 1};
  builder.block(0, Duration{1});
  const auto second = builder.block(0, Duration{1});
  const Plan plan = builder.build();
  device::FailingDevice device{std::make_unique<device::TimedDevice>(), plan, Rank{0},
                               parse_fault("device@0:1:2")};
  const auto play = [&](OpId op) {
    const TimePoint at = now();
    device.start(op, at, Duration{1});
    return device.finished(at + Duration{1});
  };
  device.begin_iteration(1);
  EXPECT_EQ(play(builder.id(second))->op, builder.id(second)) << "another iteration";
  device.begin_iteration(2);
  EXPECT_EQ(play(OpId{0})->op, OpId{0});
  try {
    (void)play(builder.id(second));
    ADD_FAILURE() << "nothing failed";
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.op(), builder.id(second));
    EXPECT_EQ(error.code(), ExitCode::run_failed);
  }
  device.begin_iteration(3);
  EXPECT_THROW((void)play(OpId{0}), DeviceError) << "it sticks";
}

TEST(Fault, AimsAtALegOrAtWhatIsRelayed) {
  testing::RelayedMessage way{0};
  way.add(1, 3, Duration{1});  // of the other pipeline: relayed by ranks 0 and 1
  const Plan plan = way.builder.build();
  const auto fault_op = [&](const char* fault, int rank) {
    return find_fault_op(parse_fault(fault), plan, Rank{rank}, 0);
  };
  EXPECT_EQ(fault_op("lose@0:relay0", 0), way.builder.id(way.wan.send));
  EXPECT_EQ(fault_op("kill@0:relay0", 0), way.builder.id(way.wan.send)) << "in mid-relay";
  EXPECT_EQ(fault_op("lose@0:relay1", 0), std::nullopt) << "it takes on one piece";
  EXPECT_EQ(fault_op("norecv@0:relay0", 0), way.builder.id(way.scatter.recv));
  EXPECT_EQ(fault_op("corrupt@1:gather0", 1), way.builder.id(way.gather.send));
  EXPECT_EQ(fault_op("norecv@3:gather0", 3), way.builder.id(way.gather.recv));
  EXPECT_EQ(fault_op("twice@2:scatter0:0", 2), way.builder.id(way.scatter.send));
  EXPECT_EQ(fault_op("lose@2:wan1", 2), way.builder.id(way.own.send))
      << "its own piece comes after the one that it took on";
  EXPECT_EQ(fault_op("kill@1:0", 1), fault_op("kill@1:0:0", 1)) << "a block, as ever";
}

}  // namespace
}  // namespace longhaul::engine
