#include "profile/machine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "profile/machine_files.hpp"

namespace longhaul::profile {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST(Machine, OfTheProgramAreCompleteAndSmall) {
  for (const char* const name :
       {"vtrain-a100-512", "mpt-a100-40gb", "mpt-a100-80gb", "mpt-h100-80gb", "selene"})
    EXPECT_THAT(machine_names(), Contains(std::string{name}));
  for (const std::string& name : machine_names()) {
    const Machine& machine = machine_named(name);
    EXPECT_EQ(machine.name, name);
    EXPECT_FALSE(machine.source.empty());
    EXPECT_GT(machine.gpu.all_reduce.ns(8, 1e6), 0);
  }
  for (const MachineFile& file : gpu_files()) EXPECT_LT(file.text.size(), 50'000U);
}

TEST(Machine, NamesTheNearestOfAnUnknownOne) {
  try {
    (void)machine_named("selen");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("Did you mean \"selene\"?"));
  }
  EXPECT_THROW((void)read_machine("name = \"x\"\n", "x.toml"), Error);
}

TEST(AllReduceTable, LiesOnLinesBetweenSizesAndKeepsTheLastRate) {
  const AllReduceTable table{{{2, 1000, 100}, {2, 2000, 300}, {4, 1000, 150}}};
  EXPECT_EQ(table.ns(1, 1000), 0);
  EXPECT_DOUBLE_EQ(table.ns(2, 1000), 100);
  EXPECT_DOUBLE_EQ(table.ns(2, 1500), 200);
  EXPECT_DOUBLE_EQ(table.ns(2, 4000), 600);
  EXPECT_DOUBLE_EQ(table.ns(2, 500), 70);
  EXPECT_DOUBLE_EQ(table.ns(3, 1000), 150);
  EXPECT_DOUBLE_EQ(table.ns(8, 1000), 150 * (2 * 7 / 8.0) / (2 * 3 / 4.0));
}

TEST(AllReduceTable, OfFasterLinksIsShorter) {
  const std::vector<AllReduceTable::Measured> table{{2, 1000, 100}};
  EXPECT_DOUBLE_EQ(AllReduceTable(table, 2).ns(2, 1000), 50);
}

}  // namespace
}  // namespace longhaul::profile
