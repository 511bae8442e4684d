#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/parse/parser.hpp"
#include "cli/support.hpp"

namespace longhaul::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

cli::Options options_of(const std::vector<std::string>& arguments) {
  return cli::read_command_line(arguments).options;
}

TEST(CommandLine, ReadsEveryOptionOfACommand) {
  const cli::Options options =
      options_of({"simulate", "s.toml", "--schedule", "1f1b,zb-h1", "--comm=grouped", "--json",
                  "--out", "t.h5", "--set", "run.seed=3", "--set", "link.latency=1ms"});
  EXPECT_THAT(options.files, ElementsAre("s.toml"));
  EXPECT_EQ(options.schedule, "1f1b,zb-h1");
  EXPECT_EQ(options.comm, "grouped");
  EXPECT_EQ(options.out, "t.h5");
  EXPECT_TRUE(options.json);
  EXPECT_THAT(options.overrides, ElementsAre("run.seed=3", "link.latency=1ms"));
}

TEST(CommandLine, SetTakesOneValueAndLeavesTheFileBehindIt) {
  const cli::Options options = options_of({"simulate", "--set", "run.seed=3", "s.toml"});
  EXPECT_THAT(options.files, ElementsAre("s.toml"));
  EXPECT_THAT(options.overrides, ElementsAre("run.seed=3"));
}

TEST(CommandLine, KeepsTheCommandLineAsAShellWouldTakeIt) {
  EXPECT_EQ(options_of({"check", "my file.toml", "it's"}).command_line,
            "longhaul check 'my file.toml' 'it'\\''s'");
}

TEST(CommandLine, FilesMayBeNamedLikeCommands) {
  EXPECT_THAT(options_of({"check", "plan", "trace"}).files, ElementsAre("plan", "trace"));
}

struct Slip {
  std::vector<std::string> arguments;
  std::string answer;
};

void PrintTo(const Slip& slip, std::ostream* out) {
  *out << "longhaul";
  for (const std::string& word : slip.arguments) *out << ' ' << word;
}

class SlipTest : public ::testing::TestWithParam<Slip> {};

TEST_P(SlipTest, IsAnsweredInOneLineWithTheNearestKnownWord) {
  const Outcome run = longhaul_run(GetParam().arguments);
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, StartsWith("longhaul: "));
  EXPECT_THAT(run.err, HasSubstr(GetParam().answer));
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
}

INSTANTIATE_TEST_SUITE_P(
    CommandLine, SlipTest,
    ::testing::Values(
        Slip{{"version", "x"}, "unknown command \"longhaul version\""},
        Slip{{"--json"}, "longhaul: unknown option \"--json\""},
        Slip{{"simulate", "s.toml", "--out", ""},
             "--out \"\" names no file or directory (results are not written to standard output)"},
        Slip{{"simulate", "s.toml", "--out="}, "--out \"\" names no file or directory"},
        Slip{{"simulate", "s.toml", "--out", "-"}, "--out \"-\" names no file or directory"},
        Slip{{"simulate", "s.toml", "--out=-"}, "--out \"-\" names no file or directory"},
        Slip{{"simulat", "s.toml"}, "Did you mean \"simulate\"?"},
        Slip{
            {"frobnicate"},
            "Known: schedule, simulate, scenario, check, plan, advise, cluster, size, ops, layers, "
            "collective, "
            "partition, bubbles, prefill, send, rule, trace, compare, report, watch, link, "
            "predict, "
            "profile, "
            "compress, "
            "tune, presets."},
        Slip{{"trace", "sumary", "t.h5"}, "Did you mean \"summary\"?"},
        Slip{{"trace"}, "longhaul: trace: no command given. `longhaul trace --help`"},
        Slip{{"presets", "m8"}, "presets: unexpected argument \"m8\""},
        Slip{{"trace", "export", "--ot", "x"}, "longhaul: trace export: unknown option \"--ot\""},
        Slip{{"simulate", "s.toml", "--schedul", "1f1b"}, "Did you mean \"--schedule\"?"},
        Slip{{"simulate", "s.toml", "--jsn"}, "unknown option \"--jsn\""},
        Slip{{"--verison"}, "Did you mean \"--version\"?"},
        Slip{{"simulate", "a.toml", "b.toml", "--schedule", "1f1b"}, "\"b.toml\""},
        Slip{{"simulate", "--schedule", "1f1b"}, "a file is missing"},
        Slip{{"check"}, "a file is missing"},
        Slip{{"simulate", "s.toml", "--schedule"}, "--schedule"},
        Slip{{"ops", "s.toml", "--schedule", "1f1b", "--rank", "x"}, "--rank"},
        Slip{{"simulate", "s.toml", "--json=3"}, "--json=3: unexpected value (--json takes none)"},
        Slip{{"simulate", "s.toml", "--schedule", "1f1b", "--json=3"},
             "--json=3: unexpected value (--json takes none)"},
        Slip{{"simulate", "s.toml", "--schedule", "1f1b", "--schedule=zb-h1"},
             "--schedule is given 2 times (it takes one list). Write --schedule 1f1b,zb-h1, say."},
        Slip{{"ops", "s.toml", "--schedule", "1f1b", "--schedule", "zb-h1"},
             "--schedule is given 2 times (it takes one value)"},
        Slip{{"simulate", "s.toml", "--out", "a", "--out", "b"}, "--out is given 2 times"}));

TEST(CommandLine, VersionNamesTheCommit) {
  const Outcome run = longhaul_run({"--version"});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.out, ::testing::MatchesRegex("longhaul [^ ]+ \\([^ ]+\\)\n"));
}

TEST(CommandLine, HelpAndVersionMayBeAskedForWithoutDashes) {
  const std::string help = longhaul_run({"--help"}).out;
  for (const std::vector<std::string>& words : {std::vector<std::string>{}, {"help"}}) {
    const Outcome run = longhaul_run(words);
    EXPECT_EQ(run.code, 0);
    EXPECT_EQ(run.out, help);
    EXPECT_EQ(run.err, "");
  }
  EXPECT_EQ(longhaul_run({"help", "trace", "export"}).out,
            longhaul_run({"trace", "export", "--help"}).out);
  EXPECT_THAT(longhaul_run({"version"}).out, StartsWith(longhaul_run({"--version"}).out));
  EXPECT_EQ(longhaul_run({"help", "simulat"}).code, 2);
}

TEST(CommandLine, HelpNamesCommandsAndOptions) {
  Outcome run = longhaul_run({"--help"});
  EXPECT_EQ(run.code, 0);
  for (const char* command : {"schedule", "simulate", "check", "trace", "ops", "presets"})
    EXPECT_THAT(run.out, HasSubstr(command));
  EXPECT_THAT(run.out, HasSubstr("Exit codes"));
  run = longhaul_run({"simulate", "--help"});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.out, HasSubstr("--schedule"));
  EXPECT_THAT(run.out, HasSubstr("time_scale"));
  run = longhaul_run({"trace", "export", "--help"});
  EXPECT_THAT(run.out, HasSubstr("--format"));
}

/// A stdout that takes nothing, for a given reason.
class ClosedBuffer : public std::streambuf {
public:
  explicit ClosedBuffer(int error) : error_{error} {}

private:
  int_type overflow(int_type) override { return errno = error_, traits_type::eof(); }
  std::streamsize xsputn(const char*, std::streamsize) override { return errno = error_, 0; }
  int error_;
};

TEST(CommandLine, AReaderThatLeftIsNoErrorAndAFullDiskIs) {
  const std::vector<std::string> arguments{"--help"};
  ClosedBuffer pipe{EPIPE}, disk{ENOSPC};
  std::ostream to_pipe{&pipe}, to_disk{&disk};
  std::ostringstream err;
  EXPECT_EQ(cli::run_longhaul(arguments, to_pipe, err), 0);
  EXPECT_EQ(err.str(), "");
  EXPECT_EQ(cli::run_longhaul(arguments, to_disk, err), 3);
  EXPECT_THAT(err.str(), HasSubstr("No space left"));
}

}  // namespace
}  // namespace longhaul::test
