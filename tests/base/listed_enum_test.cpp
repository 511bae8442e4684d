#include "base/listed_enum.hpp"

#include <gmock/gmock.h>

namespace longhaul {
namespace {

using ::testing::ElementsAre;

#define LONGHAUL_TEST_COLOURS(X) X(red, "red", 650) X(dark_blue, "dark-blue", 450)
LONGHAUL_LISTED_ENUM(Colour, LONGHAUL_TEST_COLOURS);

// Lines in another order than their numbers.
#define LONGHAUL_TEST_STATES(X) X(done, "done", 2) X(idle, "idle", 0) X(busy, "busy", 1)
LONGHAUL_NUMBERED_ENUM(WorkState, LONGHAUL_TEST_STATES);

TEST(ListedEnum, HasANameForEachEnumerator) {
  EXPECT_STREQ(to_string(Colour::red), "red");
  EXPECT_STREQ(to_string(Colour::dark_blue), "dark-blue");
  EXPECT_EQ(kCountOf<Colour>, 2);
  EXPECT_THAT(every<Colour>(), ElementsAre(Colour::red, Colour::dark_blue));
  EXPECT_THAT(every_name<Colour>(), ElementsAre("red", "dark-blue"));
}

TEST(ListedEnum, ReadsTheNamesThatItWrites) {
  for (const Colour colour : every<Colour>())
    EXPECT_EQ(from_string<Colour>(to_string(colour)), colour);
  EXPECT_EQ(from_string<Colour>("dark_blue"), std::nullopt);
  EXPECT_EQ(from_string<Colour>(""), std::nullopt);
}

TEST(ListedEnum, TellsNumbersThatAreNoEnumerators) {
  EXPECT_TRUE(is_listed(static_cast<Colour>(1)));
  EXPECT_FALSE(is_listed(static_cast<Colour>(2)));
  EXPECT_DEATH((void)to_string(static_cast<Colour>(2)), "enumerator 2 of 2");
}

TEST(ListedEnum, KeepsTheNumbersThatItsLinesState) {
  EXPECT_EQ(static_cast<int>(WorkState::done), 2);
  EXPECT_STREQ(to_string(WorkState::done), "done");
  EXPECT_STREQ(to_string(WorkState::idle), "idle");
  EXPECT_THAT(every<WorkState>(), ElementsAre(WorkState::idle, WorkState::busy, WorkState::done));
  EXPECT_EQ(from_string<WorkState>("busy"), WorkState::busy);
}

}  // namespace
}  // namespace longhaul
