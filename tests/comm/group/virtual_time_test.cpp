#include "comm/group/virtual_time.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "base/index.hpp"
#include "comm/group/thread_group.hpp"

namespace longhaul::comm {
namespace {

using ::testing::ElementsAre;
using namespace std::chrono_literals;

/// The ranks' steps, in order: only one of them runs at a time.
using Events = std::vector<std::pair<TimePoint, std::string>>;

using Doorbells = std::array<std::atomic<std::uint32_t>, 4>;

/// Runs `body(rank, doorbells)` on each rank, by the virtual clock from 1000 ns on.
template <typename Body>
void live(int ranks, std::uint64_t seed, Body&& body) {
  VirtualTime time{ranks, 1000ns, seed};
  Doorbells doorbells{};
  run_thread_ranks(ranks, [&] {
    const int rank = this_thread_rank()->rank;
    const VirtualTime::Member member{time, rank};
    body(rank, doorbells);
  });
}

void sleep(std::atomic<std::uint32_t>& doorbell, TimePoint until) {
  virtual_clock()->sleep(doorbell, doorbell.load(), until);
}

TEST(VirtualTime, PassesOnlyWhileAllSleep) {
  Events events;
  live(3, 0, [&](int rank, Doorbells& doorbells) {
    for (int i = 1; i <= 2; ++i) {
      sleep(doorbells[to_size(rank)], now() + (3 - rank) * 10ns);
      events.emplace_back(now(), std::to_string(rank));
    }
  });
  EXPECT_THAT(events,
              ElementsAre(std::pair{1010ns, "2"}, std::pair{1020ns, "1"}, std::pair{1020ns, "2"},
                          std::pair{1030ns, "0"}, std::pair{1040ns, "1"}, std::pair{1060ns, "0"}));
}

TEST(VirtualTime, ARingWakesInTheSameInstant) {
  Events events;
  live(2, 0, [&](int rank, Doorbells& doorbells) {
    if (rank == 0) {
      sleep(doorbells[0], now() + 1h);
      events.emplace_back(now(), "woken");
    } else {
      sleep(doorbells[1], now() + 5ns);
      ++doorbells[0];
      events.emplace_back(now(), "rung");
      sleep(doorbells[1], now() + 5ns);
      events.emplace_back(now(), "after");
    }
  });
  EXPECT_THAT(events, ElementsAre(std::pair{1005ns, "rung"}, std::pair{1005ns, "woken"},
                                  std::pair{1010ns, "after"}));
}

TEST(VirtualTime, IsTheHostsOutside) {
  const TimePoint before = now();
  live(2, 0, [](int, Doorbells&) { EXPECT_EQ(now(), 1000ns); });
  EXPECT_EQ(virtual_clock(), nullptr);
  EXPECT_GE(now(), before);
}

/// Has one request of each rank, and wakes the one whose it is.
class OneAtATime final : public Arbiter {
public:
  OneAtATime(Doorbells& doorbells, std::vector<Request>& open, std::vector<std::uint32_t>& decided)
      : doorbells_{doorbells}, open_{open}, decided_{decided} {}
  [[nodiscard]] std::optional<Request> first_request() override {
    if (open_.empty()) return std::nullopt;
    return *std::ranges::min_element(open_);
  }
  void decide_first() override {
    const Request first = *first_request();
    std::erase(open_, first);
    decided_.push_back(first.op);
    ++doorbells_[first.op];
  }

private:
  Doorbells& doorbells_;
  std::vector<Request>& open_;
  std::vector<std::uint32_t>& decided_;
};

// Rank 1 asks first, for a request that is ready later; rank 3 asks when rank 2 has got its own.
TEST(VirtualTime, DecidesAtTheEndOfAnInstantByReadiness) {
  std::vector<std::uint32_t> decided;
  std::vector<Arbiter::Request> open;
  live(4, 0, [&](int rank, Doorbells& doorbells) {
    OneAtATime arbiter{doorbells, open, decided};
    if (rank == 0) virtual_clock()->add(arbiter);
    if (rank == 1) open.push_back({Arbiter::Step::request, 900, 0, 1});
    if (rank == 2) open.push_back({Arbiter::Step::request, 800, 0, 2});
    if (rank == 3) sleep(doorbells[3], now() + 1h);
    if (rank == 3) open.push_back({Arbiter::Step::request, 850, 0, 3});
    if (rank == 0) {
      sleep(doorbells[0], now() + 50ns);
      virtual_clock()->remove(arbiter);
      return;
    }
    sleep(doorbells[to_size(rank)], now() + 1h);
    EXPECT_EQ(now(), 1000ns) << "rank " << rank;
    if (rank == 2) ++doorbells[3];
  });
  EXPECT_THAT(decided, ElementsAre(2, 3, 1));
}

/// The order in which ranks ran in ten instants.
std::string order_of(std::uint64_t seed) {
  std::string order;
  live(4, seed, [&](int rank, Doorbells& doorbells) {
    for (int i = 0; i < 10; ++i) {
      order += std::to_string(rank);
      sleep(doorbells[to_size(rank)], now() + 1ns);
    }
  });
  return order;
}

TEST(VirtualTime, DrawsWhoRunsFirst) {
  EXPECT_EQ(order_of(0).substr(0, 8), "01230123");
  EXPECT_NE(order_of(7), order_of(0));
  EXPECT_EQ(order_of(7), order_of(7));
}

}  // namespace
}  // namespace longhaul::comm
