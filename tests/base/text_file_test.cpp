#include "base/text_file.hpp"

#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

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

}  // namespace
}  // namespace longhaul
