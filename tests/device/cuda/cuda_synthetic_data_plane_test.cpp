#include "device/cuda/cuda_synthetic_data_plane.hpp"

#include <cstring>

#include "harness/profile/plan_builder.hpp"
#include "support/ranks/on_device.hpp"

namespace longhaul::testing {
namespace {

using namespace std::chrono_literals;
using harness::PlanBuilder;
constexpr std::uint64_t kSeed = 7;
constexpr Bytes kLargest{10'000};

/// The messages of rank 0 to rank 1, by hand.
class DeviceCargoTest : public OnDevice {
protected:
  DeviceCargoTest() {
    harness::PlanBuilder b{"test", 2};
    std::vector<harness::PlanBuilder::Message> made;
    for (const std::int64_t size : {std::int64_t{1}, std::int64_t{777}, std::int64_t{1} << 30})
      made.push_back(b.message(0, 1, 1ms, 1ms, Bytes{size}));
    plan = b.build();
    for (const auto& message : made) {
      sends.push_back(b.id(message.send));
      recvs.push_back(b.id(message.recv));
    }
  }
  /// The transport's part.
  static engine::Payload carry(device::CudaSyntheticDataPlane& to, OpId recv,
                               const engine::Payload& payload) {
    engine::Payload room = to.room(recv);
    EXPECT_EQ(room.bytes.size(), payload.bytes.size());
    cuda::check(cudaMemcpy(room.bytes.data(), payload.bytes.data(), payload.bytes.size(),
                           cudaMemcpyDeviceToDevice));
    return room;
  }
  static std::vector<std::byte> on_host(const engine::Payload& payload) {
    std::vector<std::byte> bytes(payload.bytes.size());
    cuda::check(
        cudaMemcpy(bytes.data(), payload.bytes.data(), bytes.size(), cudaMemcpyDeviceToHost));
    return bytes;
  }

  Plan plan;
  std::vector<OpId> sends, recvs;
};

TEST_F(DeviceCargoTest, MakesWhatTheHostWouldMake) {
  device::CudaSyntheticDataPlane device{0, plan, Rank{0}, kSeed, kLargest};
  engine::SyntheticDataPlane host{plan, Rank{0}, kSeed, kLargest};
  for (int iteration = 0; iteration < 2; ++iteration) {
    device.begin_iteration(3, iteration);
    host.begin_iteration(3, iteration);
    for (const OpId send : sends) {
      const engine::Payload expected = host.make(send);
      EXPECT_EQ(on_host(device.make(send)),
                std::vector<std::byte>(expected.bytes.begin(), expected.bytes.end()));
    }
    EXPECT_TRUE(device.end_iteration().empty());
  }
}

TEST_F(DeviceCargoTest, FindsWhatIsWrongAndNothingElse) {
  device::CudaSyntheticDataPlane from{0, plan, Rank{0}, kSeed, kLargest};
  device::CudaSyntheticDataPlane to{0, plan, Rank{1}, kSeed, kLargest};
  for (int iteration = 0; iteration < 3; ++iteration) {
    from.begin_iteration(0, iteration);
    to.begin_iteration(0, iteration);
    for (std::size_t i = 0; i < sends.size(); ++i) {
      engine::Payload payload = from.make(sends[i]);
      if (iteration == 1 && i == 1) from.corrupt(sends[i], engine::FaultKind::corrupt, payload);
      if (iteration == 1 && i == 2) from.corrupt(sends[i], engine::FaultKind::mislabel, payload);
      engine::PayloadId found;
      EXPECT_EQ(to.check(recvs[i], carry(to, recvs[i], payload).bytes, found),
                engine::Payloads::Verdict::right)
          << "not known yet";
    }
    const std::vector<engine::LateVerdict> wrong = to.end_iteration();
    if (iteration != 1) {
      EXPECT_TRUE(wrong.empty());
      continue;
    }
    ASSERT_EQ(wrong.size(), 2U);
    EXPECT_EQ(wrong[0].recv, recvs[1]);
    EXPECT_EQ(wrong[0].verdict, engine::Payloads::Verdict::corrupted);
    EXPECT_EQ(wrong[1].recv, recvs[2]);
    EXPECT_EQ(wrong[1].verdict, engine::Payloads::Verdict::wrong_message);
    engine::PayloadId other = engine::payload_id(plan, sends[2], 0, iteration);
    ++other.microbatch;
    EXPECT_EQ(wrong[1].found, other) << "it says which one came";
  }
}

TEST_F(DeviceCargoTest, TellsAtOnceWhatIsTooShort) {
  device::CudaSyntheticDataPlane to{0, plan, Rank{1}, kSeed, kLargest};
  to.begin_iteration(0, 0);
  const engine::Payload room = to.room(recvs[0]);
  engine::PayloadId found;
  EXPECT_EQ(to.check(recvs[0], room.bytes.first(3), found), engine::Payloads::Verdict::corrupted);
  EXPECT_TRUE(to.end_iteration().empty());
}

}  // namespace
}  // namespace longhaul::testing
