#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "scenario/complaint.hpp"
#include "trace/scratch_directory.hpp"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Line `number` of kLines replaced (0: added) is refused at `place` for `reason`.
struct Bad {
  std::size_t number;
  std::string line;
  std::string place;
  std::string reason;
};

void PrintTo(const Bad& bad, std::ostream* out) { *out << bad.number << ": " << bad.line; }

class BadLine : public ::testing::TestWithParam<Bad> {};

TEST_P(BadLine, IsRefusedWithItsPlaceAndTheReason) {
  const Bad& bad = GetParam();
  const std::string said = scenario::complaint(scenario::with_line(bad.number, bad.line));
  EXPECT_THAT(said, AllOf(StartsWith("s.toml:" + bad.place + ": "), HasSubstr(bad.reason)));
  EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  EXPECT_TRUE(said.ends_with('.') || said.ends_with('?')) << said;
}

INSTANTIATE_TEST_SUITE_P(
    Keys, BadLine,
    ::testing::Values(
        Bad{1, "[costts]", "1:2", "Did you mean \"costs\"?"},
        Bad{0, "latencey = \"1ms\"", "16:1", "unknown key \"latencey\" (in link)"},
        Bad{2, "forwrd = \"40ms\"", "2:1", "Did you mean \"forward\"?"},
        Bad{4, "[parallel", "4:10", "this is no TOML"},
        Bad{0, "latency = \"10ms\"", "16:11", "cannot redefine existing string 'latency'"},
        Bad{13, "[link]", "13:1", "no list of tables"},
        Bad{1, "costs = 3\n[x]", "2:2", "unknown key \"x\""},
        Bad{5, "", "4:1", "parallel.stages is missing"},
        Bad{6, "", "4:1", "parallel.microbatches is missing"},
        Bad{2, "", "1:1", "costs.forward is missing"},
        Bad{8, "", "7:1", "datacenter.name is missing"},
        Bad{0, "[[node]]\negress = \"1Gbps\"", "16:1", "node.datacenter is missing"}));

INSTANTIATE_TEST_SUITE_P(
    Values, BadLine,
    ::testing::Values(
        Bad{15, "latency = \"10mz\"", "15:11", "unknown unit \"mz\""},
        Bad{15, "latency = \"10\"", "15:11", "it has no unit"},
        Bad{15, "latency = 10", "15:11", "it has no unit"},
        Bad{15, "latency = \"10Gbps\"", "15:11", "unknown unit \"Gbps\""},
        Bad{15, "latency = \"-1ms\"", "15:11", "is negative"},
        Bad{15, "latency = \"nanms\"", "15:11", "nan"},
        Bad{15, "latency = \"1e300h\"", "15:11", "too large"},
        Bad{15, "latency = \"9e18ns\"", "15:11", "36 years"},
        Bad{15, "latency = true", "15:11", "wrong type"},
        Bad{15, "latency = 1979-05-27", "15:11", "a date or time"},
        Bad{15, "latency_ratio = nan", "15:17", "out of range"},
        Bad{15, "latency_ratio = inf", "15:17", "out of range"},
        Bad{15, "latency_ratio = -0.5", "15:17", "out of range"},
        Bad{15, "latency_ratio = \"2\"", "15:17", "wrong type"},
        Bad{15, "bandwidth = \"0Gbps\"", "15:13", "not above zero"},
        Bad{15, "bandwidth = \"-1Gbps\"", "15:13", "not above zero"},
        Bad{15, "bandwidth = \"infGbps\"", "15:13", "is no rate"},
        Bad{15, "bandwidth = \"1e308Tbps\"", "15:13", "too large"},
        Bad{15, "sharing = \"pairs\"", "15:11", "Did you mean \"pair\"?"},
        Bad{15, "preset = \"cross-regions\"", "15:10", "Did you mean \"cross-region\"?"},
        Bad{2, "forward = [\"1ms\", \"1Gb\"]", "2:19", "costs.forward[1]"},
        Bad{2, "forward = [\"1ms\"]", "2:11", "has 1 values (parallel.stages = 2)"},
        Bad{2, "forward = [\"1ms\", \"1ms\", \"1ms\"]", "2:11", "has 3 values"},
        Bad{2, "forward = []", "2:11", "has 0 values"}, Bad{2, "forward = \"0ms\"", "1:1", "zero"},
        Bad{2, "forward = \"4ms\"\nbackward = \"1ms\"\ndgrad = \"2ms\"", "1:1", "negative"},
        Bad{3, "message = \"0B\"", "3:11", "too small"},
        Bad{3, "message = \"-1MiB\"", "3:11", "negative"},
        Bad{3, "activation = \"4ms\"", "3:14", "unknown unit \"ms\""},
        Bad{5, "stages = 0", "5:10", "out of range (1 to 1048576)"},
        Bad{5, "stages = -3", "5:10", "out of range"},
        Bad{5, "stages = 2.0", "5:10", "no whole number"},
        Bad{5, "stages = \"2\"", "5:10", "no whole number"},
        Bad{5, "stages = 1000000000", "5:10", "out of range"},
        Bad{5, "stages = 99999999999999999999", "5:30", "not representable in 64 bits"},
        Bad{6, "microbatches = 16777217", "6:16", "out of range"},
        Bad{6, "microbatches = 16777216\nchunks = 1000", "4:1", "2147483648 is the limit"},
        Bad{6, "microbatches = 1\nreplicas = 1048576", "4:1", "1048576 is the limit"},
        Bad{6, "microbatches = 4\ngradient_sync = \"allreduce\"", "7:17",
            "Did you mean \"all-reduce\"?"}));

INSTANTIATE_TEST_SUITE_P(
    Placement, BadLine,
    ::testing::Values(
        Bad{12, "stages = [0, 1]", "12:11", "stage 0 of replica 0 is placed twice"},
        Bad{12, "stages = [1, 1]", "12:14", "stage 1 of replica 0 is placed twice"},
        Bad{12, "", "10:1", "stage 0 of replica 0 is placed twice (in west and in east)"},
        Bad{12, "stages = []", "5:10", "stage 1 of replica 0 is in no datacenter"},
        Bad{12, "stages = [1, 2]", "12:14", "datacenter.stages[1] = 2 is out of range (0 to 1)"},
        Bad{12, "stages = [-1]", "12:11", "out of range"},
        Bad{12, "stages = 1", "12:10", "no list"},
        Bad{12, "stages = \"1-7\"", "12:10", "7 is not in 0 to 1"},
        Bad{12, "stages = \"1,\"", "12:10", "no range"},
        Bad{12, "stages = \"1,0-1\"", "12:10", "names 1 twice"},
        Bad{12, "stages = [1]\nreplicas = [0, 1]", "13:16", "out of range (0 to 0)"},
        Bad{12, "stages = [1]\ngpus = 0", "13:8", "too few"},
        Bad{12, "stages = [1]\nspeed = 0", "13:9", "out of range"},
        Bad{12, "stages = [1]\nspeed = \"2x\"", "13:9", "wrong type"},
        Bad{11, "name = \"west\"", "11:8", "is there already"},
        Bad{11, "name = \"e.st\"", "11:8", "is no name"},
        Bad{11, "name = \"all\"", "11:8", "is no name"},
        Bad{11, "name = 7", "11:8", "wrong type"}));

INSTANTIATE_TEST_SUITE_P(
    Links, BadLine,
    ::testing::Values(
        Bad{14, "between = [\"west\", \"eastt\"]", "14:20", "Did you mean \"east\"?"},
        Bad{14, "between = [\"west\"]", "14:11", "names 1 datacenters"},
        Bad{14, "between = \"west\"", "14:11", "no list"},
        Bad{14, "", "13:1", "the link has no ends"},
        Bad{14, "from = \"west\"", "13:1", "the link has no ends"},
        Bad{14, "between = \"all\"\nto = \"east\"", "14:11", "both given"},
        Bad{14, "from = \"west\"\nto = \"east\"", "10:1", "there is no link from east to west"},
        Bad{14, "between = [\"west\", \"west\"]", "7:1", "there is no link from west to east"},
        Bad{0, "rtt = \"20ms\"", "16:7", "link.latency and link.rtt are both given"},
        Bad{0, "jitter = -0.1", "16:10", "out of range (0 to 2)"},
        Bad{0, "jitter = \"10ms\"", "16:10", "is unknown"},
        Bad{0, "jitter = {latency = 3}", "16:21", "link.jitter.latency = 3 is out of range"},
        Bad{0, "jitter = {correlation = 1.5}", "16:25", "out of range (0 to 1)"},
        Bad{0, "jitter = {latncy = 0.1}", "16:11", "Did you mean \"latency\"?"},
        Bad{0, "bandwidth = \"1Gbps\"\ntransfer_ratio = 1", "17:18", "are both given"},
        Bad{0, "[[link]]\nfrom = \"west\"\nto = \"east\"", "16:1", "is given twice"},
        Bad{0, "[[link]]\nbetween = \"all\"\n[[link]]\nbetween = \"all\"", "18:1", "a second link"},
        Bad{0, "[[node]]\ndatacenter = \"wets\"", "17:14", "Did you mean \"west\"?"},
        Bad{0, "[[node]]\ndatacenter = \"west\"\n[[node]]\ndatacenter = \"west\"", "19:14",
            "has a [[node]] already"},
        Bad{0, "[[node]]\ndatacenter = \"west\"\negress = \"0bps\"", "18:10", "not above zero"}));

INSTANTIATE_TEST_SUITE_P(
    Whole, BadLine,
    ::testing::Values(
        Bad{0, "[memory]\ncapacity = \"80GiB\"", "17:12", "needs costs.activation"},
        Bad{0, "[memory]\nbudget = 0", "17:10", "out of range"},
        Bad{0, "[memory]\nrecompute = 1", "17:13", "Write true or false"},
        Bad{0, "[run]\ntime_scale = 0", "17:14", "out of range"},
        Bad{0, "[run]\niterations = 0", "17:14", "out of range"},
        Bad{0, "[run]\nseed = -1", "17:8", "out of range"},
        Bad{0, "[run]\nnoise = 1.5", "17:9", "out of range"},
        Bad{0, "[run]\nstragglers = 2", "17:14", "no list"},
        Bad{0, "[run]\nstragglers = [1, 0]", "17:18", "run.stragglers[1] = 0"},
        Bad{0, "[run.stragglers]\n7 = 2", "17:1", "7 is not in 0 to 1"},
        Bad{0, "[scenario]\nname = \"\"", "17:8", "is no name"},
        Bad{0, "[model]\npreset = \"m71\"", "17:10", "Did you mean \"m70\"?"},
        Bad{0, "[model]\nlayers = 4", "16:1", "model.hidden is missing"},
        Bad{0, "[model]\npreset = \"m70-measured\"\nhidden = 7", "18:10", "were measured"},
        Bad{0, "[model]\npreset = \"m8\"\nlayers = 1", "16:1", "2 stages share 1 layers"},
        Bad{0, "[model]\npreset = \"m8\"\nkv_heads = 64", "16:1", "64 kv_heads and 32 heads"},
        Bad{0, "[model]\npreset = \"m8\"\nachieved_flops = \"5 TB\"", "18:18", "PFLOP/s"},
        Bad{15, "bandwidth = \"1e-300bps\"", "4:1", "years (146 is the limit"}));

TEST(BadInput, RepeatedTimesThatLeave64BitsAreRefused) {
  std::vector<std::string> lines = scenario::kLines;
  lines[1] = "forward = \"30000h\"";
  lines[5] = "microbatches = 99999";
  EXPECT_THAT(scenario::complaint(scenario::joined(lines)),
              StartsWith("s.toml:4:1: an iteration could take"));
  lines[1] = "forward = \"1ms\"\nactivation = \"1TiB\"";
  lines[5] = "microbatches = 16777216";
  EXPECT_THAT(scenario::complaint(scenario::joined(lines)),
              StartsWith("s.toml:5:1: a device could hold"));
}

TEST(BadInput, SizesAreAskedForWhereATimeHangsOnThem) {
  std::vector<std::string> lines = scenario::kLines;
  lines[2].clear();
  lines[14] = "bandwidth = \"5Gbps\"";
  EXPECT_THAT(scenario::complaint(scenario::joined(lines)),
              AllOf(StartsWith("s.toml:15:13: "), HasSubstr("needs costs.message")));
  lines[14] = "preset = \"atlas-10ms\"";
  EXPECT_THAT(scenario::complaint(scenario::joined(lines)),
              StartsWith("s.toml:15:10: link.preset needs"));
  lines[14] = "preset = \"atlas-10ms\"\ntransfer_ratio = 1";
  EXPECT_EQ(scenario::complaint(scenario::joined(lines)), "accepted");
  lines[5] = "microbatches = 4\nreplicas = 2";
  EXPECT_THAT(scenario::complaint(scenario::joined(lines)),
              AllOf(StartsWith("s.toml:4:1: "), HasSubstr("needs costs.weights")));
}

TEST(BadInput, ReplicasThatSynchroniseNeedALink) {
  const std::string base = R"([parallel]
stages = 2
replicas = 2
microbatches = 4
[costs]
forward = "1ms"
weights = "1MiB"
[[datacenter]]
name = "west"
replicas = [0]
[[datacenter]]
name = "east"
replicas = [1]
)";
  EXPECT_THAT(scenario::complaint(base),
              AllOf(StartsWith("s.toml:8:1: there is no link from west to east"),
                    HasSubstr("replicas 0 and 1 of stage 0")));
  EXPECT_EQ(scenario::complaint(base, {"parallel.gradient_sync=none"}), "accepted");
}

TEST(BadInput, APlacementMayNotNeedMoreGpusThanThereAre) {
  const std::string base = R"([model]
preset = "m70"
[parallel]
stages = 4
microbatches = 4
[[datacenter]]
name = "west"
gpus = 15
)";
  EXPECT_THAT(scenario::complaint(base),
              AllOf(StartsWith("s.toml:8:8: "), HasSubstr("4 ranks of 4 GPUs")));
  EXPECT_EQ(scenario::complaint(base, {"datacenter.west.gpus=16"}), "accepted");
}

TEST(BadInput, AnEmptyTextLacksParallel) {
  for (const char* text : {"", "\n\n", "# nothing", "[parallel]"})
    EXPECT_THAT(scenario::complaint(text), StartsWith("s.toml:1:1: ")) << text;
  EXPECT_THAT(scenario::complaint("[parallel]\nstages = 1\nmicrobatches = 1"),
              HasSubstr("neither [model] nor [costs]"));
}

TEST(BadInput, FilesThatAreNoScenario) {
  const auto said = [](const std::string& file) -> std::string {
    try {
      (void)scenario::load_scenario(file);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  const testing::ScratchDirectory scratch;
  const std::string folder = scratch.path().string() + "/";
  EXPECT_THAT(said(folder + "not_there.toml"), HasSubstr("No such file"));
  EXPECT_THAT(said(folder), HasSubstr("is a directory"));
  const std::string garbage = folder + "longhaul_garbage.toml";
  Random random{3};
  std::string bytes(20'000'000, ' ');
  for (char& c : bytes) c = static_cast<char>(random.between(0, 255));
  std::ofstream{garbage, std::ios::binary} << bytes;
  EXPECT_THAT(said(garbage), StartsWith(garbage + ":1:1: the text is larger than 16777216 bytes"));
}

}  // namespace
}  // namespace longhaul
