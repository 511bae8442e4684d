// The WAN without devices: exact times of packets.
#include "wan_emulator/wan_model.hpp"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include "wan_emulator/forwarder.hpp"

namespace longhaul::wan_emulator {
namespace {

WanSettings between(int sites, Duration latency) {
  WanSettings settings;
  settings.sites = sites;
  settings.all.latency = latency;
  return settings;
}

Frame marked(int number) {
  const std::byte mark{static_cast<unsigned char>(number)};
  return Frame::copy_of({&mark, 1});
}

struct Out {
  Duration due{};
  int site = 0;
  int mark = 0;
  bool operator==(const Out&) const = default;
};

/// All that comes out, in order, as time goes by.
std::vector<Out> drain(WanModel& model) {
  std::vector<Out> out;
  while (const auto next = model.next_event()) {
    while (auto delivery = model.take_due(*next))
      out.push_back({delivery->due, delivery->site,
                     std::to_integer<int>(std::as_const(delivery->frame).bytes().front())});
  }
  return out;
}

TEST(WanModel, DelaysByTheLatencyAlone) {
  WanModel model{between(2, 10ms)};
  EXPECT_FALSE(model.next_event());
  EXPECT_TRUE(model.offer(3ms, 0, 1, 1000_B, marked(1)));
  EXPECT_EQ(model.next_event(), Duration{13ms});
  EXPECT_FALSE(model.take_due(13ms - 1ns));
  EXPECT_EQ(drain(model), (std::vector<Out>{{13ms, 1, 1}}));
}

TEST(WanModel, ANodesRateSpacesItsPackets) {
  WanSettings settings = between(2, 10ms);
  settings.node = 1_Gbps;  // 1250 bytes take 10 us, once: out and in overlap
  WanModel model{settings};
  for (int i = 0; i < 3; ++i) model.offer(0ns, 0, 1, 1250_B, marked(i));
  EXPECT_EQ(drain(model),
            (std::vector<Out>{{10ms + 10us, 1, 0}, {10ms + 20us, 1, 1}, {10ms + 30us, 1, 2}}));
}

TEST(WanModel, APairsRateDoesNotHoldUpAnotherPair) {
  WanSettings settings = between(3, 1ms);
  settings.pairs.push_back({0, 1, {1ms, 10_Mbps, 0}});  // 1250 bytes: 1 ms
  WanModel model{settings};
  model.offer(0ns, 0, 1, 1250_B, marked(1));
  model.offer(0ns, 0, 1, 1250_B, marked(2));
  model.offer(0ns, 0, 2, 1250_B, marked(3));
  EXPECT_EQ(drain(model), (std::vector<Out>{{1ms, 2, 3}, {2ms, 1, 1}, {3ms, 1, 2}}));
}

TEST(WanModel, WhatANodeReceivesSharesItsRateInTheOrderOfArrival) {
  WanSettings settings = between(3, 1ms);
  settings.node = 10_Mbps;
  settings.pairs.push_back({0, 2, {40ms, {}, 0}});
  WanModel model{settings};
  model.offer(0ns, 0, 2, 1250_B, marked(1));      // far away: there at 40 to 41 ms
  model.offer(10ms, 1, 2, 1250_B, marked(2));     // near: long before it
  model.offer(39500us, 1, 2, 1250_B, marked(3));  // there at 40.5 to 41.5 ms, waits for the first
  EXPECT_EQ(drain(model), (std::vector<Out>{{12ms, 2, 2}, {41ms, 2, 1}, {42ms, 2, 3}}));
}

TEST(WanModel, AFullQueueDropsTheLastAndLaterOnesPass) {
  WanSettings settings = between(2, 1ms);
  settings.all.rate = 10_Mbps;
  settings.queue = 2500_B;
  WanModel model{settings};
  EXPECT_TRUE(model.offer(0ns, 0, 1, 1250_B, marked(1)));
  EXPECT_TRUE(model.offer(0ns, 0, 1, 1250_B, marked(2)));
  EXPECT_FALSE(model.offer(0ns, 0, 1, 1250_B, marked(3)));
  EXPECT_TRUE(model.offer(1ms, 0, 1, 1250_B, marked(4)));  // the first has gone
  EXPECT_EQ(drain(model), (std::vector<Out>{{2ms, 1, 1}, {3ms, 1, 2}, {4ms, 1, 4}}));
  EXPECT_EQ(model.counters(0, 1).packets, 4);
  EXPECT_EQ(model.counters(0, 1).dropped, 1);
  EXPECT_EQ(model.counters(0, 1).delivered, 3);
}

std::vector<bool> taken(std::uint64_t seed, int packets) {
  WanSettings settings = between(2, 1ms);
  settings.all.loss = 0.1;
  settings.seed = seed;
  WanModel model{settings};
  std::vector<bool> result;
  for (int i = 0; i < packets; ++i)
    result.push_back(model.offer(Duration{i}, 0, 1, 100_B, marked(i)));
  return result;
}

TEST(WanModel, LossFollowsFromTheSeed) {
  const std::vector<bool> first = taken(7, 10'000);
  EXPECT_EQ(first, taken(7, 10'000));
  EXPECT_NE(first, taken(8, 10'000));
  const auto lost = std::count(first.begin(), first.end(), false);
  EXPECT_NEAR(static_cast<double>(lost), 1000, 150);  // five standard deviations
}

TEST(WanModel, HoldsNoMoreThanItsMemory) {
  WanSettings settings = between(2, 1s);
  settings.memory = 3000_B;
  WanModel model{settings};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(model.offer(0ns, 0, 1, 1000_B, marked(i)));
  EXPECT_FALSE(model.offer(0ns, 0, 1, 1000_B, marked(3)));
  EXPECT_EQ(drain(model).size(), 3U);
  EXPECT_TRUE(model.offer(2s, 0, 1, 1000_B, marked(4)));
}

TEST(WanModel, KeepsTheOrderOfEveryPathAndLosesNothing) {
  Random random{11};
  WanSettings settings = between(4, 5ms);
  settings.node = 100_Mbps;
  settings.all.rate = 60_Mbps;
  settings.pairs.push_back({0, 3, {37ms, 20_Mbps, 0}});
  settings.queue = Bytes{1 << 30};
  WanModel model{settings};
  Duration now{};
  std::vector<Out> out;
  std::vector<int> sent(4);
  for (int i = 0; i < 2000; ++i) {
    now += Duration{random.between(0, 100'000)};
    while (auto delivery = model.take_due(now)) {
      out.push_back({delivery->due, delivery->site,
                     std::to_integer<int>(std::as_const(delivery->frame).bytes().front())});
      EXPECT_LE(delivery->due, now);
    }
    const auto to = static_cast<int>(random.between(1, 3));
    model.offer(now, 0, to, Bytes{random.between(40, 60'000)},
                marked(sent[static_cast<std::size_t>(to)]++ % 256));
  }
  for (const Out& last : drain(model)) out.push_back(last);
  EXPECT_EQ(out.size(), 2000U);
  std::vector<int> seen(4);
  for (const Out& one : out)
    EXPECT_EQ(one.mark, seen[static_cast<std::size_t>(one.site)]++ % 256) << "site " << one.site;
}

TEST(Lateness, CountsInPowersOfTwo) {
  Lateness lateness;
  EXPECT_EQ(lateness.quantile(0.5), Duration::zero());
  for (int i = 0; i < 99; ++i) lateness.add(3us);
  lateness.add(900us);
  EXPECT_EQ(lateness.quantile(0.5), Duration{4us});
  EXPECT_EQ(lateness.quantile(1), Duration{900us});
}

}  // namespace
}  // namespace longhaul::wan_emulator
