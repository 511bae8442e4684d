// The binary itself, which lies beside the test's: what only a process has.
#include <cstdio>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "support.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;

/// Runs a line of the shell in which $longhaul is the binary; stdout and stderr together.
Outcome shell(const std::string& line) {
  const auto longhaul = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "longhaul";
  const std::string command = "longhaul='" + longhaul.string() + "'; { " + line + "; } 2>&1";
  Outcome outcome;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe))
    outcome.out.append(buffer, n);
  outcome.code = WEXITSTATUS(pclose(pipe));
  return outcome;
}

TEST(Binary, ExitCodesReachTheShell) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kUniform);
  EXPECT_EQ(shell("$longhaul simulate " + scenario + " --schedule 1f1b").code, 0);
  EXPECT_EQ(shell("$longhaul check " + dir.write("bad.csv", "0F0\n")).code, 1);
  const Outcome slip = shell("$longhaul simulat");
  EXPECT_EQ(slip.code, 2);
  EXPECT_THAT(slip.out, HasSubstr("longhaul: unknown command"));
}

TEST(Binary, EndsQuietlyWhenItsReaderLeaves) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kUniform);
  const std::string ops =
      "$longhaul ops " + scenario + " --schedule 1f1b --json --set " + "parallel.microbatches=2000";
  EXPECT_EQ(shell(ops + " | head -1").out, "{\n");
  // The same with the signal ignored, as some parents leave it.
  EXPECT_EQ(shell("trap \"\" PIPE; " + ops + " | head -1").out, "{\n");
}

TEST(Binary, AFileWithoutEndIsBadInput) {
  const TempDir dir;
  std::filesystem::create_symlink("/dev/zero", dir.path("zero.csv"));
  const Outcome outcome = shell("$longhaul check " + dir.path("zero.csv"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.out, HasSubstr("is longer than 256 MiB"));
}

TEST(Binary, AFullDiskIsAFailedRun) {
  const TempDir dir;
  const Outcome full = shell("$longhaul --help > /dev/full");
  EXPECT_EQ(full.code, 3);
  EXPECT_THAT(full.out, HasSubstr("could not be printed"));
}

}  // namespace
}  // namespace longhaul::test
