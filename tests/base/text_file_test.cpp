#include "base/text_file.hpp"

#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"

namespace longhaul {
namespace {

TEST(ValueInFile, StandsBehindTheColonOfTheFirstLineThatBeginsSo) {
  const auto file =
      std::filesystem::temp_directory_path() / ("longhaul-value-" + std::to_string(getpid()));
  std::ofstream{file} << "vendor\t: A\nmodel name\t:  B: C 9\nmodel name\t: D\nempty:\n";
  EXPECT_EQ(value_in_file(file, "model name"), "B: C 9");
  EXPECT_EQ(value_in_file(file, "vendor"), "A");
  EXPECT_EQ(value_in_file(file, "empty"), "");
  EXPECT_EQ(value_in_file(file, "name"), "") << "a line that only contains it";
  std::filesystem::remove(file);
  EXPECT_EQ(value_in_file(file, "vendor"), "") << "no file";
}

/// Opening it would wait for a writer for ever.
TEST(ReadTextFile, RefusesANamedPipe) {
  const auto file =
      std::filesystem::temp_directory_path() / ("longhaul-pipe-" + std::to_string(getpid()));
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  try {
    (void)read_text_file(file);
    ADD_FAILURE() << "it was read";
  } catch (const Error& error) {
    EXPECT_NE(std::string{error.what()}.find("it is a named pipe"), std::string::npos);
  }
  std::filesystem::remove(file);
  EXPECT_NO_THROW(refuse_named_pipe("/dev/stdin"));
}

}  // namespace
}  // namespace longhaul
