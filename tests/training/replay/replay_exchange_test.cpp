#include "training/replay/replay_exchange.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compress/select/sparsifier.hpp"
#include "training/replay/compressed_parts.hpp"

namespace longhaul::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using training::ReplayExchange;
using training::ReplaySet;

constexpr std::size_t kNumbers = 333;

/// The ranks' side, from compress/: replicas {0, 1, 3} are in one datacenter, {2, 4} in another.
class RanksOfTwoSites {
public:
  RanksOfTwoSites(const GradientCompression& compress, int part) : compress_{compress} {
    const double replicas = compress.share == KeptShare::split ? 5 : 1;
    const double sites = compress.share == KeptShare::split ? 2 : 1;
    for (int replica = 0; replica < 5; ++replica)
      replicas_.emplace_back(settings_of(compress, compress.keep / replicas, 1), kNumbers);
    for (const std::vector<std::size_t>& members : kSites) {
      leaders_.push_back(members[static_cast<std::size_t>(part) % members.size()]);
      sites_.emplace_back(settings_of(compress, compress.keep / sites, 2), kNumbers);
    }
    residuals_.assign(5, std::vector<float>(kNumbers));
  }

  compress::SparseSet run(const std::vector<std::vector<float>>& gradients) {
    std::vector<compress::SparseSet> sets;
    for (std::size_t i = 0; i < 5; ++i)
      sets.push_back(compress_.feedback ? replicas_[i].take(gradients[i], residuals_[i])
                                        : replicas_[i].take_without_feedback(gradients[i]));
    if (compress_.exchange != SetExchange::sites) return merge(sets);
    std::vector<compress::SparseSet> of_sites;
    for (std::size_t site = 0; site < 2; ++site) {
      std::vector<compress::SparseSet> of_members;
      for (const std::size_t member : kSites[site]) of_members.push_back(sets[member]);
      std::vector<float> sum(kNumbers);
      add_to(sum, merge(of_members));
      of_sites.push_back(sites_[site].take(sum));
      if (!compress_.feedback) continue;
      for (std::size_t i = 0; i < kNumbers; ++i) residuals_[leaders_[site]][i] += sum[i];
    }
    return merge(of_sites);
  }
  [[nodiscard]] const std::vector<float>& residual(std::size_t replica) const {
    return residuals_[replica];
  }

private:
  inline static const std::vector<std::vector<std::size_t>> kSites{{0, 1, 3}, {2, 4}};
  GradientCompression compress_;
  std::vector<compress::Sparsifier> replicas_, sites_;
  std::vector<std::size_t> leaders_;
  std::vector<std::vector<float>> residuals_;
};

std::vector<std::span<const float>> views(const std::vector<std::vector<float>>& gradients) {
  return {gradients.begin(), gradients.end()};
}

TEST(ReplayExchange, SumsAsRanksDo) {
  const std::vector<int> sites{0, 0, 7, 0, 7};
  for (GradientCompression compress : every_sparse_choice())
    for (const SetExchange exchange : every<SetExchange>())
      for (const bool feedback : {false, true})
        for (const int part : {0, 4}) {
          compress.exchange = exchange;
          compress.feedback = feedback;
          compress.keep = part == 0 ? 0.1 : 0.6;
          compress.share = part == 0 ? KeptShare::each : KeptShare::split;
          SCOPED_TRACE(
              fmt::format("{}, {}, part {}", name_of(compress), to_string(exchange), part));
          ReplayExchange mine{compress, sites, part, kNumbers};
          RanksOfTwoSites theirs{compress, part};
          for (std::uint64_t call = 1; call <= 4; ++call) {
            std::vector<std::vector<float>> gradients;
            for (std::uint64_t replica = 0; replica < 5; ++replica)
              gradients.push_back(numbers_like_gradients(kNumbers, 100 * call + replica));
            ASSERT_EQ(mine.run(views(gradients)), spread_out(theirs.run(gradients)));
            mine.finish();
            for (std::size_t replica = 0; replica < 5; ++replica) {
              const auto residual = mine.residual(ReplicaId{static_cast<std::int32_t>(replica)});
              ASSERT_THAT(std::vector(residual.begin(), residual.end()),
                          ::testing::ContainerEq(theirs.residual(replica)));
            }
          }
        }
}

/// Two replicas in one datacenter, one in another; half of two numbers at each choice.
TEST(ReplayExchange, LeavesWithTheLeaderWhatASiteDoesNotSend) {
  GradientCompression compress;
  compress.method = CompressMethod::topk;
  compress.exchange = SetExchange::sites;
  compress.share = KeptShare::each;
  compress.keep = 0.5;
  const std::vector<int> sites{0, 0, 1};
  const std::vector<std::vector<float>> gradients{{5, 1}, {2, -7}, {0.5F, 3}};
  for (const int part : {0, 1}) {
    ReplayExchange exchange{compress, sites, part, 2};
    // {5, -7} in the first datacenter, of which -7 goes on.
    const ReplaySet sum = exchange.run(views(gradients));
    exchange.finish();
    EXPECT_THAT(sum.numbers, ElementsAre(0, -4));
    EXPECT_THAT(sum.has, ElementsAre(0, 1));
    const auto residual = [&](int replica) { return exchange.residual(ReplicaId{replica}); };
    if (part == 0) {
      EXPECT_THAT(residual(0), ElementsAre(5, 1)) << "the leader";
      EXPECT_THAT(residual(1), ElementsAre(2, 0));
    } else {
      EXPECT_THAT(residual(0), ElementsAre(0, 1));
      EXPECT_THAT(residual(1), ElementsAre(7, 0)) << "the leader";
    }
    EXPECT_THAT(residual(2), ElementsAre(0.5F, 0));
  }
}

/// keep is of all three, and of the sites' two choices.
TEST(ReplayExchange, SplitsAShareOverTheSetsThatMakeItUp) {
  GradientCompression compress;
  compress.block = 1;
  compress.keep = 0.6;
  const std::vector<std::vector<float>> gradients(3, numbers_like_gradients(300, 2));
  const auto kept = [&](SetExchange exchange) {
    compress.exchange = exchange;
    ReplayExchange run{compress, std::vector<int>{0, 0, 1}, 0, 300};
    std::vector<std::size_t> counts;
    const ReplaySet sum = run.run(views(gradients), [&](ReplicaId, const ReplaySet& set) {
      counts.push_back(set.kept().size());
    });
    counts.push_back(sum.kept().size());
    return counts;
  };
  EXPECT_THAT(kept(SetExchange::direct), ElementsAre(60, 60, 60, 60)) << "the same in all";
  EXPECT_THAT(kept(SetExchange::sites), ElementsAre(60, 60, 60, 90)) << "and 30 that are 0";
}

TEST(ReplayExchange, OfOneReplicaIsItsOwnSet) {
  GradientCompression compress;
  compress.exchange = SetExchange::sites;
  compress.keep = 0.25;
  compress.block = 2;
  ReplayExchange one{compress, std::vector<int>{3}, 0, 8};
  const std::vector<std::vector<float>> gradients{{1, 2, 3, 4, 5, 6, 7, 8}};
  EXPECT_THAT(one.run(views(gradients)).numbers, ElementsAre(0, 0, 0, 0, 0, 0, 7, 8));
  EXPECT_THAT(one.residual(ReplicaId{0}), ElementsAre(1, 2, 3, 4, 5, 6, 0, 0));
  compress.method = CompressMethod::randomk;
  ReplayExchange drawn{compress, std::vector<int>{3}, 0, 8};
  compress.exchange = SetExchange::ring;
  ReplayExchange around{compress, std::vector<int>{3}, 0, 8};
  EXPECT_EQ(drawn.run(views(gradients)), around.run(views(gradients))) << "drawn once";
}

TEST(ReplayExchange, SumsSitesInTheOrderOfTheirNumbers) {
  GradientCompression compress;
  compress.method = CompressMethod::none;
  compress.exchange = SetExchange::sites;
  const std::vector<std::vector<float>> gradients{{1e8F}, {3}, {-1e8F}};
  const auto sum = [&](const std::vector<int>& sites) {
    return ReplayExchange{compress, sites, 0, 1}.run(views(gradients)).numbers[0];
  };
  EXPECT_EQ(sum({0, 1, 2}), 0);
  EXPECT_EQ(sum({0, 2, 1}), 3);
}

/// Halves from 2048 on are even.
TEST(ReplayExchange, RoundsDenseSumsOfSitesAgain) {
  GradientCompression compress;
  compress.method = CompressMethod::fp16;
  compress.exchange = SetExchange::sites;
  const std::vector<std::vector<float>> gradients{{2048}, {1}, {2}};
  const auto sum = [&](const std::vector<int>& sites) {
    ReplayExchange exchange{compress, sites, 0, 1};
    const float number = exchange.run(views(gradients)).numbers[0];
    EXPECT_THAT(exchange.residual(ReplicaId{0}), Each(0));
    return number;
  };
  EXPECT_EQ(sum({0, 0, 1}), 2050) << "2049 is no half";
  EXPECT_EQ(sum({0, 1, 2}), 2051) << "not rounded after the last sum";
  compress.method = CompressMethod::none;
  EXPECT_EQ(sum({0, 0, 1}), 2051);
}

/// What a site leaves in iteration n joins its leader's gradient in n + 1 + staleness.
TEST(ReplayExchange, FeedsBackLaterWhereUpdatesAreStale) {
  GradientCompression compress;
  compress.method = CompressMethod::topk;
  compress.keep = 0.5;
  compress.share = KeptShare::each;
  compress.exchange = SetExchange::sites;
  const std::vector<int> sites{0, 0};
  const std::vector<std::vector<float>> first{{4, 0}, {0, 3}}, none{{0, 0}, {0, 0}};
  for (const int staleness : {0, 1, 2}) {
    ReplayExchange exchange{compress, sites, 0, 2, staleness};
    EXPECT_THAT(exchange.run(views(first)).numbers, ElementsAre(4, 0)) << "3 is left";
    for (int i = 0; i < staleness; ++i) {
      EXPECT_THAT(exchange.run(views(none)).numbers, ElementsAre(0, 0));
      EXPECT_THAT(exchange.residual(ReplicaId{0}), ElementsAre(0, 0)) << "it waits";
    }
    EXPECT_THAT(exchange.run(views(none)).numbers, ElementsAre(0, 3));
  }
}

}  // namespace
}  // namespace longhaul::testing
