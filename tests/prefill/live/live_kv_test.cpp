// Keys and values of what a controller places while a stretch is played.
#include "prefill/live/live_kv.hpp"

#include <gtest/gtest.h>

#include "live_played.hpp"

namespace longhaul::prefill {
namespace {

/// 2 stages, F 100 ms, B 200 ms, GPipe; keys and values of 25,600 bytes a layer of 100 tokens go to
/// a decode rank, in slices of 5 ms.
PlacedStretch two_gpus_with_decode(int slots = 1024, int layers = 2) {
  Scenario scenario = serving_scenario(2, 1, linear_model(1ms));
  scenario.costs.forward.assign(2, 100ms);
  scenario.costs.backward.assign(2, 200ms);
  scenario.costs.message.assign(2, Bytes{});
  ServedModel& model = scenario.served.front();
  model.dimensions = ServedDimensions{.layers = layers,
                                      .hidden = 64,
                                      .intermediate = 128,
                                      .heads = 4,
                                      .kv_heads = 4,
                                      .head_size = 16,
                                      .vocabulary = 100};
  model.decode = DecodeLink{.rate = Bandwidth{20.48e6},
                            .latency = 1ms,
                            .slice = Bytes{12'800},
                            .slots = slots,
                            .first_token = 20ms};
  scenario.add_services({RankRole::controller, DatacenterId{0}, 1});
  scenario.add_services({RankRole::decode, DatacenterId{0}, 1});
  return {scenario, "gpipe", 1};
}

// As a plan that was filled before sends them: the layers are ready at 300 and at 350 ms.
TEST(LiveStretches, SendKeysAndValuesLayerByLayerOrWhole) {
  const PlacedStretch stretch = two_gpus_with_decode();
  for (const KvSending sending : {KvSending::layerwise, KvSending::whole}) {
    LiveOptions options;
    options.kv = sending;
    LivePlayed played{stretch, {{0, 250ms, 100}}, options};
    const LiveFilled filled = played.play();
    ASSERT_EQ(filled.decisions.size(), 1U);
    ASSERT_EQ(filled.filled.messages.size(), 4U);
    std::int64_t bytes = 0;
    for (const FilledMessage& each : filled.filled.messages) {
      EXPECT_EQ(each.first, bytes) << "one after the other";
      EXPECT_EQ(filled.filled.plan.op(each.send).size, Bytes{each.bytes});
      bytes += each.bytes;
    }
    EXPECT_EQ(bytes, stretch.served[0].model.dimensions->kv(100).count());
    EXPECT_EQ(filled.filled.plan.extras.slices.size(), 8U) << "both sides of four slices";
    EXPECT_EQ(played.results.times[index(filled.filled.stages[0].op)].end, 350ms);
    const Duration tail = sending == KvSending::layerwise ? 10ms : 20ms;
    const OpTime& token = played.results.times[index(filled.filled.tokens.at(0).op)];
    EXPECT_EQ(token.start, 350ms + tail + 1ms);
    EXPECT_EQ(token.end, token.start + 20ms);
    EXPECT_EQ(filled.decisions[0].kv, tail + 1ms) << "as the controller expects it";
    EXPECT_EQ(played.wall, 900ms);
  }
}

TEST(LiveStretches, RefuseWhatFindsNoPlaceAtItsDecodeRank) {
  const PlacedStretch stretch = two_gpus_with_decode(1);
  LiveOptions options;
  options.kv = KvSending::layerwise;
  // The second comes while the first is on its way, the third after its first token at 381 ms.
  LivePlayed played{stretch, {{0, 250ms, 100}, {1, 260ms, 10}, {2, 382ms, 10}}, options};
  const LiveFilled filled = played.play();
  ASSERT_EQ(filled.decisions.size(), 2U);
  EXPECT_EQ(filled.decisions[1].request, 2);
  const auto& refused = played.live().controller().refused();
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].request, 1);
  EXPECT_EQ(refused[0].refused, RefusalReason::decode);
}

// A token has 2 layers of 256 bytes, each byte a slice. Both GPUs are idle for 300 ms: the first at
// once, for prompts of 256 tokens at most, of those that double, of which it could begin
// 1 + 2 * 300 / 256; the second for 200 ms at most, for 1 + 2 * 300 / 128 of 128 tokens.
TEST(LiveStretches, HaveSoManySlicesForAGpuAndNoMore) {
  PlacedStretch stretch = two_gpus_with_decode();
  stretch.served.front().model.decode->slice = Bytes{1};
  const auto most = slices_of(stretch.bubbles, stretch.served, KvSending::layerwise, 48);
  EXPECT_EQ(most, (std::vector<std::int64_t>{438'272, 372'736}));
  LiveOptions options;
  options.kv = KvSending::layerwise;
  LivePlayed played{stretch, {}, options};
  for (const std::size_t gpu : {0U, 1U})
    EXPECT_EQ(std::ssize(played.live().live().kv[gpu].sends), kMostLiveSlices);
}

// The first begins at 250 ms and takes 380 in 8 layers: training's block gets ready at 500 ms, and
// it is killed at 535, as its sixth layer ends. The second asks before that, the third after it.
TEST(LiveStretches, GiveTheDecodeSlotOfAKilledPromptToTheNext) {
  const PlacedStretch stretch = two_gpus_with_decode(1, 8);
  LiveOptions options;
  options.kv = KvSending::layerwise;
  options.manners.overrun = Overrun::kill;
  options.manners.takes = [](std::size_t, std::int32_t request, Duration whole) {
    return request == 0 ? 380ms : whole;
  };
  LivePlayed played{stretch, {{0, 250ms, 100}, {1, 534ms, 10}, {2, 536ms, 10}}, options};
  const LiveFilled filled = played.play();
  EXPECT_EQ(played.live().tally().killed, 1);
  const auto& refused = played.live().controller().refused();
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].request, 1);
  EXPECT_EQ(refused[0].refused, RefusalReason::decode);
  ASSERT_EQ(filled.decisions.size(), 2U);
  EXPECT_EQ(filled.decisions[1].request, 2);
  ASSERT_EQ(filled.filled.tokens.size(), 1U) << "the killed one has none";
  EXPECT_TRUE(played.ran(filled.filled.tokens[0].op));
  EXPECT_EQ(filled.filled.tokens[0].decision, 1U);
}

}  // namespace
}  // namespace longhaul::prefill
