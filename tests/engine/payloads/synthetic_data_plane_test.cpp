// Contents of messages, small ones at once and large ones by a thread: both the same.
#include "engine/payloads/synthetic_data_plane.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/index.hpp"
#include "harness/profile/plan_builder.hpp"

namespace longhaul::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Verdict = Payloads::Verdict;

constexpr std::size_t kSmall = 1000;
constexpr std::size_t kLarge = kMadeAtOnce + 12'345;

/// Messages of one size from rank 0 to rank 1, handed over by hand.
class TwoPlanes {
public:
  explicit TwoPlanes(std::size_t size, int messages = 5) {
    for (int i = 0; i < messages; ++i)
      handles_.push_back(
          builder_.message(0, 1, Duration{1}, {}, Bytes{static_cast<std::int64_t>(size)}));
    plan_ = builder_.build();
    const Bytes largest{std::int64_t{1} << 20};
    sender_.emplace(plan_, Rank{0}, 3, largest);
    receiver_.emplace(plan_, Rank{1}, 3, largest);
  }
  void begin(int iteration) {
    sender_->begin_iteration(1, iteration);
    receiver_->begin_iteration(1, iteration);
  }
  /// The receiver's first verdict on message `m`; `change` may alter it on its way.
  template <typename Change>
  Verdict pass(std::size_t m, const Change& change) {
    const Payload sent = sender_->make(builder_.id(handles_[m].send));
    Payload room = receiver_->room(recv(m));
    EXPECT_EQ(room.bytes.size(), sent.bytes.size());
    std::ranges::copy(sent.bytes, room.bytes.begin());
    change(room.bytes);
    PayloadId found;
    const Verdict verdict = receiver_->check(recv(m), room.bytes, found);
    receiver_->deliver(recv(m), std::move(room));
    return verdict;
  }
  Verdict pass(std::size_t m) {
    return pass(m, [](std::span<std::byte>) {});
  }
  [[nodiscard]] OpId recv(std::size_t m) const { return builder_.id(handles_[m].recv); }
  std::vector<OpId> found_late() {
    std::vector<OpId> late;
    for (const LateVerdict& each : receiver_->end_iteration()) late.push_back(each.recv);
    EXPECT_THAT(sender_->end_iteration(), IsEmpty());
    return late;
  }

private:
  harness::PlanBuilder builder_{"two", 2};
  std::vector<harness::PlanBuilder::Message> handles_;
  Plan plan_;
  std::optional<SyntheticDataPlane> sender_, receiver_;
};

void flip_last(std::span<std::byte> bytes) { bytes.back() ^= std::byte{1}; }
void flip_id(std::span<std::byte> bytes) { bytes.front() ^= std::byte{1}; }

TEST(SyntheticDataPlane, MakesWhatTheReceiverExpects) {
  for (const std::size_t size : {kSmall, kLarge}) {
    TwoPlanes planes{size};
    for (int iteration = 0; iteration < 3; ++iteration) {  // from the second on some are made ahead
      planes.begin(iteration);
      for (std::size_t m = 0; m < 5; ++m) EXPECT_EQ(planes.pass(m), Verdict::right) << m;
      EXPECT_THAT(planes.found_late(), IsEmpty()) << size;
    }
  }
}

TEST(SyntheticDataPlane, FindsAWrongByteAtOnceOrAtTheEnd) {
  TwoPlanes small{kSmall}, large{kLarge};
  for (TwoPlanes* planes : {&small, &large}) planes->begin(0);
  EXPECT_EQ(small.pass(2, flip_last), Verdict::corrupted);
  EXPECT_EQ(large.pass(1), Verdict::right);
  EXPECT_EQ(large.pass(2, flip_last), Verdict::right) << "not known yet";
  EXPECT_EQ(large.pass(3), Verdict::right);
  EXPECT_THAT(small.found_late(), IsEmpty());
  EXPECT_THAT(large.found_late(), ElementsAre(large.recv(2)));
  large.begin(1);
  EXPECT_EQ(large.pass(2), Verdict::right);
  EXPECT_THAT(large.found_late(), IsEmpty()) << "it was of the iteration before";
}

TEST(SyntheticDataPlane, KnowsAnotherMessageAtOnce) {
  for (const std::size_t size : {kSmall, kLarge}) {
    TwoPlanes planes{size};
    planes.begin(0);
    EXPECT_EQ(planes.pass(0, flip_id), Verdict::wrong_message);
    EXPECT_THAT(planes.found_late(), IsEmpty()) << "it counts once";
  }
}

// A send that is left out, as after a fault, leaves the ones after it right.
TEST(SyntheticDataPlane, MakesLaterOnesRightWhereOneIsLeftOut) {
  TwoPlanes planes{kLarge};
  for (int iteration = 0; iteration < 2; ++iteration) {
    planes.begin(iteration);
    for (const std::size_t m : {0U, 2U, 3U, 4U}) EXPECT_EQ(planes.pass(m), Verdict::right);
    EXPECT_THAT(planes.found_late(), IsEmpty());
  }
}

}  // namespace
}  // namespace longhaul::engine
