#include "collective/partition/meshes.hpp"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/overlaps.hpp"

namespace longhaul::collective {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two nodes of eight.
TEST(Meshes, ExcludeSubGroupsOfUnequalBandwidth) {
  const Scenario scenario =
      scenario::load_scenario(testing::kShippedScenarios / "centauri-fsdp.toml", {});
  std::vector<Rank> group;
  for (const Rank rank : ids<Rank>(16)) group.push_back(rank);
  std::map<std::string, std::string> reasons;
  for (const GroupMesh& each : meshes_of_group(group, scenario))
    reasons[fmt::format("{}", fmt::join(each.mesh.sizes, "x"))] = each.unequal;
  EXPECT_EQ(reasons.size(), 6U);
  for (const char* equal : {"2x8", "2x2x4", "2x4x2"}) EXPECT_THAT(reasons.at(equal), IsEmpty());
  for (const char* unequal : {"4x4", "8x2", "4x2x2"})
    EXPECT_THAT(reasons.at(unequal), HasSubstr("sub-groups of unequal bandwidth"));
}

}  // namespace
}  // namespace longhaul::collective
