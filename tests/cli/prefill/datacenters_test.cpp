// Where prompts come from, and which datacenters answer them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text_file.hpp"
#include "cli/support.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;

/// GPipe of 2 stages and 2 microbatches, F 100 ms and B 200 ms, in one datacenter; a token takes 1
/// ms.
class PrefillDatacenters : public ::testing::Test {
protected:
  [[nodiscard]] Outcome run(std::vector<std::string> more) const {
    more.insert(more.begin(),
                {"prefill", scenario_, "--schedule", "gpipe", "--requests", requests_});
    return longhaul_run(more);
  }
  /// A table of one pair of regions, from x:a to x:b, whose round trip takes so many ms.
  [[nodiscard]] std::string table(const char* name, int round_trip) const {
    return directory_.write(name,
                            fmt::format("src_region,dst_region,rtt_avg_ms,throughput_received_bps\n"
                                        "x:a,x:b,{},1e9\n",
                                        round_trip));
  }
  [[nodiscard]] std::string with(const std::string& datacenter, const std::string& rest) const {
    return "[costs]\nforward = \"100ms\"\nbackward = \"200ms\"\nmessage = \"1MB\"\n"
           "[parallel]\nstages = 2\nmicrobatches = 2\n[[datacenter]]\nname = \"a\"\n"
           "stages = [0, 1]\n" +
           datacenter + "[run]\niterations = 4\n[prefill]\nprofile = \"times.csv\"\n" + rest;
  }

  TempDir directory_;
  std::string profile_ =
      directory_.write("times.csv", "tokens,time_ns\n1,1000000\n400,400000000\n");
  std::string scenario_ = directory_.path("scenario.toml");
  std::string requests_ = directory_.write("requests.jsonl",
                                           "{\"timestamp\": 150, \"input_length\": 100}\n"
                                           "{\"timestamp\": 170, \"input_length\": 150}\n");
};

TEST_F(PrefillDatacenters, SendKeysToTheirDecodeRank) {
  const std::string decode = "model = \"llama3-8b\"\ndecode = {rate = \"100Gbps\"}\n";
  scenario_ = directory_.write("without.toml", with("", decode));
  EXPECT_THAT(run({}).err, HasSubstr("datacenter a serves and has no decode rank"));
  scenario_ = directory_.write(
      "decode.toml", with("", decode + "[[service]]\nrole = \"decode\"\ndatacenter = \"a\"\n"));
  const Outcome found = run({"--kv", "whole", "--json"});
  ASSERT_EQ(found.code, 0) << found.err;
  // 131,072 bytes a token at 100 Gbps, of 100 and 150 tokens.
  const double kv = found.json()["schedules"][0]["ttft_parts_ns"]["kv"];
  EXPECT_NEAR(kv, 131'072 * 8.0 / 100 * 125, 1);
}

TEST_F(PrefillDatacenters, SendTheKeysOfABacklog) {
  requests_ = directory_.write("hundred.jsonl", "{\"timestamp\": 0, \"input_length\": 100}\n");
  const auto times = [&](const std::string& decode, std::vector<std::string> more) {
    scenario_ = directory_.write("backlog.toml", with("", "model = \"llama3-8b\"\n" + decode));
    more.insert(more.end(), {"--backlog", "3", "--json"});
    const Outcome found = run(more);
    EXPECT_EQ(found.code, 0) << found.err;
    return found.json()["schedules"][0];
  };
  const auto without = times("", {});
  EXPECT_EQ(without["ttft_parts_ns"]["kv"], 0);
  const std::string decode = "decode = {rate = \"100Gbps\", first_token = \"5ms\"}\n";
  const auto whole = times(decode, {"--kv", "whole"});
  // 100 tokens of 131,072 bytes at 100 Gbps; prompts end 100 ms apart.
  EXPECT_EQ(whole["ttft_parts_ns"]["kv"], 1'048'576);
  EXPECT_EQ(whole["ttft_parts_ns"]["first_token"], 5'000'000);
  EXPECT_EQ(whole["ttft_ns"]["max"].get<double>(),
            without["ttft_ns"]["max"].get<double>() + 6'048'576);
  EXPECT_EQ(times(decode, {"--kv", "layerwise"})["ttft_parts_ns"]["kv"], 1'048'576 / 32)
      << "of the last layer";
}

// Blocks of training wait where a link is out, which a stream's answers do not know.
TEST_F(PrefillDatacenters, RefuseAStreamWhereALinkHasWeather) {
  scenario_ = directory_.write(
      "two.toml",
      "[costs]\nforward = \"100ms\"\nbackward = \"200ms\"\nmessage = \"1MB\"\n"
      "[parallel]\nstages = 2\nmicrobatches = 2\n[[datacenter]]\nname = \"a\"\nstages = [0]\n"
      "[[datacenter]]\nname = \"b\"\nstages = [1]\n[[link]]\nbetween = \"all\"\n"
      "latency = \"1ms\"\nbandwidth = \"5Gbps\"\n[prefill]\nprofile = \"times.csv\"\n");
  EXPECT_EQ(run({"--stream"}).code, 0) << run({"--stream"}).err;
  for (const char* const weather : {"link.outage=[\"30s\",\"500ms\"]", "link.jitter=0.1"}) {
    const Outcome found = run({"--stream", "--set", weather});
    EXPECT_EQ(found.code, 2) << weather;
    EXPECT_THAT(found.err, HasSubstr("--stream: "));
    EXPECT_THAT(found.err, HasSubstr("of the link from a to b")) << weather;
  }
}

TEST_F(PrefillDatacenters, LieAsFarAwayAsTheScenariosTableSays) {
  (void)table("t.csv", 40);
  scenario_ =
      directory_.write("regions.toml", with("region = \"x:b\"\n[wan]\nregions = \"t.csv\"\n", ""));
  requests_ = directory_.write(
      "from.jsonl", "{\"timestamp\": 150, \"input_length\": 100, \"region\": \"x:a\"}\n");
  const auto network = [&](std::vector<std::string> more) {
    more.emplace_back("--json");
    const Outcome found = run(std::move(more));
    EXPECT_EQ(found.code, 0) << found.err;
    return found.json()["schedules"][0]["ttft_parts_ns"]["network"].get<double>();
  };
  EXPECT_EQ(network({}), 40e6);
  EXPECT_EQ(network({"--stream"}), 40e6);
  EXPECT_EQ(network({"--regions", table("other.csv", 60)}), 60e6) << "the option comes first";
  requests_ = directory_.write(
      "from.jsonl", "{\"timestamp\": 150, \"input_length\": 100, \"region\": \"x:c\"}\n");
  const Outcome unknown = run({});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("request 0: the round trip from x:c to x:b"));
  EXPECT_THAT(unknown.err, HasSubstr("(--regions, or regions of [wan])"));
}

}  // namespace
}  // namespace longhaul::test
