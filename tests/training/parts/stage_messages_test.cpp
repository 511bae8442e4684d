#include "training/parts/stage_messages.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compress/wire/values.hpp"
#include "scenario/training/activation_sizes.hpp"
#include "training/parts/replicas.hpp"

namespace longhaul::training {
namespace {

using ::testing::ElementsAre;

constexpr OpId kSend{4}, kReceive{9};

ActivationCompression largest(double keep, ActivationFeedback feedback) {
  return {ActivationFormat::topk, keep, feedback};
}

/// One message again and again, and what its receiver makes of it.
class Edge {
public:
  explicit Edge(const ActivationCompression& how) : sender{how}, receiver{how} {}
  std::vector<float> pass(const std::vector<float>& numbers) {
    const auto payload = sender.sent(kSend, numbers);
    bytes = payload.size();
    EXPECT_TRUE(sender.fits(bytes, numbers.size()));
    return receiver.received(kReceive, payload, numbers.size(), "a sender");
  }
  StageMessages sender, receiver;
  std::size_t bytes = 0;
};

/// As of a gradient: what is left out is added to the next message.
TEST(StageMessages, SendWhatWasLeftOutLater) {
  Edge edge{largest(0.5, ActivationFeedback::residual)};
  const std::vector<float> again{1, 0.625};
  EXPECT_THAT(edge.pass(again), ElementsAre(1, 0));
  EXPECT_THAT(edge.pass(again), ElementsAre(0, 1.25));
  EXPECT_THAT(edge.pass(again), ElementsAre(2, 0));
  EXPECT_THAT(edge.pass(again), ElementsAre(0, 1.25));
}

/// What does not change need not be sent again.
TEST(StageMessages, SendDifferencesFromWhatHasArrived) {
  Edge edge{largest(0.5, ActivationFeedback::difference)};
  EXPECT_THAT(edge.pass({1, 0.625}), ElementsAre(1, 0));
  EXPECT_THAT(edge.pass({1, 0.625}), ElementsAre(1, 0.625));
  EXPECT_THAT(edge.pass({1.5, 0.625}), ElementsAre(1.5, 0.625));
  EXPECT_THAT(edge.pass({4, 2.625}), ElementsAre(4, 0.625));
}

TEST(StageMessages, WithoutFeedbackForgetWhatIsLeftOut) {
  Edge edge{largest(0.5, ActivationFeedback::none)};
  for (int i = 0; i < 3; ++i) EXPECT_THAT(edge.pass({1, 0.625}), ElementsAre(1, 0));
  Edge bytes{{ActivationFormat::int8, 0.5, ActivationFeedback::residual}};
  const std::vector<float> once = bytes.pass(drawn(200, 1));
  EXPECT_EQ(bytes.pass(drawn(200, 1)), once) << "feedback is of topk";
}

/// Nothing gets lost, and no two messages share what waits.
TEST(StageMessages, KeepAllThatWaitsOfEachMessage) {
  StageMessages messages{largest(0.1, ActivationFeedback::residual)};
  std::vector<double> missing(300);
  for (std::uint64_t i = 0; i < 40; ++i) {
    const std::vector<float> numbers = drawn(300, i);
    const auto payload = messages.sent(kSend, numbers);
    const auto sent = messages.received(kReceive, payload, 300, "a sender");
    (void)messages.sent(OpId{5}, drawn(300, 100 + i));
    for (std::size_t n = 0; n < 300; ++n)
      missing[n] += static_cast<double>(numbers[n]) - static_cast<double>(sent[n]);
  }
  StateWriter state;
  messages.save(state);
  StateReader reader{state.bytes()};
  EXPECT_EQ(reader.take<std::uint64_t>(), 2U);
  EXPECT_EQ(reader.take<OpId>(), kSend);
  const auto waits = reader.take_all<float>();
  for (std::size_t n = 0; n < 300; ++n)
    EXPECT_NEAR(static_cast<double>(waits[n]), missing[n], 1e-5);
}

TEST(StageMessages, GoOnFromACheckpoint) {
  for (const ActivationFeedback feedback : every<ActivationFeedback>()) {
    Edge straight{largest(0.2, feedback)}, first{largest(0.2, feedback)},
        second{largest(0.2, feedback)};
    for (std::uint64_t i = 0; i < 5; ++i)
      EXPECT_EQ(straight.pass(drawn(64, i)), first.pass(drawn(64, i)));
    for (const auto& [from, to] :
         {std::pair{&first.sender, &second.sender}, std::pair{&first.receiver, &second.receiver}}) {
      StateWriter state;
      from->save(state);
      StateReader reader{state.bytes()};
      to->load(reader);
      EXPECT_TRUE(reader.is_over());
    }
    for (std::uint64_t i = 5; i < 10; ++i)
      EXPECT_EQ(straight.pass(drawn(64, i)), second.pass(drawn(64, i))) << to_string(feedback);
  }
}

/// Plans have the bytes that travel: exactly, but for places of topk that are far apart.
TEST(StageMessages, TakeTheBytesOfPlans) {
  for (const ActivationFormat format : every<ActivationFormat>())
    for (const std::size_t count : {100U, 8192U}) {
      const ActivationCompression how{format, 0.1, ActivationFeedback::none};
      Edge edge{how};
      (void)edge.pass(drawn(count, 1));
      const auto planned =
          scenario::activation_bytes(how, static_cast<std::int64_t>(count)).count();
      EXPECT_EQ(planned, static_cast<std::int64_t>(edge.bytes)) << to_string(format) << count;
    }
  const ActivationCompression sparse = largest(0.005, ActivationFeedback::none);
  Edge edge{sparse};
  (void)edge.pass(drawn(100'000, 1));
  EXPECT_NEAR(static_cast<double>(scenario::activation_bytes(sparse, 100'000).count()),
              static_cast<double>(edge.bytes), 0.02 * static_cast<double>(edge.bytes));
}

}  // namespace
}  // namespace longhaul::training
