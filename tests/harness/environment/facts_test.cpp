#include "harness/environment/facts.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "trace/scratch_directory.hpp"

namespace longhaul::harness {
namespace {

using nlohmann::json;

/// A root directory of our own making.
class Facts : public ::testing::Test {
protected:
  void put(const std::string& file, const std::string& text) const {
    const auto path = scratch_.path() / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream{path} << text;
  }
  [[nodiscard]] FactSources sources() const { return {scratch_.path(), "no-nvml", "no-nccl"}; }

private:
  testing::ScratchDirectory scratch_;
};

TEST_F(Facts, AreNullWhereAHostDoesNotSay) {
  EXPECT_EQ(host_facts(sources()),
            json::parse(R"({"governor":null,"gpus":[],"gpu_driver":null,"nccl":null})"));
}

TEST_F(Facts, NameEveryGovernorOnce) {
  put("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance\n");
  put("sys/devices/system/cpu/cpufreq/policy1/scaling_governor", "powersave\n");
  put("sys/devices/system/cpu/cpufreq/policy2/scaling_governor", "performance\n");
  EXPECT_EQ(host_facts(sources())["governor"], "performance,powersave");
}

TEST_F(Facts, ReadDriverAndGpusFromProc) {
  put("proc/driver/nvidia/version",
      "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n");
  put("proc/driver/nvidia/gpus/0000:c1:00.0/information", "Model: \t\t NVIDIA B\nIRQ: 1\n");
  put("proc/driver/nvidia/gpus/0000:3b:00.0/information", "Model: \t\t NVIDIA A\n");
  FactSources from = sources();
  from.nccl = LONGHAUL_FAKE_NVIDIA;
  const json facts = host_facts(from);
  EXPECT_EQ(facts["gpu_driver"], "535.104.05");
  EXPECT_EQ(facts["nccl"], "2.21.5");
  EXPECT_EQ(facts["gpus"], json::parse(R"([{"pci":"0000:3b:00.0","name":"NVIDIA A"},
                                           {"pci":"0000:c1:00.0","name":"NVIDIA B"}])"));
}

TEST_F(Facts, ReadTheOpenKernelModulesVersion) {
  put("proc/driver/nvidia/version",
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\n");
  EXPECT_EQ(host_facts(sources())["gpu_driver"], "570.86.15");
}

TEST_F(Facts, AskNvmlWhereProcIsHidden) {
  FactSources from = sources();
  from.nvml = from.nccl = LONGHAUL_FAKE_NVIDIA;
  const json facts = host_facts(from);
  EXPECT_EQ(facts["gpu_driver"], "555.42.06");
  EXPECT_EQ(facts["gpus"].size(), 2U);
  EXPECT_EQ(facts["gpus"][1]["name"], "Made-up GPU 1");
  EXPECT_EQ(facts["gpus"][1]["pci"], "00000000:11:00.0");
  EXPECT_EQ(facts["nccl"], "2.21.5");
}

TEST_F(Facts, LoadNoNcclWithoutAGpu) {
  FactSources from = sources();
  from.nccl = LONGHAUL_FAKE_NVIDIA;
  EXPECT_EQ(host_facts(from)["nccl"], nullptr);
}

TEST_F(Facts, OfAHostWithoutHwloc) {
  put("proc/cpuinfo", "processor\t: 0\nmodel name\t: Made-up CPU\n");
  put("proc/meminfo", "MemTotal:       16384 kB\n");
  const json facts = whole_host_facts(sources());
  EXPECT_EQ(facts["processor"], "Made-up CPU");
  EXPECT_EQ(facts["memory_bytes"], 16384 * 1024);
  EXPECT_FALSE(facts["name"].get<std::string>().empty());
}

TEST(JobFacts, AreNullOutsideSlurm) {
  EXPECT_EQ(job_facts({"HOME=/root", "SLURM_CONF=/etc/slurm.conf"}), nullptr);
}

TEST(JobFacts, HoldWhatMatters) {
  const json facts = job_facts({"SLURM_JOB_ID=42", "SLURM_JOB_NUM_NODES=4", "SLURM_NTASKS=16",
                                "SLURM_JOB_USER=somebody", "SLURM_RESTART_COUNT=1"});
  EXPECT_EQ(facts, json::parse(R"({"job_id":"42","job_num_nodes":"4","ntasks":"16",
                                   "restart_count":"1"})"));
}

/// A job's name may be in any old encoding, and JSON holds UTF-8 alone.
TEST(JobFacts, BytesThatAreNoUtf8AreReplaced) {
  const std::string name = "SLURM_JOB_NAME=r\xe9sum\xe9";
  EXPECT_EQ(job_facts({"SLURM_JOB_ID=42", name})["job_name"], "r\uFFFDsum\uFFFD");
  EXPECT_NO_THROW(static_cast<void>(mpi_parameters({"UCX_TLS=\xff"}).dump()));
}

TEST(MpiParameters, LeaveOutWhatTheLauncherHandsItsRanks) {
  const json facts = mpi_parameters({"OMPI_MCA_btl=tcp,self", "OMPI_MCA_orte_hnp_uri=1.2.3.4",
                                     "OMPI_COMM_WORLD_RANK=0", "OMPI_MCA_ess=env", "UCX_TLS=rc",
                                     "PATH=/bin", "OMPI_MCA_pml=ob1", "OMPI_MCA_pmix=ext3x"});
  EXPECT_EQ(facts, json::parse(R"({"OMPI_MCA_btl":"tcp,self","OMPI_MCA_pml":"ob1",
                                   "UCX_TLS":"rc"})"));
}

TEST(ProgramFacts, SayWhetherFilesDifferedFromTheCommit) {
  const json facts = program_facts("bench --out 'a b'");
  const auto commit = facts["git_commit"].get<std::string>();
  if (commit == "unknown") {
    EXPECT_TRUE(facts["git_dirty"].is_null());
  } else {
    EXPECT_EQ(facts["git_dirty"], commit.ends_with("-dirty"));
  }
  EXPECT_EQ(facts["command_line"], "bench --out 'a b'");
}

TEST(LocalEnvironment, HasHostProgramAndJob) {
  const json facts = local_environment("bench_trace --ranks 4");
  EXPECT_EQ(facts["hosts"].size(), 1U);
  EXPECT_TRUE(facts["hosts"][0].contains("governor"));
  EXPECT_EQ(facts["program"]["command_line"], "bench_trace --ranks 4");
  EXPECT_TRUE(facts.contains("slurm"));
}

TEST(CommandLine, QuotesWhatAShellWouldTakeApart) {
  std::string words[] = {"bench", "a b", "it's", "--set=x:1"};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data()};
  EXPECT_EQ(command_line(4, argv), R"(bench 'a b' 'it'\''s' --set=x:1)");
}

}  // namespace
}  // namespace longhaul::harness
