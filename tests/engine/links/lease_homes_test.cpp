#include "engine/links/lease_homes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/profile/plan_builder.hpp"

namespace longhaul::engine {
namespace {

constexpr Rank kNowhere = kNone<Rank>;

/// Messages of ranks 0 to 5 to rank 6, each over the resources that are named.
class Homes {
public:
  explicit Homes(const std::vector<std::vector<std::string>>& resources_of_rank) {
    for (std::size_t rank = 0; rank < resources_of_rank.size(); ++rank)
      sends_.push_back(
          builder_.message(static_cast<int>(rank), 6, Duration{1}, {}, {}, resources_of_rank[rank])
              .send);
    plan_ = builder_.build();
  }
  /// Of each rank's message, where so many ranks are on a host.
  [[nodiscard]] std::vector<Rank> homes(int ranks_per_host) const {
    const LeaseHomes found = find(ranks_per_host);
    std::vector<Rank> homes;
    for (const auto send : sends_) homes.push_back(found.home[set_of(send)]);
    return homes;
  }
  [[nodiscard]] std::vector<bool> shared(int ranks_per_host) const {
    const LeaseHomes found = find(ranks_per_host);
    std::vector<bool> shared;
    for (const auto send : sends_) shared.push_back(found.shared[set_of(send)]);
    return shared;
  }

private:
  [[nodiscard]] LeaseHomes find(int ranks_per_host) const {
    std::vector<Rank> hosts;
    for (int rank = 0; rank < 7; ++rank)
      hosts.push_back(Rank{rank / ranks_per_host * ranks_per_host});
    return find_lease_homes(plan_, hosts);
  }
  [[nodiscard]] std::size_t set_of(harness::PlanBuilder::Handle send) const {
    return index(plan_.op(builder_.id(send)).resources);
  }
  harness::PlanBuilder builder_{"homes", 7};
  std::vector<harness::PlanBuilder::Handle> sends_;
  Plan plan_;
};

using ::testing::Each;
using ::testing::ElementsAre;

TEST(LeaseHomes, AreNoneOnOneHost) {
  const Homes homes{{{"link"}, {"link"}, {"own"}}};
  EXPECT_THAT(homes.shared(7), ElementsAre(true, true, false));
  EXPECT_THAT(homes.homes(7), Each(kNowhere));
}

TEST(LeaseHomes, AreTheLowestOfRanksOnSeveralHosts) {
  const Homes homes{{{"own"}, {"link"}, {"link"}, {"link"}, {"other"}, {"other"}}};
  EXPECT_THAT(homes.homes(2), ElementsAre(kNowhere, Rank{1}, Rank{1}, Rank{1}, kNowhere, kNowhere));
  EXPECT_THAT(homes.shared(2), ElementsAre(false, true, true, true, true, true));
  EXPECT_THAT(homes.homes(1), ElementsAre(kNowhere, Rank{1}, Rank{1}, Rank{1}, Rank{4}, Rank{4}));
}

// Ranks 0 and 1 share an interface on one host, and rank 1 a link with rank 2 on another: one table
// must know of both, for rank 1 takes them together.
TEST(LeaseHomes, KeepTogetherWhatIsTakenTogether) {
  const Homes homes{{{"egress"}, {"egress", "link"}, {"link"}, {"far"}}};
  EXPECT_THAT(homes.homes(2), ElementsAre(Rank{0}, Rank{0}, Rank{0}, kNowhere));
  EXPECT_THAT(homes.shared(2), ElementsAre(true, true, true, false));
}

}  // namespace
}  // namespace longhaul::engine
