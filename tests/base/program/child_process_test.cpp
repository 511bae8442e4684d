// What a child says, writes and how it ends.
#include "base/program/child_process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace longhaul {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

ChildEnd shell(const std::string& script, Duration limit = 60s,
               ChildOutput output = ChildOutput::keep) {
  return run_child({"sh", "-c", script}, {{"LONGHAUL_SAID", "added"}}, limit, output);
}

TEST(ChildProcess, KeepsItsOutputWholeAndTheEndOfItsErrors) {
  const ChildEnd end = shell("printf 'a\\n\\n'; echo wrong >&2; exit 7");
  EXPECT_EQ(end.exit_code, 7);
  EXPECT_EQ(end.output, "a\n\n");
  EXPECT_EQ(end.said, "wrong");
  EXPECT_FALSE(end.timed_out);
  EXPECT_EQ(shell("printf %s $LONGHAUL_SAID").output, "added");
  const ChildEnd much = shell("head -c 3000000 /dev/zero; head -c 5000 /dev/zero >&2");
  EXPECT_EQ(much.output, std::string(3'000'000, '\0'));
  EXPECT_EQ(much.said.size(), 2000U);
}

TEST(ChildProcess, DropsOutputThatNoOneWants) {
  EXPECT_EQ(shell("echo some", 60s, ChildOutput::drop).output, "");
}

TEST(ChildProcess, EndsWhatRunsTooLongAndSaysWhatASignalEnded) {
  const ChildEnd late = shell("exec sleep 600", 20ms);
  EXPECT_TRUE(late.timed_out);
  EXPECT_FALSE(late.exit_code);
  const ChildEnd killed = shell("kill -9 $$");
  EXPECT_FALSE(killed.timed_out);
  EXPECT_FALSE(killed.exit_code);
}

TEST(ChildProcess, SaysThatAProgramIsNotThere) {
  EXPECT_THAT([] { (void)run_child({"/nowhere/python"}, {}, 1s); },
              ThrowsMessage<Error>(HasSubstr("cannot start /nowhere/python (No such file")));
}

}  // namespace
}  // namespace longhaul
