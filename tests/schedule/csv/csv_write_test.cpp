#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "schedule/csv/csv.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/generators/registry.hpp"
#include "schedule/random_scenario.hpp"

/// Is what `--format pytorch` writes what torch.distributed.pipelining reads? Its rules, written
/// down apart from our own reader and checks.
namespace longhaul::schedule {
namespace {

using ::testing::HasSubstr;

struct Action {
  int stage = 0;
  char kind = ' ';  ///< F, I, B, W: a compute_only file has no others
  int microbatch = 0;
};

/// The actions of each rank; a line is a rank, blanks around cells do not count, an empty cell is
/// idle.
std::vector<std::vector<Action>> parse(const std::string& text) {
  static const std::regex kCell{R"((\d+)(F|I|B|W)(\d+))"};
  std::vector<std::vector<Action>> ranks;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    ranks.emplace_back();
    std::istringstream cells{line};
    for (std::string cell; std::getline(cells, cell, ',');) {
      const std::size_t first = cell.find_first_not_of(' ');
      if (first == std::string::npos) continue;
      cell = cell.substr(first, cell.find_last_not_of(' ') - first + 1);
      std::smatch parts;
      if (!std::regex_match(cell, parts, kCell)) throw std::runtime_error("no cell: " + cell);
      ranks.back().push_back({std::stoi(parts[1]), parts.str(2)[0], std::stoi(parts[3])});
    }
  }
  return ranks;
}

/// Throws where the runtime would refuse the file, and gives the rank of each stage otherwise.
std::map<int, std::size_t> checked_stages(const std::vector<std::vector<Action>>& ranks,
                                          std::size_t microbatches) {
  std::map<int, std::size_t> rank_of;
  std::map<int, std::map<char, std::set<int>>> seen;  // microbatches, by stage and kind
  const auto require = [](bool holds, const std::string& rule) {
    if (!holds) throw std::runtime_error(rule);
  };
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const auto& [stage, kind, microbatch] : ranks[rank]) {
      auto& of_stage = seen[stage];
      if (kind == 'I' || kind == 'B')
        require(of_stage['F'].contains(microbatch), "F before B or I");
      if (kind == 'W') require(of_stage['I'].contains(microbatch), "I before W");
      require(of_stage[kind].insert(microbatch).second, "an action twice");
      const auto held = rank_of.emplace(stage, rank).first->second;
      require(held == rank, "a stage on two ranks");
    }
  }
  int next = 0;
  for (auto& [stage, kinds] : seen) {
    require(stage == next++, "a stage is missing");
    require(kinds['F'].size() == microbatches, "an F is missing");
    require(kinds['I'].size() == kinds['W'].size(), "I and W in pairs");
    require(kinds['B'].size() + kinds['I'].size() == microbatches, "a backward is missing");
  }
  return rank_of;
}

/// Can the actions run, where each waits for its neighbours' (what its lowering pass looks for)?
bool can_run(const std::vector<std::vector<Action>>& ranks, int stages) {
  std::set<std::tuple<int, char, int>> done;  // F, or G: passed its gradient on
  std::vector<std::size_t> next(ranks.size());
  const auto ready = [&](const Action& action) {
    const auto [stage, kind, microbatch] = action;
    if (kind == 'F') return stage == 0 || done.contains({stage - 1, 'F', microbatch});
    if (kind == 'W') return true;
    return stage + 1 == stages || done.contains({stage + 1, 'G', microbatch});
  };
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      for (; next[rank] < ranks[rank].size() && ready(ranks[rank][next[rank]]); ++next[rank]) {
        const auto [stage, kind, microbatch] = ranks[rank][next[rank]];
        if (kind != 'W') done.insert({stage, kind == 'F' ? 'F' : 'G', microbatch});
        progress = true;
      }
    }
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (next[rank] != ranks[rank].size()) return false;
  }
  return true;
}

bool has_words_for(const Schedule& schedule) {
  if (schedule.cell != 1 || !schedule.replicas_share_rows()) return false;
  return schedule.copies == 1 && std::ranges::none_of(schedule.rows, [](const auto& row) {
           return std::ranges::any_of(row, [](const Block& block) {
             return block.parts > 1 || block.kind == BlockKind::R;
           });
         });
}

TEST(PyTorchFormat, IsAcceptedByTheRulesOfItsReader) {
  int accepted = 0;
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const Scenario scenario = test::random_scenario(seed);
    const Parallel& parallel = scenario.parallel;
    for (const Generator& generator : generators()) {
      if (generator.name == "interleaved-1f1b" && parallel.microbatches % parallel.stages != 0)
        continue;
      SCOPED_TRACE(::testing::Message() << generator.name << ", seed " << seed);
      const Schedule schedule = generate(generator.name, scenario);
      if (!has_words_for(schedule)) {
        ++refused;
        try {
          (void)write_csv(schedule, CsvFormat::pytorch);
          FAIL() << "written";
        } catch (const Error& error) {
          EXPECT_THAT(error.what(), HasSubstr("PyTorch's format cannot hold this schedule"));
        }
        continue;
      }
      ++accepted;
      const auto ranks = parse(write_csv(schedule, CsvFormat::pytorch));
      ASSERT_EQ(ranks.size(), static_cast<std::size_t>(parallel.stages));
      const auto rank_of = checked_stages(ranks, static_cast<std::size_t>(parallel.microbatches));
      ASSERT_EQ(rank_of.size(), static_cast<std::size_t>(schedule.chunks));
      for (const auto& [stage, rank] : rank_of)
        ASSERT_EQ(rank, index(schedule.device_of_chunk[ChunkId{stage}]));
      ASSERT_TRUE(can_run(ranks, schedule.chunks));
    }
  }
  EXPECT_GT(accepted, 500);
  EXPECT_GT(refused, 200);
}

TEST(PyTorchFormat, SaysWhyItCannotHoldASchedule) {
  Scenario scenario = uniform_scenario(2, 2);
  const auto refusal = [&](const char* name) -> std::string {
    try {
      (void)write_csv(generate(name, scenario), CsvFormat::pytorch);
    } catch (const Error& error) {
      return error.what();
    }
    return "written";
  };
  EXPECT_THAT(refusal("cross-bd"), HasSubstr("it runs 2 copies of the model in one pipeline"));
  EXPECT_THAT(refusal("cross-bd"), HasSubstr("--placement ud,loop,wave"));
  scenario.memory.recompute = true;
  EXPECT_THAT(refusal("1f1b"), HasSubstr("a recompute"));
}

TEST(PyTorchFormat, TheRulesRefuseWhatIsWrong) {
  const auto broken = [](const std::string& text) -> std::string {
    try {
      (void)checked_stages(parse(text), 2);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(broken("0F0, 0F1,,0B0,0I1,0W1\n"), "");
  EXPECT_EQ(broken("0F0,0F1,0B0\n"), "a backward is missing");
  EXPECT_EQ(broken("0B0,0F0,0F1,0B1\n"), "F before B or I");
  EXPECT_EQ(broken("0F0,0W0,0I0,0F1,0B1\n"), "I before W");
  EXPECT_EQ(broken("0F0,0F1\n0B0,0B1\n"), "a stage on two ranks");
  EXPECT_EQ(broken("0F0,0F1.0/2\n"), "no cell: 0F1.0/2");
  EXPECT_FALSE(can_run(parse("0F0,0B0\n1F1,1F0\n"), 2));
}

}  // namespace
}  // namespace longhaul::schedule
