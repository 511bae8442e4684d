// Known times of streams on ranks, by a virtual clock.
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "played_plan.hpp"
#include "sim/simulate.hpp"
#include "support/exchanging_replicas.hpp"

namespace longhaul {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using testing::ExchangingReplicas;

/// When the iterations of the stream start on ranks, in ms.
std::vector<double> starts(const ExchangingReplicas& replicas, int iterations) {
  std::vector<double> all;
  for (const OpResults& each : testing::play_stream(replicas.plan, {iterations, {}}, {}).iterations)
    all.push_back(static_cast<double>(each.times[index(replicas.first)].start.count()) / 1e6);
  return all;
}

TEST(PlayedStreams, ExchangeWithoutStaleness) {
  for (const auto choice : {ExchangingReplicas::Choice::link, ExchangingReplicas::Choice::lane}) {
    EXPECT_THAT(starts({20ms, 0, Serve::deadline, choice}, 4), ElementsAre(0, 115, 230, 345));
    EXPECT_THAT(starts({20ms, 0, Serve::arrival, choice}, 3), ElementsAre(0, 115, 230));
    EXPECT_THAT(starts({40ms, 0, Serve::arrival, choice}, 4), ElementsAre(0, 175, 350, 525));
    EXPECT_THAT(starts({40ms, 0, Serve::deadline, choice}, 6),
                ElementsAre(0, 135, 300, 465, 630, 795));
  }
}

TEST(PlayedStreams, ExchangeOneIterationLate) {
  for (const auto choice : {ExchangingReplicas::Choice::link, ExchangingReplicas::Choice::lane}) {
    EXPECT_THAT(starts({20ms, 1, Serve::deadline, choice}, 4), ElementsAre(0, 90, 180, 270));
    EXPECT_THAT(starts({40ms, 1, Serve::deadline, choice}, 7),
                ElementsAre(0, 90, 180, 270, 365, 485, 605));
    EXPECT_THAT(starts({40ms, 1, Serve::arrival, choice}, 6),
                ElementsAre(0, 90, 180, 295, 415, 535));
  }
}

// Memory is bounded by how far dependencies reach back, not by the number of iterations.
TEST(PlayedStreams, KeepFewIterationsInMemory) {
  const ExchangingReplicas replicas{20ms, 1, Serve::deadline};
  const auto few = testing::play_stream(replicas.plan, {20, {}}, {});
  const auto many = testing::play_stream(replicas.plan, {2000, {}}, {});
  EXPECT_EQ(many.most_live_iterations, few.most_live_iterations);
  EXPECT_LE(many.most_live_iterations, 6U);
  EXPECT_EQ(many.iterations.back().times[index(replicas.first)].start, 1999 * 90ms);
}

TEST(PlayedStreams, TakeOtherTimesFromAnIterationOn) {
  const ExchangingReplicas replicas{20ms, 1, Serve::deadline};
  plan::Stream stream{8, {{3, {{replicas.first, 40ms}}}}};
  const auto played = testing::play_stream(replicas.plan, stream, {});
  sim::simulate_stream(replicas.plan, stream, [&](const sim::StreamedIteration& done) {
    const auto& own = played.iterations[static_cast<std::size_t>(done.iteration)];
    for (std::size_t i = 0; i < own.times.size(); ++i)
      EXPECT_EQ(own.times[i].end, done.results.times[i].end) << done.iteration << " op " << i;
  });
}

// The times of ranks that go on with iteration 3 are those of ranks that were not cut there.
TEST(PlayedStreams, GoOnAsIfTheyHadNotBeenCut) {
  const ExchangingReplicas replicas{20ms, 0, Serve::deadline};
  const plan::Stream stream{6, {{4, {{replicas.first, 40ms}}}}};
  const auto whole = testing::play_stream(replicas.plan, stream, {});
  plan::Stream rest = stream;
  rest.first = 3;
  const auto gone_on = testing::play_stream(replicas.plan, rest, {});
  for (std::size_t n = 3; n < 6; ++n)
    for (std::size_t i = 0; i < replicas.plan.ops.size(); ++i)
      EXPECT_EQ(gone_on.iterations[n].times[i].end + 345ms, whole.iterations[n].times[i].end)
          << "iteration " << n << " op " << i;
}

/// After every second iteration the last rank makes F longer, by what all others say of it.
class LengtheningControl final : public engine::StreamControl {
public:
  LengtheningControl(const ExchangingReplicas& replicas, int staleness)
      : replicas_{replicas}, staleness_{staleness} {}

  Rank controller() const override { return Rank{2}; }
  std::size_t report_size() const override { return sizeof(std::int64_t); }
  std::size_t verdict_size() const override { return sizeof(std::int64_t); }
  bool is_due(int iteration) const override { return iteration % 2 == 1; }
  int first_open(int iteration) const override { return iteration + 2 + 2 * staleness_; }

  std::vector<std::byte> report(int iteration, const OpTimes& /*times*/) override {
    return word_of(iteration);
  }
  void hear(int iteration, Rank /*from*/, std::span<const std::byte> report) override {
    EXPECT_EQ(number_in(report), iteration);
    heard_ += iteration;
  }
  std::vector<std::byte> verdict(int /*iteration*/) override { return word_of(heard_); }
  std::optional<plan::StreamSetting> heed(int iteration,
                                          std::span<const std::byte> verdict) override {
    return setting(iteration, number_in(verdict));
  }
  [[nodiscard]] plan::StreamSetting setting(int iteration, std::int64_t heard) const {
    return {first_open(iteration), {{replicas_.first, 10ms + heard * 1ms}}};
  }

private:
  static std::vector<std::byte> word_of(std::int64_t number) {
    const auto bytes = std::as_bytes(std::span{&number, 1});
    return {bytes.begin(), bytes.end()};
  }
  static std::int64_t number_in(std::span<const std::byte> word) {
    std::int64_t number = 0;
    std::memcpy(&number, word.data(), sizeof number);
    return number;
  }
  const ExchangingReplicas& replicas_;
  int staleness_;
  std::int64_t heard_ = 0;
};

// Times of a stream that a rank without ops changes while it runs are those of one that was given
// the same settings from its start.
TEST(PlayedStreams, AreChangedByARankWhileTheyRun) {
  for (const int staleness : {0, 1}) {
    SCOPED_TRACE(staleness);
    ExchangingReplicas replicas{20ms, staleness, Serve::deadline};
    replicas.plan.ranks.push_back(replicas.plan.ranks.back());
    const LengtheningControl settings{replicas, staleness};
    plan::Stream known{9, {}};
    std::int64_t heard = 0;
    for (int i = 0; i < 9; ++i) {
      heard += 2 * i;  // of both replicas
      if (settings.is_due(i)) known.settings.push_back(settings.setting(i, heard));
    }
    testing::VirtualRun run;
    run.control = [&](Rank) { return std::make_unique<LengtheningControl>(replicas, staleness); };
    const auto played = testing::play_stream(replicas.plan, {9, {}}, run);
    const auto expected = testing::play_stream(replicas.plan, known, {});
    for (std::size_t n = 0; n < 9; ++n)
      for (std::size_t i = 0; i < replicas.plan.ops.size(); ++i)
        EXPECT_EQ(played.iterations[n].times[i].end, expected.iterations[n].times[i].end)
            << "iteration " << n << " op " << i;
  }
}

// The engine plays one iteration of a plan with extras as run() does any other.
TEST(PlayedStreams, AStreamOfOneIterationIsThePlan) {
  const ExchangingReplicas replicas{40ms, 0, Serve::deadline};
  const OpTimes played = testing::play(replicas.plan).front().times;
  EXPECT_EQ(testing::difference(replicas.plan, played, sim::simulate(replicas.plan),
                                testing::Bounds::any),
            "");
}

}  // namespace
}  // namespace longhaul
