#include "support/ranks/on_device.hpp"

namespace longhaul::testing {
namespace {

using SpinTest = OnDevice;
constexpr std::uint64_t kMillisecond = 1'000'000;

TEST_F(SpinTest, EndsNoEarlierThanAsked) {
  for (const std::uint64_t wanted : {std::uint64_t{1}, std::uint64_t{1000}, 3 * kMillisecond}) {
    Stamped stamped{2};
    stamped.stamp();
    cuda::spin_for(wanted, stamped.stream());
    stamped.stamp();
    EXPECT_GE(stamped.at(1) - stamped.at(0), wanted);
  }
}

TEST_F(SpinTest, WaitsUntilATimeOfTheDevice) {
  Stamped stamped{2};
  stamped.stamp();
  const std::uint64_t until = stamped.at(0) + 5 * kMillisecond;
  cuda::spin_until(until, stamped.stream());
  cuda::spin_until(1, stamped.stream());  // long past
  stamped.stamp();
  EXPECT_GE(stamped.at(1), until);
}

TEST_F(SpinTest, HoldsBehindAStampOrBehindWhatWasEarlier) {
  const cuda::PinnedMemory<cuda::Stamps> stamps{2};
  Stamped stamped{1};
  cuda::stamp(&stamps[0].begin, stamped.stream());
  cuda::hold_after(&stamps[0], 0, 2 * kMillisecond, stamped.stream());
  (void)stamped.at(0);
  EXPECT_GE(stamps[0].end, stamps[0].begin + 2 * kMillisecond);

  const std::uint64_t minute = 60'000 * kMillisecond;
  const std::uint64_t from = stamps[0].end - minute;
  cuda::stamp(&stamps[1].begin, stamped.stream());
  cuda::hold_after(&stamps[1], from, minute + kMillisecond, stamped.stream());
  (void)stamped.at(0);
  EXPECT_GE(stamps[1].end, from + minute + kMillisecond);
  EXPECT_LT(stamps[1].end, stamps[1].begin + minute) << "it counts from what was earlier";
}

TEST_F(SpinTest, BlocksFollowEachOtherByTheDevicesClock) {
  const cuda::PinnedMemory<cuda::Stamps> stamps{3};
  const cuda::DeviceBuffer free_since{sizeof(std::uint64_t)};
  Stamped stamped{1};
  stamped.stamp();
  const std::uint64_t not_before = stamped.at(0) + 4 * kMillisecond;
  cuda::check(cudaMemset(free_since.data(), 0, sizeof(std::uint64_t)));
  auto* const chain = free_since.as<std::uint64_t>();
  cuda::timed_block({not_before, kMillisecond, 0}, chain, &stamps[0], stamped.stream());
  cuda::timed_block({0, kMillisecond, 0}, chain, &stamps[1], stamped.stream());
  cuda::timed_block({0, kMillisecond, 1000 * kMillisecond}, chain, &stamps[2], stamped.stream());
  (void)stamped.at(0);
  EXPECT_GE(stamps[0].begin, not_before);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_GE(stamps[i].end, stamps[i].begin + kMillisecond);
  for (std::size_t i = 1; i < 3; ++i) EXPECT_GE(stamps[i].begin, stamps[i - 1].end);
  EXPECT_GE(stamps[2].end, stamps[1].end + kMillisecond) << "what it began late is made up for";
}

}  // namespace
}  // namespace longhaul::testing
