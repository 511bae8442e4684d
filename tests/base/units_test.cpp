#include "base/units.hpp"

#include <chrono>

#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "base/suggest.hpp"
#include "base/table.hpp"
#include "base/unit_text.hpp"

namespace longhaul {
namespace {

TEST(Units, TransferTimeIsRoundedToTheNearestNanosecond) {
  EXPECT_EQ(Bytes{1} / Bandwidth{3e9}, Duration{3});   // 2.67 ns
  EXPECT_EQ(Bytes{1} / Bandwidth{16e9}, Duration{1});  // 0.5 ns: halves go up
  EXPECT_EQ(64_MiB / 5_Gbps, Duration{107'374'182});
}

TEST(Units, RatesThatAreNoWholeNumberOfBitsGiveBackTheirTime) {
  const Bytes message = 64_MiB;
  for (const std::int64_t time : {1LL, 9'500'000LL, 76'000'000LL, 86'400'000'000'000LL}) {
    const Bandwidth rate{static_cast<double>(message.count()) * 8e9 / static_cast<double>(time)};
    EXPECT_EQ(message / rate, Duration{time});
  }
}

// The standard library's clock reads CLOCK_MONOTONIC, too.
TEST(Now, LiesBetweenReadingsOfTheSteadyClock) {
  const auto steady = [] { return TimePoint{std::chrono::steady_clock::now().time_since_epoch()}; };
  for (int i = 0; i < 100; ++i) {
    const TimePoint before = steady();
    const TimePoint read = now();
    EXPECT_LE(before, read);
    EXPECT_LE(read, steady());
  }
}

TEST(UnitText, ReadsEveryKindOfUnit) {
  EXPECT_EQ(parse_duration("40ms"), 40ms);
  EXPECT_EQ(parse_duration("1.5 us"), 1500ns);
  EXPECT_EQ(parse_bytes("64MiB"), 64_MiB);
  EXPECT_EQ(parse_bytes("1kB"), Bytes{1000});
  EXPECT_EQ(parse_bandwidth("5Gbps"), 5_Gbps);
  EXPECT_EQ(parse_bandwidth("4GB/s"), 32_Gbps);
}

TEST(UnitText, RefusesWhatItCannotReadAndSaysWhatItWants) {
  const auto message = [](auto&& read, const char* text) -> std::string {
    try {
      read(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(message(parse_duration, "40").find("no unit"), std::string::npos);
  EXPECT_NE(message(parse_duration, "40Gbps").find("unknown unit \"Gbps\""), std::string::npos);
  EXPECT_NE(message(parse_duration, "ms").find("start with a number"), std::string::npos);
  EXPECT_NE(message(parse_duration, "1e30s").find("too large"), std::string::npos);
  EXPECT_NE(message(parse_bytes, "nanGB").find("start with a number"), std::string::npos);
}

TEST(UnitText, NamesTheUnitThatWasMeant) {
  const auto message = [](auto&& read, const char* text) -> std::string {
    try {
      read(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  for (const auto& [text, meant] :
       {std::pair{"5Gbit/s", "Gbps"}, {"5 gbps", "Gbps"}, {"100Mbit/s", "Mbps"}, {"1bit/s", "bps"}})
    EXPECT_NE(message(parse_bandwidth, text).find(std::string{"Did you mean "} + meant + "? "),
              std::string::npos)
        << message(parse_bandwidth, text);
  EXPECT_NE(message(parse_duration, "10 sec").find("Did you mean s? "), std::string::npos);
  EXPECT_NE(message(parse_duration, "10 minutes").find("Did you mean min? "), std::string::npos);
  EXPECT_NE(message(parse_bytes, "1gib").find("Did you mean GiB? "), std::string::npos);
  EXPECT_EQ(message(parse_bytes, "1gbit").find("Did you mean"), std::string::npos) << "is no size";
  EXPECT_EQ(message(parse_bandwidth, "1xyz").find("Did you mean"), std::string::npos);
}

TEST(UnitText, WritesForPeople) {
  EXPECT_EQ(to_text(Duration{38'000'000}), "38 ms");
  EXPECT_EQ(to_text(Duration{1'209'100'000}), "1.209 s");
  EXPECT_EQ(to_text(64_MiB), "64 MiB");
  EXPECT_EQ(to_text(5_Gbps), "5 Gbps");
  EXPECT_EQ(to_text(Bandwidth::unlimited()), "unlimited");
}

TEST(Suggest, FindsTheSlipOfAKey) {
  const std::vector<std::string> known{"latency", "bandwidth", "between"};
  EXPECT_EQ(suggestion("latencey", known), "Did you mean \"latency\"?");
  EXPECT_EQ(suggestion("latnecy", known), "Did you mean \"latency\"?");
  EXPECT_EQ(suggestion("zzz", known), "Known: latency, bandwidth, between.");
}

TEST(Random, OneSeedGivesOneStreamEverywhere) {
  Random random{42};
  EXPECT_EQ(random.next(), 13679457532755275413ULL);  // published SplitMix64 value for seed 42
  EXPECT_NE(derived_seed(1, 2, 3), derived_seed(1, 3, 2));
}

TEST(Random, NormalHasMeanZeroAndUnitVariance) {
  Random random{7};
  double sum = 0, squares = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0.0, 0.02);
  EXPECT_NEAR(squares / kDraws, 1.0, 0.02);
}

TEST(Table, AlignsColumnsAndLeavesNoTrailingBlanks) {
  Table table{{{"schedule", Align::left}, {"ms"}, {"note", Align::left}}};
  table.add_row({"1f1b", "12.5", "µs"});
  table.add_row({"zb-h1", "9"});
  EXPECT_EQ(table.text(),
            "schedule    ms  note\n"
            "--------  ----  ----\n"
            "1f1b      12.5  µs\n"
            "zb-h1        9\n");
}

}  // namespace
}  // namespace longhaul
