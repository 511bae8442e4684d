#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/link/link_import.hpp"
#include "cli/support.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// iperf3 -J with so many streams of 600 Mbps and a least round trip of 40.2 ms.
nlohmann::json iperf3(int streams) {
  nlohmann::json result;
  result["start"] = {
      {"version", "iperf 3.12"},
      {"test_start", {{"protocol", "TCP"}, {"num_streams", streams}, {"reverse", 0}}}};
  const double rate = 600e6 * streams;
  for (const double factor : {0.98, 1.02, 0.98, 1.02}) {
    nlohmann::json interval;
    for (int stream = 0; stream < streams; ++stream)
      interval["streams"].push_back({{"rtt", 45000}, {"bits_per_second", 600e6 * factor}});
    interval["sum"] = {{"seconds", 1.0}, {"bits_per_second", rate * factor}, {"omitted", false}};
    result["intervals"].push_back(interval);
  }
  // what is left of the last second: no rate to compare
  result["intervals"].push_back({{"sum", {{"seconds", 0.001}, {"bits_per_second", 9e12}}}});
  for (int stream = 0; stream < streams; ++stream)
    result["end"]["streams"].push_back(
        {{"sender", {{"min_rtt", 40200 + 10 * stream}, {"mean_rtt", 45000}}}});
  result["end"]["sum_sent"] = {{"bits_per_second", rate * 1.01}, {"retransmits", 17}};
  result["end"]["sum_received"] = {{"bits_per_second", rate}};
  return result;
}

const std::string kOsuLatency = R"(
# OSU MPI Latency Test v7.1
# Datatype: MPI_CHAR.
# Size          Latency (us)
0                   20050.25
1                   20051.00
4194304             61000.00
)";

const std::string kOsuBandwidth = R"(# OSU MPI Bandwidth Test v5.9
# Size      Bandwidth (MB/s)
1                       0.05
65536                 300.10
4194304               287.50
)";

const std::string kOsuPairs = R"(# OSU MPI Multiple Bandwidth / Message Rate Test v5.9
# [ pairs: 4 ] [ window size: 64 ]
# Size                  MB/s        Messages/s
1                       0.20         200000.00
1048576              2500.00           2384.19
)";

const std::string kNccl =
    R"(# nThread 1 nGpus 1 minBytes 8 maxBytes 1048576 step: 2(factor) warmup iters: 5 iters: 20
# Collective test starting: sendrecv_perf
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1  1020.50    0.00    0.00      0  1019.50    0.00    0.00    N/A
     1048576        262144     float     sum      -1   3000.0    0.35    0.35      0   2900.0    0.36    0.36    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.18
)";

class LinkImport : public ::testing::Test {
protected:
  [[nodiscard]] Outcome import(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"link", "import"});
    return longhaul_run(arguments);
  }
  /// The link of a scenario that takes the printed one over.
  [[nodiscard]] Link link_of(const Outcome& run) const {
    const std::string toml = run.out.substr(0, run.out.find("\n\n") + 1);
    const std::string text = scenario_text(
        "own",
        "[[datacenter]]\nname = \"a\"\nstages = [0, 1]\n[[datacenter]]\nname = \"b\"\n"
        "stages = [2, 3]\n");
    const Scenario scenario = scenario::parse_scenario(text + toml, "own.toml");
    return *scenario.link(DatacenterId{0}, DatacenterId{1});
  }
  TempDir directory_;
};

TEST_F(LinkImport, OneTcpConnection) {
  const Outcome run = import({directory_.write("one.json", iperf3(1).dump())});
  ASSERT_EQ(run.code, 0) << run.err;
  const Link link = link_of(run);
  EXPECT_EQ(link.latency, 20'100us);
  EXPECT_EQ(link.bandwidth, 600_Mbps);
  EXPECT_FALSE(link.connections.has_value());
  EXPECT_NEAR(link.jitter.transfer, 0.0231, 1e-4);  // 2% about the mean, n - 1
  EXPECT_EQ(link.jitter.correlation, 1);
  EXPECT_THAT(run.out, AllOf(HasSubstr("between = [\"a\", \"b\"]"), HasSubstr("17")));
}

TEST_F(LinkImport, SeveralConnectionsBecomeConnections) {
  const Outcome run = import({directory_.write("four.json", iperf3(4).dump())});
  ASSERT_EQ(run.code, 0) << run.err;
  const Link link = link_of(run);
  ASSERT_TRUE(link.connections.has_value());
  EXPECT_EQ(link.connections->count, 4);
  EXPECT_EQ(link.bandwidth, 2400_Mbps);
  EXPECT_NEAR(link.connections->each.bits_per_second(), 600e6, 1e3);  // to a byte in flight
}

// 1000 s there and back are no round trip.
TEST(ReadIperf3, BelievesRoundTripsBelowAThousandSeconds) {
  const auto latency = [](std::int64_t microseconds) {
    nlohmann::json result = iperf3(1);
    result["end"]["streams"][0]["sender"]["min_rtt"] = microseconds;
    return cli::read_iperf3(result.dump(), "i.json").latency;
  };
  EXPECT_EQ(latency(999'999'999), Duration{499'999'999'500});
  EXPECT_EQ(latency(1'000'000'000), std::nullopt);
}

TEST_F(LinkImport, LatencyFromOneFileAndBandwidthFromAnother) {
  const Outcome run =
      import({directory_.write("lat.txt", kOsuLatency), directory_.write("bw.txt", kOsuBandwidth),
              "--from", "b", "--to", "a"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("from = \"b\"\nto = \"a\"\nlatency = \"20.05025ms\"\n"
                                 "bandwidth = \"2400.8Mbps\"\n"));
  const Outcome both =
      import({directory_.path("lat.txt"), directory_.path("bw.txt"), "--between", "a,b"});
  EXPECT_EQ(link_of(both).latency, 20'050'250ns);
  EXPECT_EQ(link_of(both).bandwidth, Bandwidth{2400.8e6});
}

TEST_F(LinkImport, PairsOfRanksShowWhatAllReachTogether) {
  const Outcome run = import({directory_.write("mbw.txt", kOsuPairs)});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(link_of(run).bandwidth, 5_Gbps);
  EXPECT_EQ(link_of(run).aggregate, 20_Gbps);
}

TEST_F(LinkImport, NcclTestsGiveBusBandwidth) {
  const Outcome run = import({directory_.write("sr.txt", kNccl), "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto file = run.json()["files"][0];
  EXPECT_EQ(file["format"], "nccl-tests");
  EXPECT_EQ(file["latency_ns"], 1'020'500);
  EXPECT_EQ(file["rate_bits_per_second"], 2.8e9);
  EXPECT_THAT(run.json()["link"].get<std::string>(), HasSubstr("bandwidth = \"2800Mbps\""));
  std::string unnamed = kNccl;
  unnamed.erase(unnamed.find("# Collective"), unnamed.find("#        ") - unnamed.find("# Coll"));
  const Outcome other = import({directory_.write("all.txt", unnamed), "--json"});
  EXPECT_TRUE(other.json()["files"][0]["latency_ns"].is_null());  // perhaps an all-reduce
}

struct Bad {
  std::string text;
  std::string reason;
};

void PrintTo(const Bad& bad, std::ostream* out) { *out << bad.reason; }

class BadResult : public ::testing::TestWithParam<Bad> {};

TEST_P(BadResult, IsRefusedInOneLine) {
  const TempDir directory;
  const Outcome run = longhaul_run({"link", "import", directory.write("bad.txt", GetParam().text)});
  EXPECT_EQ(run.code, 2);
  EXPECT_TRUE(run.out.empty());
  EXPECT_THAT(run.err, AllOf(HasSubstr("bad.txt"), HasSubstr(GetParam().reason)));
  EXPECT_EQ(run.err.find('\n'), run.err.size() - 1) << run.err;
}

INSTANTIATE_TEST_SUITE_P(
    Results, BadResult,
    ::testing::Values(
        Bad{"", "the file is empty"}, Bad{" \n", "the file is empty"},
        Bad{"<!DOCTYPE html>\n<html>", "it looks like a web page"},
        Bad{"hello\n1 2\n", "no result of a benchmark"},
        Bad{iperf3(2).dump().substr(0, 400), "no whole JSON"}, Bad{"{}", "no result of iperf3"},
        Bad{std::string(100'000, '{'), "no whole JSON"},
        Bad{"{\"a\":" + std::string(1'000'000, '['), "no whole JSON"},
        Bad{R"({"start": {}, "end": [], "error": "unable to connect"})", "unable to connect"},
        Bad{R"({"start": 3, "end": {"sum_received": {"bits_per_second": -1}}})", "moved nothing"},
        Bad{R"({"start": {"test_start": {"protocol": "UDP"}}, "end": {}})", "without TCP"},
        Bad{"# OSU MPI Latency Test v7.1\n# Size  Latency (us)\n", "no results"},
        Bad{"# OSU MPI Latency Test v7.1\n# Size  Latency (us)\n1  2.5\n2\n", "bad.txt:4: "},
        Bad{"# OSU MPI Latency Test v7.1\n# Size  Latency (us)\n1048576  2.5\n",
            "no small message"},
        Bad{"# OSU MPI Allreduce Latency Test v7.1\n# Size  Avg Latency(us)\n4  2.5\n",
            "says nothing of a link"},
        Bad{"# OSU MPI Bandwidth Test v7.1\n# Size  Bandwidth (MB/s)\n4  0.00\n", "no rate above"},
        Bad{"# OSU MPI Bandwidth Test v7.1\n# Size  Bandwidth (MB/s)\n4  nan\n", "is not whole"},
        Bad{kOsuLatency + kOsuBandwidth, "more than one OSU"},
        Bad{"# size count algbw (busbw)\n", "has no column \"time\""},
        Bad{kNccl.substr(0, kNccl.find("     1048576") + 40), "is not whole"}));

TEST_F(LinkImport, MisuseIsRefused) {
  const std::string file = directory_.write("bw.txt", kOsuBandwidth);
  EXPECT_THAT(import({directory_.path("none")}).err, HasSubstr("no such file"));
  EXPECT_THAT(import({directory_.path("")}).err, HasSubstr("this is no file"));
  EXPECT_THAT(import({"/dev/zero"}).err, HasSubstr("this is no file"));
  EXPECT_THAT(import({}).err, HasSubstr("a file is missing"));
  EXPECT_THAT(import({file, "--between", "a"}).err, HasSubstr("is no name of a datacenter"));
  EXPECT_THAT(import({file, "--from", "a"}).err, HasSubstr("--to"));
  EXPECT_THAT(import({file, "--from", "a", "--between", "a,b"}).err, HasSubstr("both given"));
  EXPECT_THAT(import({file, "--between", "a,\"b"}).err, HasSubstr("is no name"));
  EXPECT_EQ(longhaul_run({"link", "imprt"}).code, 2);
  EXPECT_EQ(longhaul_run({"link"}).code, 2);
}

}  // namespace
}  // namespace longhaul::test
