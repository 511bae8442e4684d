#include "cuda/lane_pacer.hpp"

#include "support/ranks/on_device.hpp"

namespace longhaul::testing {
namespace {

using namespace std::chrono_literals;
using cuda::LanePacer;

class LanePacerTest : public OnDevice {
protected:
  static cuda::LanePacer::Over wait_for(cuda::LanePacer& pacer,
                                        cuda::LanePacer::Transfer transfer) {
    for (;;)
      if (const auto over = pacer.over(transfer)) return *over;
  }
};

TEST_F(LanePacerTest, HoldsALaneForWhatTheTransferLeaves) {
  cuda::LanePacer pacer{0, 4};
  const cuda::Stream lane;
  const auto transfer = pacer.begin(lane.get());
  cuda::spin_for(3'000'000, lane.get());  // what the bytes take
  pacer.hold(transfer, lane.get(), {LaneId{0}, 8ms, {}});
  const cuda::LanePacer::Over over = wait_for(pacer, transfer);
  EXPECT_GE(over.transferred - over.begin, 3ms - 2ns);
  EXPECT_GE(over.over - over.begin, 8ms - 2ns);
  EXPECT_GE(over.over, over.transferred);
}

TEST_F(LanePacerTest, ATransferThatTakesLongerIsNotHeld) {
  cuda::LanePacer pacer{0, 4};
  const cuda::Stream lane;
  const auto transfer = pacer.begin(lane.get());
  cuda::spin_for(5'000'000, lane.get());
  pacer.hold(transfer, lane.get(), {LaneId{0}, 1ms, {}});
  const cuda::LanePacer::Over over = wait_for(pacer, transfer);
  EXPECT_GE(over.transferred - over.begin, 5ms - 2ns);
  EXPECT_GE(over.over, over.transferred);
}

TEST_F(LanePacerTest, CountsFromWhenTheLaneBecameFree) {
  cuda::LanePacer pacer{0, 4};
  const cuda::Stream lane;
  const TimePoint from = now() - 60s;
  const auto transfer = pacer.begin(lane.get());
  pacer.hold(transfer, lane.get(), {LaneId{0}, 60s + 5ms, from});
  const cuda::LanePacer::Over over = wait_for(pacer, transfer);
  EXPECT_GE(over.over, from + 60s + 5ms - clock().largest_error());
  EXPECT_LT(over.over - over.begin, 60s);
}

TEST_F(LanePacerTest, TransfersOfOneLaneGoInTurnAndOfTwoLanesSideBySide) {
  cuda::LanePacer pacer{0, 8};
  const cuda::Stream one, other;
  std::vector<cuda::LanePacer::Transfer> transfers;
  for (const cuda::Stream* lane : {&one, &one, &other}) {
    transfers.push_back(pacer.begin(lane->get()));
    pacer.hold(transfers.back(), lane->get(), {LaneId{0}, 200ms, {}});
  }
  const cuda::LanePacer::Over first = wait_for(pacer, transfers[0]);
  const cuda::LanePacer::Over second = wait_for(pacer, transfers[1]);
  const cuda::LanePacer::Over third = wait_for(pacer, transfers[2]);
  EXPECT_GE(second.begin, first.over);
  EXPECT_LT(third.begin, second.over) << "another lane is not held up";
}

TEST_F(LanePacerTest, UsesItsPlacesAgain) {
  cuda::LanePacer pacer{0, 2};
  const cuda::Stream lane;
  for (int i = 0; i < 20; ++i) {
    const auto a = pacer.begin(lane.get());
    pacer.hold(a, lane.get(), {LaneId{0}, {}, {}});
    const auto b = pacer.begin(lane.get());
    pacer.hold(b, lane.get(), {LaneId{0}, 100us, {}});
    EXPECT_LE(wait_for(pacer, a).over, wait_for(pacer, b).begin);
  }
}

}  // namespace
}  // namespace longhaul::testing
