// Every command's help shows lines that work.
#include "cli/parse/parser.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"
#include "support/shipped.hpp"
#include "trace/file/trace_file.hpp"

namespace longhaul::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::vector<std::string> words_of(std::string_view line) {
  std::istringstream in{std::string{line}};
  return {std::istream_iterator<std::string>{in}, {}};
}

/// The directory that the lines expect: the checkout's scenarios, and what other programs left.
class Checkout {
public:
  Checkout() {
    fs::create_directory_symlink(testing::in_checkout("benchmarks"), dir_.path("benchmarks"));
    dir_.write("iperf3.json", R"({"start": {"version": "iperf 3.12"},
      "end": {"streams": [{"sender": {"min_rtt": 40200, "mean_rtt": 41000, "bits_per_second": 6e8},
                           "receiver": {"bits_per_second": 6e8}}],
              "sum_sent": {"bits_per_second": 6e8}, "sum_received": {"bits_per_second": 6e8}}})");
    dir_.write("gradient.f32", std::string(4096, '\x3f'));
    dir_.write("probes.csv",
               "model,version,batch,compression_rate,g\nvit_b_16,v2,64,0,-0.03\n"
               "vit_b_16,v2,900,0.5,0.06\nvit_b_16,v2,2000,0.99,0.11\n");
    fs::current_path(dir_.path("."));
  }
  ~Checkout() { fs::current_path(before_); }
  Checkout(const Checkout&) = delete;
  Checkout& operator=(const Checkout&) = delete;

  /// The run directory of a run that was killed after its first iteration.
  static void begin_run_from(const fs::path& trace) {
    const trace::Trace simulated = trace::read_trace(trace);
    const Timeline& all = simulated.predicted;
    const int ranks = 1 + std::ranges::max(all.rows, {}, &TimelineRow::rank).rank;
    trace::begin_run("runs/first", simulated.info, all, ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      Timeline mine = all;
      std::erase_if(mine.rows,
                    [&](const TimelineRow& row) { return row.rank != rank || row.schedule != 0; });
      trace::write_segment("runs/first", {0, 0, rank}, mine);
    }
  }

private:
  fs::path before_ = fs::current_path();
  TempDir dir_;
};

TEST(Examples, RunOneAfterAnother) {
  const Checkout checkout;
  for (const cli::Example& example : cli::examples()) {
    std::vector<std::string> words = words_of(example.line);
    ASSERT_EQ(words.front(), "longhaul");
    words.erase(words.begin());
    if (example.command == "trace merge") Checkout::begin_run_from("first.h5");
    if (example.command == "watch")
      std::ofstream{"runs/first/record.json"}
          << R"({"benchmark": "bench_pipeline", "schedules": []})";
    const Outcome run = longhaul_run(words);
    if (example.command == "send") {  // no run listens here
      EXPECT_THAT(run.err, HasSubstr("prefill.sock")) << example.line;
      continue;
    }
    EXPECT_EQ(run.code, 0) << example.line << "\n" << run.out << run.err;
  }
}

TEST(Examples, AreShownByTheCommandThatTheyCall) {
  for (const cli::Example& example : cli::examples()) {
    std::vector<std::string> words = words_of(example.command);
    EXPECT_THAT(std::string{example.line}, HasSubstr("longhaul " + std::string{example.command} +
                                                     (example.command == "presets" ? "" : " ")));
    words.emplace_back("--help");
    const std::string help = longhaul_run(words).out;
    EXPECT_THAT(help, HasSubstr(std::string{example.line}));
    EXPECT_THAT(help, HasSubstr("\nExit codes: 0 fine, 1 the answer is no, 2 bad input"));
  }
}

/// Commands below `words`, as their help lists them.
std::vector<std::string> commands_below(std::vector<std::string> words) {
  words.emplace_back("--help");
  std::istringstream help{longhaul_run(words).out};
  std::vector<std::string> commands;
  std::string line;
  while (std::getline(help, line) && line != "Subcommands:") {
  }
  while (std::getline(help, line) && line.starts_with("  "))
    if (line[2] != ' ') commands.push_back(line.substr(2, line.find(' ', 2) - 2));
  return commands;
}

TEST(Examples, EveryCommandHasOne) {
  std::set<std::string> shown;
  for (const cli::Example& example : cli::examples()) shown.insert(std::string{example.command});
  const std::vector<std::string> commands = commands_below({});
  EXPECT_GE(commands.size(), 9U);
  for (const std::string& command : commands) {
    const std::vector<std::string> below = commands_below({command});
    if (below.empty()) {
      EXPECT_TRUE(shown.contains(command)) << command;
    }
    for (const std::string& inner : below)
      EXPECT_TRUE(shown.contains(command + " " + inner)) << command << ' ' << inner;
  }
}

}  // namespace
}  // namespace longhaul::test
