#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cli/longhaul.hpp"
#include "support/file_text.hpp"

namespace longhaul::test {

/// A directory of one test, removed with everything in it.
class TempDir {
public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "longhaul-cli-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  [[nodiscard]] std::string path(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream{path_ / name} << text;
    return path(name);
  }
  [[nodiscard]] std::size_t files() const {
    const auto all = std::filesystem::directory_iterator{path_};
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

private:
  std::filesystem::path path_;
};

struct Outcome {
  int code = -1;
  std::string out, err;
  [[nodiscard]] nlohmann::json json() const { return nlohmann::json::parse(out); }
};

inline Outcome longhaul_run(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  Outcome run;
  run.code = cli::run_longhaul(arguments, out, err);
  run.out = out.str();
  run.err = err.str();
  return run;
}

/// What the program of a page of `longhaul report` is given.
inline nlohmann::json data_of(const std::string& page) {
  const std::string begin = "<script id=\"data\" type=\"application/json\">";
  const std::size_t from = page.find(begin) + begin.size();
  return nlohmann::json::parse(page.substr(from, page.find("</script>", from) - from));
}

/// Of `longhaul profile` and what else lists operators.
inline nlohmann::json operators_of(const Outcome& run) { return run.json()["operators"]; }

using testing::file_text;

/// P=4, M=8, F = D = W = 100 ns; the datacenters are `where`.
inline std::string scenario_text(const std::string& name, const std::string& where) {
  return "[scenario]\nname = \"" + name + "\"\n" + R"([parallel]
stages = 4
microbatches = 8
[costs]
forward = "100ns"
dgrad = "100ns"
wgrad = "100ns"
activation = "2MiB"
message = "1MiB"
weights = "8MiB"
)" + where;
}

inline const std::string kUniform = scenario_text("uniform", R"([[datacenter]]
name = "west"
stages = [0, 1, 2, 3]
)");

/// In two datacenters, 100 ns apart, without transfer time.
inline const std::string kTwoSites = scenario_text("two-sites", R"([[datacenter]]
name = "west"
stages = [0, 1]
[[datacenter]]
name = "east"
stages = [2, 3]
[[link]]
between = ["west", "east"]
latency = "100ns"
transfer_ratio = 0
)");

/// P=2, M=4 of three operators, named "listed": F 30 + 10 and 20 ns.
inline const std::string kOperators = R"([scenario]
name = "listed"
[parallel]
stages = 2
microbatches = 4
[[operator]]
name = "qkv"
kind = "matmul"
forward = "30ns"
dgrad = "30ns"
wgrad = "30ns"
[[operator]]
name = "attention"
kind = "attention"
forward = "10ns"
dgrad = "20ns"
[[operator]]
name = "down"
kind = "matmul"
forward = "20ns"
dgrad = "20ns"
wgrad = "20ns"
)";

/// P=2, M=2, named "two", in one datacenter.
inline const std::string kTwoStages = R"([scenario]
name = "two"
[parallel]
stages = 2
microbatches = 2
[costs]
forward = "100ns"
)";

/// GPipe on device 0 and 1F1B on device 1, so that both forwards pass link 0>1 in their order.
inline std::string ordered_schedule(const std::string& orders) {
  return "# longhaul schedule 1\n# devices = 2\n" + orders + "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";
}

}  // namespace longhaul::test
