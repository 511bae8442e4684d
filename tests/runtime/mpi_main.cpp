// Every rank runs the same tests. Rank 0 prints them; the others only what fails there, with their
// number in front. A failure on any rank makes the run fail.
#include <cstdio>

#include <gtest/gtest.h>

#include "ranks_fixture.hpp"
#include "runtime/transport/mpi/session.hpp"

namespace {

class FailuresOnly : public testing::EmptyTestEventListener {
public:
  explicit FailuresOnly(int rank) : rank_{rank} {}
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    fprintf(stderr, "rank %d: %s:%d: %s\n", rank_, result.file_name(), result.line_number(),
            result.message());
  }

private:
  int rank_;
};

}  // namespace

int main(int argc, char** argv) {
  const longhaul::mpi::Session session{argc, argv};
  testing::InitGoogleTest(&argc, argv);
  const int rank = longhaul::mpi::world_rank();
  if (rank != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailuresOnly{rank});
  }
  const int result = RUN_ALL_TESTS();
  longhaul::testing::RanksTest::instance().reset();
  return result;
}
