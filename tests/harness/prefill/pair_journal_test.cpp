#include "harness/prefill/pair_journal.hpp"

#include <gtest/gtest.h>

#include "base/index.hpp"
#include "harness/prefill/prefill_rows.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul::harness {
namespace {

/// Pairs of --check as they are predicted, with every number another one.
std::vector<StretchPair> played_pairs() {
  PrefillSettings settings;
  settings.pairs = 3;
  const PlannedStretches planned =
      plan_stretches(scenario::parse_scenario(tiny_input().at("scenario"), "tiny", {}), "gpipe",
                     tiny_input().at("requests"), "requests", settings);
  std::vector<StretchPair> pairs;
  for (int pair = 0; pair < 3; ++pair) {
    const FilledStretch filled = planned.fill(pair, settings);
    StretchPair played{.prefill_first = pair % 2 == 1, .checks = {pair, 10 + pair, 20 + pair}};
    played.with = outcome_of_filled(planned, filled, filled.predicted);
    played.without = outcome_of_training(planned.training, planned.predicted);
    played.with.delay = Duration{31 + pair};
    played.with.late = 41 + pair;
    played.with.blocks_bound_by_prefill = 51;
    played.with.kv = {61, Bytes{62}, 63, Duration{64}};
    pairs.push_back(std::move(played));
  }
  return pairs;
}

void expect_equal(const StretchOutcome& a, const StretchOutcome& b) {
  EXPECT_EQ(a.wall, b.wall);
  EXPECT_EQ(a.training, b.training);
  EXPECT_EQ(a.prefill, b.prefill);
  EXPECT_EQ(a.late, b.late);
  EXPECT_EQ(a.blocks_bound_by_prefill, b.blocks_bound_by_prefill);
  EXPECT_EQ(a.delay, b.delay);
  EXPECT_EQ(a.kv.slices, b.kv.slices);
  EXPECT_EQ(a.kv.bytes, b.kv.bytes);
  EXPECT_EQ(a.kv.messages_bound, b.kv.messages_bound);
  EXPECT_EQ(a.kv.delay, b.kv.delay);
  ASSERT_EQ(a.requests.size(), b.requests.size());
  for (std::size_t i = 0; i < a.requests.size(); ++i) {
    const PlayedRequest &one = a.requests[i], &other = b.requests[i];
    EXPECT_EQ(one.request, other.request);
    EXPECT_EQ(one.tokens, other.tokens);
    EXPECT_EQ(one.model, other.model);
    EXPECT_EQ(one.is_done, other.is_done);
    EXPECT_EQ(one.came_wrong, other.came_wrong);
    EXPECT_EQ(one.ttft, other.ttft);
    EXPECT_EQ(one.wait, other.wait);
    EXPECT_EQ(one.compute, other.compute);
    EXPECT_EQ(one.predicted_ttft, other.predicted_ttft);
    EXPECT_EQ(one.sum_of_parts(), other.sum_of_parts());
  }
}

TEST(PairJournal, GivesBackWhatItKept) {
  const std::vector<StretchPair> pairs = played_pairs();
  std::vector<nlohmann::json> journal{part_entry("bench_prefill", 0)};
  std::size_t requests = 0;
  for (int pair = 0; pair < 3; ++pair)
    journal.push_back(nlohmann::json::parse(entry_of_pair(pair, pairs[to_size(pair)]).dump()));
  const std::vector<StretchPair> found = pairs_of(journal);
  ASSERT_EQ(found.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found[i].prefill_first, pairs[i].prefill_first);
    EXPECT_EQ(found[i].checks.wrong, pairs[i].checks.wrong);
    EXPECT_EQ(found[i].checks.messages, pairs[i].checks.messages);
    EXPECT_EQ(found[i].checks.blocks, pairs[i].checks.blocks);
    expect_equal(found[i].with, pairs[i].with);
    expect_equal(found[i].without, pairs[i].without);
    requests += found[i].with.requests.size();
  }
  EXPECT_GT(requests, 0U);
}

TEST(PairJournal, GoesOnBehindTheLastPairWithoutAGap) {
  const std::vector<StretchPair> pairs = played_pairs();
  std::vector<nlohmann::json> journal{entry_of_pair(0, pairs[0]), entry_of_pair(2, pairs[2])};
  EXPECT_EQ(pairs_of(journal).size(), 1U);
  journal.push_back(entry_of_pair(1, pairs[1]));
  EXPECT_EQ(pairs_of(journal).size(), 3U);
  journal[2].erase("with");  // damaged
  EXPECT_EQ(pairs_of(journal).size(), 1U);
}

TEST(PairJournal, ForgetsWhatALaterPartPlaysAnew) {
  const std::vector<StretchPair> pairs = played_pairs();
  std::vector<nlohmann::json> journal{part_entry("first", 0)};
  for (int pair = 0; pair < 3; ++pair) journal.push_back(entry_of_pair(pair, pairs[to_size(pair)]));
  journal.push_back(part_entry("second", 2));  // the rows of the last pair were gone
  EXPECT_EQ(pairs_of(journal).size(), 2U);
  journal.push_back(entry_of_pair(2, pairs[1]));
  const std::vector<StretchPair> found = pairs_of(journal);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[2].checks.messages, pairs[1].checks.messages);
}

TEST(PairJournal, NamesPartsWhereThereAreSeveral) {
  std::vector<nlohmann::json> journal{part_entry("first", 0)};
  EXPECT_TRUE(parts_of(journal).is_null());
  journal.push_back(part_entry("second", 2));
  EXPECT_EQ(parts_of(journal)[1]["finished_before"], 2);
  EXPECT_EQ(parts_of(journal)[1]["command_line"], "second");
}

}  // namespace
}  // namespace longhaul::harness
