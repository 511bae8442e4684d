#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cli/support.hpp"

namespace longhaul::test {

/// A GPT-3.6B on two sites that differ in price; how it is divided is open.
inline constexpr const char* kUndivided = R"([model]
preset = "gpt-3.6b"
[parallel]
global_batch = 64
[search]
machine = "selene"
tensor = [2, 8]
data = [1, 2, 4]
pipeline = [1, 2, 5]
micro_batch = [1, 2]
[[datacenter]]
name = "west"
gpus = 32
price = 4
[[datacenter]]
name = "east"
gpus = 16
price = 3
[[link]]
between = ["west", "east"]
latency = "20ms"
bandwidth = "10Gbps"
)";

class AdviseLayouts : public ::testing::Test {
protected:
  Outcome run(std::vector<std::string> options) const {
    options.insert(options.begin(), {"advise", file_, "--search-moves", "20"});
    return longhaul_run(options);
  }
  TempDir dir_;
  std::string file_ = dir_.write("undivided.toml", kUndivided);
};

}  // namespace longhaul::test
