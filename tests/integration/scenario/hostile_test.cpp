// Texts that want to crash the reader or to keep it busy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "scenario/complaint.hpp"
#include "scenario/text/config_node.hpp"

namespace longhaul {
namespace {

using namespace std::string_view_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string repeated(std::string_view piece, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += piece;
  return text;
}

TEST(Hostile, DeepNestingIsRefused) {
  EXPECT_THAT(scenario::complaint("a = " + repeated("[", 900'000)), HasSubstr("nested"));
  EXPECT_THAT(scenario::complaint("a = " + repeated("{a=", 300'000)), HasSubstr("nested"));
  EXPECT_THAT(scenario::complaint(repeated("[", 900'000)), StartsWith("s.toml:1:"));
  EXPECT_THAT(scenario::complaint(repeated("a.", 400'000) + "a = 1"),
              HasSubstr("more than 32 parts"));
  EXPECT_THAT(scenario::complaint("x = 1\n[[" + repeated("a . ", 200'000) + "a]]"),
              StartsWith("s.toml:2:"));
  EXPECT_THAT(scenario::complaint("a = [\n{" + repeated("\"=,\".'[]'.", 80'000) + "a = 1}]"),
              StartsWith("s.toml:2:"));
}

TEST(Hostile, DotsInsideStringsAndCommentsAreNoKeys) {
  const std::string dots = repeated(".", 1000);
  const std::string name = "[scenario]\nname = \"\"\"a\\\"\"\"\"\n";  // a, a quote
  EXPECT_EQ(scenario::complaint(scenario::joined(scenario::kLines) + "# " + dots + "\n" + name),
            "accepted");
  EXPECT_THAT(
      scenario::complaint("a = '" + dots + "'\nb = \"\\\"" + dots + "\"\nc = '''\n" + dots + "'''"),
      StartsWith("s.toml:1:1: unknown key \"a\""));
}

TEST(Hostile, BytesThatAreNoText) {
  EXPECT_THAT(scenario::complaint(std::string(1000, '\0')),
              StartsWith("s.toml:1:1: this is no TOML"));
  EXPECT_THAT(scenario::complaint("\xff\xfe\xff"), StartsWith("s.toml:1:1: "));
  EXPECT_EQ(scenario::complaint("a\x1b[31m = 1").find('\x1b'), std::string::npos);
  EXPECT_THAT(scenario::complaint("\"a\\u001b[31m\" = 1"),
              StartsWith("s.toml:1:1: unknown key \"a?[31m\""));
}

TEST(Hostile, LongWordsAreCutInMessages) {
  EXPECT_LT(scenario::complaint(repeated("k", 500'000) + " = 1").size(), 300U);
  EXPECT_LT(
      scenario::complaint(scenario::with_line(15, "latency = \"" + repeated("9", 500'000) + "\""))
          .size(),
      300U);
  EXPECT_LT(scenario::complaint(
                scenario::with_line(15, "sharing = \"" + repeated("\xc3\xa4", 90'000) + "\""))
                .size(),
            300U);
  EXPECT_LT(scenario::complaint(scenario::joined(scenario::kLines),
                                {"run." + repeated("k", 500'000) + "=1"})
                .size(),
            400U);
}

TEST(Hostile, ManyTablesAreBounded) {
  EXPECT_THAT(
      scenario::complaint(repeated("[[link]]\n", 100'000) + scenario::joined(scenario::kLines)),
      HasSubstr("no ends"));
  std::string datacenters;
  for (int i = 0; i < 1100; ++i)
    datacenters += fmt::format("[[datacenter]]\nname = \"d{}\"\nstages = []\n", i);
  EXPECT_THAT(
      scenario::complaint("[parallel]\nstages = 1\nmicrobatches = 1\n[costs]\nforward = \"1ms\"\n" +
                          datacenters),
      HasSubstr("datacenter 1025 (1024 is the limit)"));
}

TEST(Hostile, TheLargestTextIsRead) {
  const std::string text = scenario::joined(scenario::kLines);
  const std::size_t room = scenario::kLargestText - text.size();
  EXPECT_EQ(scenario::complaint(text + '#' + repeated("x", room - 1)), "accepted");
  EXPECT_THAT(scenario::complaint(text + '#' + repeated("x", room)),
              HasSubstr("larger than 16777216 bytes"));
}

TEST(Hostile, TheLargestCountsAreReadInTime) {
  const std::string text =
      "[parallel]\nstages = 1048576\nmicrobatches = 1024\n"
      "[costs]\nforward = \"1ms\"\n[[datacenter]]\nname = \"west\"\n"
      "stages = \"0-524287\"\n[[datacenter]]\nname = \"east\"\n"
      "stages = \"524288-1048575\"\n[[link]]\nbetween = \"all\"\n";
  EXPECT_EQ(scenario::complaint(text), "accepted");
}

/// Every damage of a few bytes is either accepted or refused with one placed line.
TEST(Hostile, DamagedTextsNeverCrash) {
  const std::string whole = scenario::joined(scenario::kLines) +
                            "[memory]\nbudget = 1.5\n[run]\nnoise = 0.1\nstragglers = [1, 2]\n"
                            "[[node]]\ndatacenter = \"east\"\negress = \"5Gbps\"\n";
  const std::string_view alphabet = "[]{}=.,\"'#\n\\ -_0159naefims\0\xff"sv;
  Random random{11};
  int refused = 0;
  for (int trial = 0; trial < 20'000; ++trial) {
    std::string text = whole;
    for (std::int64_t damage = random.between(1, 4); damage > 0; --damage) {
      const auto at =
          static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(text.size()) - 1));
      const char byte = alphabet[static_cast<std::size_t>(
          random.between(0, static_cast<std::int64_t>(alphabet.size()) - 1))];
      switch (random.between(0, 2)) {
        case 0: text[at] = byte; break;
        case 1: text.insert(at, 1, byte); break;
        default: text.erase(at, static_cast<std::size_t>(random.between(1, 9))); break;
      }
    }
    const std::string said = scenario::complaint(text);
    if (said == "accepted") continue;
    ++refused;
    ASSERT_THAT(said, StartsWith("s.toml:")) << text;
    ASSERT_EQ(said.find('\n'), std::string::npos) << said;
  }
  EXPECT_GT(refused, 10'000);
}

}  // namespace
}  // namespace longhaul
