#include "comm/group/host_ranks.hpp"

#include <filesystem>

#include "comm/group/clock_sync.hpp"
#include "support/ranks/ranks_fixture.hpp"

namespace longhaul::testing {
namespace {

using namespace std::chrono_literals;

class BoardTest : public OnRanks {};

RANKS_TEST(BoardTest, LeavesNoNameInSharedMemory) {
  const comm::SharedMemory memory{ranks().host_ranks().host(), 4096};
  ranks().world().barrier();  // rank 0 takes the name away once all have opened it
  const std::string ours =
      "longhaul-" + std::to_string(ranks().host_ranks().slot(Rank{0}).pid.load()) + "-";
  for (const auto& entry : std::filesystem::directory_iterator{"/dev/shm"})
    EXPECT_FALSE(entry.path().filename().string().starts_with(ours)) << entry.path();
  ranks().world().barrier();
}

RANKS_TEST(BoardTest, SharesMemoryThatStartsAsZero) {
  const comm::SharedMemory memory{ranks().host_ranks().host(), 4096};
  auto* words = reinterpret_cast<std::atomic<int>*>(memory.data());
  EXPECT_EQ(words[self()].load(), 0);
  ranks().world().barrier();
  words[self()].store(self() + 1);
  ranks().world().barrier();
  for (int rank = 0; rank < ranks().count(); ++rank) EXPECT_EQ(words[rank].load(), rank + 1);
  ranks().world().barrier();
}

RANKS_TEST(BoardTest, ASleeperWakesWhenItsBellRings) {
  NEEDS_RANKS(2);
  const comm::HostRanks& host_ranks = ranks().host_ranks();
  const std::uint32_t seen = host_ranks.doorbell();
  ranks().world().barrier();
  if (self() == 1) host_ranks.ring_doorbell(Rank{0});
  bool woken = true;
  if (self() == 0) {
    host_ranks.sleep(seen, now() + 30s);
    woken = host_ranks.doorbell() != seen;
  }
  EXPECT_TRUE(woken);
  ranks().world().barrier();
}

RANKS_TEST(BoardTest, ABellThatRangBeforeIsNotSleptThrough) {
  const comm::HostRanks& host_ranks = ranks().host_ranks();
  const std::uint32_t seen = host_ranks.doorbell();
  host_ranks.ring_doorbell(ranks().self());
  const TimePoint before = now();
  host_ranks.sleep(seen, before + 30s);
  EXPECT_LT(now() - before, 10s);
}

RANKS_TEST(BoardTest, SleepsUntilItsTimeIsThere) {
  const TimePoint until = now() + 5ms;
  ranks().host_ranks().sleep(ranks().host_ranks().doorbell(), until);
  EXPECT_GE(now(), until);
}

RANKS_TEST(BoardTest, OneRankOfAHostReports) {
  const comm::HostRanks host_ranks{ranks().world()};
  const std::int64_t claims = ranks().world().sum(host_ranks.claim_report() ? 1 : 0);
  EXPECT_EQ(claims, 1) << "ranks of one host here";
}

RANKS_TEST(BoardTest, ClocksOfOneHostAreOne) {
  const comm::ClockOffset taken = comm::measure_clock_offset(ranks().world(), ranks().host_ranks());
  EXPECT_EQ(taken.offset, Duration::zero());
  const comm::ClockOffset measured =
      comm::measure_clock_offset(ranks().world(), ranks().host_ranks(), comm::Measure::always);
  EXPECT_LE(std::abs(measured.offset.count()), measured.error.count())
      << "the measured offset holds the true one, 0, within its error";
}

}  // namespace
}  // namespace longhaul::testing
