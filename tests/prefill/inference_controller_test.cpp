// Memory over time, keys and values on the interface, decode ranks, prefixes, datacenters.
#include "prefill/inference_controller.hpp"

#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "prefill/instances.hpp"
#include "prefill/outcome.hpp"

namespace longhaul::prefill {
namespace {

ServedModel small_served(int stages = 1) {
  ServedModel model = linear_model(1ms, stages);
  model.dimensions = ServedDimensions{4, 8, 16, 2, 2, 4, 100, false};  // 64 numbers a token
  return model;
}

TEST(MemoryOverTime, IsWhatTrainingAndPromptsLeave) {
  MemoryOverTime memory{100ns, {{{0ns, Bytes{10}}, {40ns, Bytes{4}}, {60ns, Bytes{10}}}, {}}};
  const auto least_free = [&](std::int32_t rank, Duration from, Duration until) {
    const Bytes too_much{1000};
    const auto found = memory.last_shortage(rank, from, until, too_much);
    return found ? std::optional{too_much - found->lacks} : std::nullopt;
  };
  EXPECT_EQ(least_free(0, 0ns, 40ns), Bytes{10});
  EXPECT_EQ(least_free(0, 30ns, 50ns), Bytes{4});
  EXPECT_EQ(least_free(0, 160ns, 230ns), Bytes{10}) << "over the iteration's end";
  EXPECT_EQ(least_free(1, 0ns, 50ns), std::nullopt);
  memory.hold(0, 20ns, 70ns, Bytes{3});
  EXPECT_EQ(least_free(0, 0ns, 20ns), Bytes{10});
  EXPECT_EQ(least_free(0, 0ns, 30ns), Bytes{7});
  EXPECT_EQ(least_free(0, 0ns, 100ns), Bytes{1});
  EXPECT_EQ(memory.last_release(), 70ns);
  memory.forget(0, 70ns);
  EXPECT_EQ(least_free(0, 0ns, 100ns), Bytes{4});
}

TEST(MemoryOverTime, KnowsWhenAShortageIsOver) {
  MemoryOverTime memory{100ns, {{{0ns, Bytes{10}}, {40ns, Bytes{4}}, {60ns, Bytes{10}}}, {}}};
  memory.hold(0, 20ns, 170ns, Bytes{3});
  const auto lacking = [&](Duration from, Duration until, Bytes need) {
    const auto found = memory.last_shortage(0, from, until, need);
    return found ? std::pair{found->lacks, found->until} : std::pair{Bytes{}, Duration{}};
  };
  EXPECT_EQ(lacking(0ns, 20ns, Bytes{10}), (std::pair{Bytes{}, 0ns}));
  EXPECT_EQ(lacking(0ns, 21ns, Bytes{10}), (std::pair{Bytes{3}, 170ns}));
  EXPECT_EQ(lacking(0ns, 50ns, Bytes{5}), (std::pair{Bytes{4}, 60ns}));
  EXPECT_EQ(lacking(0ns, 145ns, Bytes{5}), (std::pair{Bytes{4}, 160ns})) << "the last of two";
  EXPECT_EQ(lacking(200ns, 210ns, Bytes{11}), (std::pair{Bytes{1}, Duration::max()}));
  EXPECT_FALSE(memory.last_shortage(1, 0ns, 1s, Bytes{1000})) << "not known";
}

TEST(MemoryOverTime, APromptWaitsForAnothersRelease) {
  const Scenario scenario = serving_scenario(1, 1, small_served());
  const IterationBubbles iteration = find_bubbles({{block_row(0, 0, 0ms, 1ms)}}, 1);
  const Bytes one = prompt_memory(scenario.served[0], 100, 100, 0);
  const auto place = [&](Bytes free) {
    ControllerMeans means;
    means.memory.emplace(iteration.period, std::vector<std::vector<FreeMemoryStep>>{{{0ns, free}}});
    Controller controller{
        find_bubbles({{block_row(0, 0, 0ms, 1ms), block_row(0, 1, 999ms, 1s)}}, 1),
        served_models(scenario, 1),
        PlacementPolicy::earliest,
        {},
        means};
    return std::pair{controller.decide({0, 1ms, 100}), controller.decide({1, 1ms, 100})};
  };
  const auto [first, second] = place(one);
  EXPECT_EQ(first.start, 1ms);
  EXPECT_EQ(second.start, 101ms) << "the first holds its memory until its end";
  const auto refused = place(one - Bytes{1}).first;
  EXPECT_EQ(refused.refused, RefusalReason::memory);
  EXPECT_EQ(refused.lacks, Bytes{1});
}

// Keys and values leave within 1.28 s of each prompt: they hold the memory far beyond its end.
TEST(MemoryOverTime, APromptWaitsForAsManyReleasesAsItTakes) {
  ServedModel model = small_served();
  model.decode = DecodeLink{.rate = Bandwidth{80e3}};
  const Scenario scenario = serving_scenario(1, 1, model);
  const IterationBubbles iteration =
      find_bubbles({{block_row(0, 0, 0ms, 1ms), block_row(0, 1, 999ms, 1s)}}, 1);
  ControllerMeans means;
  means.memory.emplace(iteration.period, std::vector<std::vector<FreeMemoryStep>>{
                                             {{0ns, prompt_memory(model, 100, 100, 0)}}});
  means.link.emplace(iteration.period, std::vector<std::vector<InterfaceHold>>(1));
  means.decode_ranks = 1;
  Controller controller{
      iteration, served_models(scenario, 1), PlacementPolicy::earliest, {}, means};
  Duration last{};
  for (std::int64_t id = 0; id < 40; ++id) {
    const Decision decision = controller.decide({id, 1ms, 100});
    ASSERT_EQ(decision.refused, std::nullopt) << id;
    EXPECT_EQ(decision.waited_for_memory, id > 0);
    EXPECT_GE(decision.start, last);
    last = decision.end + decision.kv;
  }
}

TEST(KvLink, LayersLeaveWhileLaterOnesCompute) {
  DecodeLink link;
  link.rate = Bandwidth{8e9};  // a byte a ns
  const auto end_of = [&](KvSending sending) {
    KvLink interface { 1ms, std::vector<std::vector<InterfaceHold>>(1) };
    return interface.send(0, ready_layers(Bytes{400}, 4, 0ns, 1000ns, sending), link);
  };
  EXPECT_EQ(end_of(KvSending::layerwise), 1100ns);
  EXPECT_EQ(end_of(KvSending::whole), 1400ns);
}

/// A byte a nanosecond, in slices of 100.
DecodeLink sliced_link() {
  DecodeLink link;
  link.rate = Bandwidth{8e9};
  link.slice = Bytes{100};
  return link;
}

/// Of one GPU, whose training holds its interface so each 10 us.
KvLink held_by(std::vector<InterfaceHold> holds) { return {10'000ns, {std::move(holds)}}; }

TEST(KvLink, ASliceWaitsForAllMessagesThatOneHeldBack) {
  const DecodeLink link = sliced_link();
  KvLink interface = held_by({{50ns, 200ns, 7}, {230ns, 300ns, 8}});
  // Until 100 the slice; until 250 the first message, and the second, 20 ns late, until 320.
  EXPECT_EQ(interface.send(0, {{0ns, Bytes{200}}}, link), 420ns);
  ASSERT_EQ(interface.waits().size(), 2U);
  EXPECT_EQ(interface.waits()[1].op, 8);
  EXPECT_EQ(interface.waits()[1].waited, 20ns);
  EXPECT_EQ(interface.waited(), 70ns);
}

TEST(KvLink, AMessageOfTrainingWaitsForOneSliceAtMost) {
  const DecodeLink link = sliced_link();
  KvLink interface = held_by({{250ns, 300ns, 7}, {1000ns, 2000ns, 8}});
  // Slices from 0; the message of 250 ns waits for the third until 300, and then passes first.
  EXPECT_EQ(interface.send(0, {{0ns, Bytes{500}}}, link), 550ns);
  ASSERT_EQ(interface.waits().size(), 1U);
  EXPECT_EQ(interface.waits()[0].op, 7);
  EXPECT_EQ(interface.waited(), 50ns);
  // One that gets ready while training holds the interface waits for its end.
  EXPECT_EQ(interface.send(0, {{1500ns, Bytes{100}}}, link), 2100ns);
  EXPECT_EQ(interface.send(0, {{11'500ns, Bytes{100}}}, link), 12'100ns) << "an iteration later";
}

TEST(Decode, PlacesAtDecodeRanksRunOut) {
  ServedModel model = small_served();
  model.decode = DecodeLink{.rate = Bandwidth{8e9}, .slots = 1, .first_token = 5ms};
  const Scenario scenario = serving_scenario(2, 1, model);
  ControllerMeans means;
  means.link.emplace(900ms, std::vector<std::vector<InterfaceHold>>(2));
  means.decode_ranks = 1;
  Controller controller{find_bubbles(gpipe_rows(), 2),
                        served_models(scenario, 1),
                        PlacementPolicy::earliest,
                        {},
                        means};
  const Decision first = controller.decide({0, 200ms, 100});
  EXPECT_EQ(first.kv, Duration{128 * 100 / 4}) << "the last of four layers";
  EXPECT_EQ(first.first_token, 5ms);
  EXPECT_EQ(first.ttft(), 105ms + first.kv);
  EXPECT_EQ(controller.decide({1, 210ms, 100}).refused, RefusalReason::decode);
  EXPECT_FALSE(controller.decide({2, 310ms, 100}).refused.has_value());
}

TEST(Decode, ARequestFromAfarLeavesThePlacesOfThePresentTaken) {
  ServedModel model = small_served();
  model.decode = DecodeLink{.rate = Bandwidth{8e9}, .slots = 2, .first_token = 5ms};
  const Scenario scenario = serving_scenario(2, 1, model);
  ControllerMeans means;
  means.link.emplace(900ms, std::vector<std::vector<InterfaceHold>>(2));
  means.decode_ranks = 1;
  Controller controller{find_bubbles(gpipe_rows(), 2),
                        served_models(scenario, 1),
                        PlacementPolicy::earliest,
                        {},
                        means};
  EXPECT_EQ(controller.decide({0, 200ms, 50}).end, 250ms);
  EXPECT_EQ(controller.decide({1, 200ms, 50}).end, 300ms);
  EXPECT_EQ(controller.decide({2, 210ms, 50}, 400ms).start, 410ms) << "both are free by then";
  EXPECT_EQ(controller.decide({3, 220ms, 3}).start, 300ms);
  EXPECT_EQ(controller.decide({4, 230ms, 1}).refused, RefusalReason::decode)
      << "at 303 ms two have theirs until 305 and 308";
}

// One place: a prompt of device 1's bubble, 500 ms later, takes none of those before it.
TEST(Decode, APlaceIsHeldFromTheStartOn) {
  ServedModel model = small_served();
  model.decode = DecodeLink{.rate = Bandwidth{8e9}, .slots = 1, .first_token = 5ms};
  ControllerMeans means;
  means.link.emplace(900ms, std::vector<std::vector<InterfaceHold>>(2));
  means.decode_ranks = 1;
  Controller controller{find_bubbles(gpipe_rows(), 2),
                        served_models(serving_scenario(2, 1, model), 1),
                        PlacementPolicy::earliest,
                        {},
                        means};
  EXPECT_EQ(controller.decide({0, 150ms, 250}).start, 200ms);
  EXPECT_EQ(controller.decide({1, 160ms, 100}).start, 700ms);
  EXPECT_EQ(controller.decide({2, 170ms, 20}).refused, RefusalReason::decode)
      << "at 450 ms the first has its place until 455";
  EXPECT_EQ(controller.decide({3, 460ms, 30}).start, 460ms) << "the second has none before 700";
  EXPECT_EQ(controller.decide({4, 470ms, 200}).refused, RefusalReason::decode);
}

// All bubbles of the stretch that could hold it are taken: `decode` is tried before `closed`.
TEST(Decode, IsTriedBeforeWhatIsClosed) {
  ServedModel model = small_served();
  model.decode = DecodeLink{.rate = Bandwidth{8e9}, .slots = 1, .first_token = 500ms};
  const auto asked = [&](bool is_held) {
    ControllerMeans means;
    means.link.emplace(900ms, std::vector<std::vector<InterfaceHold>>(2));
    means.decode_ranks = 1;
    Controller controller{find_bubbles(gpipe_rows(), 2),
                          served_models(serving_scenario(2, 1, model), 1),
                          PlacementPolicy::earliest,
                          {false, 1, true},
                          means};
    if (is_held) std::ignore = controller.decide({0, 700ms, 100});
    return controller.decide({1, 750ms, 300}).refused;
  };
  EXPECT_EQ(asked(false), RefusalReason::closed);
  EXPECT_EQ(asked(true), RefusalReason::decode);
}

// A model that sends no keys waits for no place: nothing of decoding counts.
TEST(Decode, CountsNothingWithoutALink) {
  ServedModel model = small_served();
  model.decode = DecodeLink{.rate = Bandwidth{8e9}, .slots = 1, .first_token = 500ms};
  Controller controller{find_bubbles(gpipe_rows(), 2),
                        served_models(serving_scenario(2, 1, model), 1),
                        PlacementPolicy::earliest,
                        {}};
  EXPECT_EQ(controller.decide({0, 200ms, 100}).start, 200ms);
  EXPECT_EQ(controller.decide({1, 200ms, 100}).start, 300ms);
}

// 200 ms of prefill, then keys and values and 100 ms of a first token.
TEST(Decode, CountsIntoWhatTheSloAllows) {
  ServedModel model = small_served();
  model.decode = DecodeLink{.rate = Bandwidth{8e9}, .latency = 1ms, .first_token = 100ms};
  const auto asked = [&](std::optional<Duration> slo) {
    model.slo_ttft = slo;
    ControllerMeans means;
    means.link.emplace(900ms, std::vector<std::vector<InterfaceHold>>(2));
    means.decode_ranks = 1;
    Controller controller{find_bubbles(gpipe_rows(), 2),
                          served_models(serving_scenario(2, 1, model), 1),
                          PlacementPolicy::earliest,
                          {},
                          means};
    return controller.decide({0, 200ms, 200});
  };
  const Duration ttft = asked(std::nullopt).ttft();
  EXPECT_GT(ttft, 301ms);
  EXPECT_EQ(asked(ttft - 1ns).refused, RefusalReason::slo);
  const Decision placed = asked(ttft);
  EXPECT_EQ(placed.refused, std::nullopt);
  EXPECT_EQ(placed.ttft(), ttft);
  const auto is_late = [&](Duration slo) {
    model.slo_ttft = slo;
    const auto served = served_models(serving_scenario(2, 1, model), 1);
    return summarize_decisions(find_bubbles(gpipe_rows(), 2), served, {placed}, 1).late;
  };
  EXPECT_EQ(is_late(ttft), 0);
  EXPECT_EQ(is_late(ttft - 1ns), 1);
}

TEST(PrefixCache, KeepsTheLatestBlocks) {
  PrefixCache cache{3};
  cache.keep({1, 2, 3}, 3 * 512, 10ns);
  EXPECT_EQ(cache.leading_tokens({1, 2, 9}, 3 * 512, 10ns), 1024);
  EXPECT_EQ(cache.leading_tokens({1, 2, 9}, 3 * 512, 9ns), 0) << "not computed yet";
  EXPECT_EQ(cache.leading_tokens({1, 2}, 1024, 10ns), 1023) << "the last token is computed";
  cache.keep({1, 7}, 1024, 20ns);
  EXPECT_EQ(cache.leading_tokens({1, 7}, 2000, 20ns), 1024);
  EXPECT_EQ(cache.leading_tokens({1, 2, 3}, 2000, 20ns), 1024) << "the third block went first";
}

/// Two datacenters with a pipeline of one stage each, in regions a and b of the built-in table.
class TwoSites : public ::testing::Test {
protected:
  [[nodiscard]] InferenceController controller(Routing routing, const ServedModel& model) {
    scenario_ = serving_scenario(2, 1, model);
    scenario_.datacenters.resize(2);
    scenario_.datacenters[0].name = "one";
    scenario_.datacenters[1].name = "two";
    scenario_.datacenters[0].region = "x:a";
    scenario_.datacenters[1].region = "x:b";
    scenario_.placement = {DatacenterId{0}, DatacenterId{1}};
    return {serving_sites(scenario_, served_models(scenario_, 1), find_bubbles(gpipe_rows(), 2),
                          PlacementPolicy::earliest, {}, {}),
            regions_, routing};
  }
  Scenario scenario_;
  scenario::RegionTable regions_ = scenario::RegionTable::parse(
      "src_region,dst_region,rtt_avg_ms,throughput_received_bps\n"
      "x:a,x:b,40,1e9\nx:b,x:a,40,1e9\n",
      "table");
};

// Two models that are asked with the same hashes, of which the first keeps blocks.
TEST(PrefixCache, KeepsABlockForItsModelAlone) {
  ServedModel keeps = small_served();
  keeps.profile = {{1, 1us}, {2000, 2ms}};
  ServedModel other = keeps;
  keeps.name = "keeps";
  other.name = "other";
  keeps.prefix_cache = keeps.dimensions->kv(3 * PrefixCache::kBlockTokens);
  Scenario scenario = serving_scenario(2, 1, keeps);
  scenario.served.push_back(other);
  auto sites = serving_sites(scenario, served_models(scenario, 1), find_bubbles(gpipe_rows(), 2),
                             PlacementPolicy::earliest, {}, {});
  const auto cached = [&](std::int64_t id, const char* model) {
    Request request{id, id * 900ms, 3 * PrefixCache::kBlockTokens, model};
    request.hash_ids = {1, 2, 3};
    return sites.front().controller.decide(request).cached;
  };
  EXPECT_EQ(cached(0, "keeps"), 0);
  EXPECT_EQ(cached(1, "other"), 0);
  EXPECT_EQ(cached(2, "keeps"), 3 * PrefixCache::kBlockTokens - 1);
  EXPECT_EQ(cached(3, "other"), 0);
}

TEST_F(TwoSites, TheNearestIsAskedFirstAndTheNextOnANo) {
  auto nearest = controller(Routing::nearest, linear_model(1ms));
  Request request{0, 700ms, 100};
  request.region = "x:a";
  EXPECT_EQ(nearest.decide(request).datacenter, 0);
  auto least = controller(Routing::ttft, linear_model(1ms));
  const Decision decision = least.decide(request);
  EXPECT_EQ(decision.datacenter, 1);
  EXPECT_EQ(decision.start, 720ms) << "half a round trip later";
  EXPECT_EQ(decision.network, 40ms);
  EXPECT_EQ(decision.ttft(), 140ms);
  ServedModel strict = linear_model(1ms);
  strict.slo_ttft = 200ms;
  auto refusing = controller(Routing::nearest, strict);
  EXPECT_EQ(refusing.decide(request).datacenter, 1) << "a no goes to the next";
}

// Both begin it at once; the first one's training holds the interface that its keys leave by.
TEST_F(TwoSites, TheLeastTtftHasItsKeysAndValues) {
  ServedModel model = small_served();
  model.decode = DecodeLink{.rate = Bandwidth{8e9}};
  scenario_ = serving_scenario(2, 1, model);
  scenario_.datacenters.resize(2);
  scenario_.placement = {DatacenterId{0}, DatacenterId{1}};
  for (const int site : {0, 1})
    scenario_.services.push_back({RankRole::decode, DatacenterId{site}, 1});
  std::vector<TimelineRow> rows;
  for (const std::int32_t rank : {0, 1}) {
    rows.push_back(block_row(rank, 2 * rank, 0ms, 100ms));
    rows.push_back(block_row(rank, 2 * rank + 1, 900ms, 1000ms));
  }
  const auto site_of = [&](std::size_t held) {
    std::vector<std::vector<InterfaceHold>> holds(2);
    holds[held] = {{200ms, 800ms, 3}};
    ControllerMeans means;
    means.link.emplace(1000ms, std::move(holds));
    InferenceController least{
        serving_sites(scenario_, served_models(scenario_, 1), find_bubbles(rows, 2),
                      PlacementPolicy::earliest, {}, means),
        regions_, Routing::ttft};
    const Decision decision = least.decide({0, 150ms, 100});
    EXPECT_EQ(decision.start, 150ms);
    EXPECT_LT(decision.kv, 1ms);
    return decision.datacenter;
  };
  EXPECT_EQ(site_of(0), 1);
  EXPECT_EQ(site_of(1), 0);
}

TEST_F(TwoSites, WithoutRegionsTheyAreOneController) {
  auto sites = controller(Routing::ttft, linear_model(1ms));
  std::vector<Duration> starts;
  for (const auto& [id, arrival] : {std::pair{0, 250ms}, {1, 450ms}, {2, 450ms}})
    starts.push_back(sites.decide({id, arrival, 100}).start);
  EXPECT_THAT(starts, ::testing::ElementsAre(250ms, 700ms, 800ms));
}

TEST_F(TwoSites, ADatacenterThatServesNeedsADecodeRank) {
  ServedModel model = small_served();
  model.decode = DecodeLink{.rate = Bandwidth{8e9}};
  EXPECT_THROW((void)controller(Routing::ttft, model), Error);
}

}  // namespace
}  // namespace longhaul::prefill
