#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "trace/scratch_directory.hpp"
#include "training/data/training_data.hpp"

namespace longhaul::testing {

/// A test that writes files and may name a Python of its own.
class DataFiles : public ::testing::Test {
protected:
  DataFiles() {
    if (const char* const told = std::getenv("LONGHAUL_PYTHON")) python_before_ = told;
  }
  ~DataFiles() override {
    if (python_before_)
      setenv("LONGHAUL_PYTHON", python_before_->c_str(), 1);
    else
      unsetenv("LONGHAUL_PYTHON");
  }

  [[nodiscard]] std::filesystem::path path(const std::string& name) const {
    return scratch_.path() / name;
  }
  /// Its path.
  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(path(name).parent_path());
    std::ofstream{path(name), std::ios::binary} << text;
    return path(name).string();
  }
  /// LONGHAUL_PYTHON becomes a shell script.
  void use_python(const std::string& script) const {
    const std::string file = write("python", "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    setenv("LONGHAUL_PYTHON", file.c_str(), 1);
  }
  /// What open_data() says of bad input; a line.
  static std::string refusal(const std::string& spec, int sequence, int vocabulary = 256) {
    try {
      (void)training::open_data(spec, {.sequence = sequence, .vocabulary = vocabulary}, 1);
    } catch (const Error& error) {
      EXPECT_EQ(std::string{error.what()}.find('\n'), std::string::npos) << error.what();
      return error.what();
    }
    return "nothing";
  }

private:
  ScratchDirectory scratch_;
  std::optional<std::string> python_before_;
};

/// Samples first, .., one by one: tokens of each.
[[nodiscard]] inline std::vector<std::vector<std::int32_t>> each_sample(
    const training::TrainingData& data, std::uint64_t first, std::int64_t count) {
  std::vector<std::vector<std::int32_t>> all;
  for (std::uint64_t sample = first; all.size() < static_cast<std::size_t>(count); ++sample)
    all.push_back(data.samples(sample, 1).tokens);
  return all;
}

}  // namespace longhaul::testing
