// Every rank runs the same tests. Rank 0 prints them; the others only what fails there, with their
// number in front. A failure on any rank makes the run fail. With --ranks-per-process N the ranks
// are N threads of this process, and what needs no ranks is left out. Where all ranks skip all
// tests, a last line says so.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "comm/group/session.hpp"
#include "support/ranks/ranks_fixture.hpp"

namespace {

class FailuresOnly : public ::testing::EmptyTestEventListener {
public:
  explicit FailuresOnly(int rank) : rank_{rank} {}
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    fprintf(stderr, "rank %d: %s:%d: %s\n", rank_, result.file_name(), result.line_number(),
            result.message());
  }

private:
  int rank_;
};

/// Did every rank skip all of its tests, so that none of them failed? Collective over processes.
bool everything_is_skipped() {
  const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
  const bool mine = all.failed_test_count() == 0 && all.test_to_run_count() > 0 &&
                    all.skipped_test_count() == all.test_to_run_count();
  if (longhaul::testing::thread_ranks() > 0) return mine;
  return longhaul::testing::OnRanks::ranks().world().minimum(mine ? 1 : 0) == 1;
}

}  // namespace

int main(int argc, char** argv) {
  const longhaul::comm::Session session{argc, argv};
  ::testing::InitGoogleTest(&argc, argv);
  if (argc == 3 && std::strcmp(argv[1], "--ranks-per-process") == 0) {
    longhaul::testing::thread_ranks() = std::atoi(argv[2]);
    if (GTEST_FLAG_GET(filter) == "*")
      GTEST_FLAG_SET(filter,
                     fmt::format("{}", fmt::join(longhaul::testing::tests_on_ranks(), ":")));
  }
  const int rank = longhaul::comm::world_rank();
  if (rank != 0) {
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailuresOnly{rank});
  }
  const int result = RUN_ALL_TESTS();
  // For ctest: SKIP_REGULAR_EXPRESSION of the tests of GPUs.
  if (!GTEST_FLAG_GET(list_tests) && everything_is_skipped() && rank == 0)
    fmt::print("every test of this run was skipped\n");
  longhaul::testing::OnRanks::instance().reset();
  return result;
}
