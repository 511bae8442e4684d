#include "harness/session/site_leave.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/reader/load.hpp"

namespace longhaul::harness {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Property;
using ::testing::ThrowsMessage;

constexpr std::optional<Rank> kNowhere = std::nullopt;

/// A stage for each name, in its datacenter.
Scenario placed(const std::string& name, const std::vector<std::string>& stages) {
  std::string text = fmt::format(
      "[scenario]\nname = \"{}\"\n[costs]\nforward = \"1ms\"\ndgrad = \"1ms\"\nwgrad = \"1ms\"\n"
      "message = \"1MiB\"\n"
      "[parallel]\nstages = {}\nmicrobatches = 2\n",
      name, stages.size());
  std::vector<std::string> names;
  for (const std::string& each : stages)
    if (std::ranges::find(names, each) == names.end()) names.push_back(each);
  for (const std::string& each : names) {
    std::vector<std::size_t> of;
    for (std::size_t i = 0; i < stages.size(); ++i)
      if (stages[i] == each) of.push_back(i);
    text +=
        fmt::format("[[datacenter]]\nname = \"{}\"\nstages = [{}]\n", each, fmt::join(of, ", "));
  }
  for (std::size_t i = 0; i < names.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      text += fmt::format(
          "[[link]]\nbetween = [\"{}\", \"{}\"]\nlatency = \"1ms\"\nbandwidth = \"1Gbps\"\n",
          names[i], names[j]);
  return scenario::parse_scenario(text, name);
}

Scenario whole() { return placed("whole", {"west", "west", "middle", "east", "east", "middle"}); }

TEST(SiteLeaveTest, RanksStayInTheirDatacenterAndKeepTheirOrder) {
  EXPECT_THAT(ranks_of_rest(whole(), placed("rest", {"east", "west", "east"}), "middle"),
              ElementsAre(Rank{1}, kNowhere, kNowhere, Rank{0}, Rank{2}, kNowhere));
  EXPECT_THAT(ranks_of_rest(whole(), placed("rest", {"middle", "west", "west"}), "east"),
              ElementsAre(Rank{1}, Rank{2}, Rank{0}, kNowhere, kNowhere, kNowhere));
}

TEST(SiteLeaveTest, ARestThatDoesNotFitIsRefused) {
  const auto places = [](const std::vector<std::string>& rest, const std::string& site) {
    return [=] { (void)ranks_of_rest(whole(), placed("rest", rest), site); };
  };
  EXPECT_THAT(places({"west"}, "south"),
              ThrowsMessage<Error>(HasSubstr("has no datacenter south (west, middle, east)")));
  EXPECT_THAT(places({"west", "east"}, "east"),
              ThrowsMessage<Error>(HasSubstr("still has 1 ranks in east, which leaves")));
  EXPECT_THAT(places({"west", "west", "west"}, "east"),
              ThrowsMessage<Error>(HasSubstr("has 3 ranks in west, and 2 of whole stay there")));
  EXPECT_THAT(places({"north"}, "east"),
              ThrowsMessage<Error>(HasSubstr("1 ranks in north, and 0")));
}

TEST(SiteLeaveTest, ReadsTheOption) {
  const SiteLeave leave = parse_leave("us@east@12");
  EXPECT_EQ(leave.site, "us@east");
  EXPECT_EQ(leave.iteration, 12);
  for (const char* wrong : {"east", "east@", "@3", "east@0", "east@-1", "east@3x", "east@1e3"})
    EXPECT_THAT([&] { (void)parse_leave(wrong); },
                ThrowsMessage<Error>(HasSubstr("no SITE@ITERATION")))
        << wrong;
}

}  // namespace
}  // namespace longhaul::harness
