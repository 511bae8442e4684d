#include "report/link_load/held_resources.hpp"

#include <tuple>

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace longhaul::report {
namespace {

using Taken = std::vector<std::tuple<std::int32_t, std::int64_t, std::int64_t, std::int64_t>>;

/// Takes all; expects each resource once, and its messages in order of start. Sorted.
Taken taken_from(HeldResources& held) {
  Taken taken;
  std::int32_t current = -1;
  std::int64_t latest = 0;
  held.take(
      [&](std::int32_t resource) {
        EXPECT_GT(resource, current);
        current = resource;
        latest = 0;
      },
      [&](const LinkHold& hold) {
        EXPECT_GE(hold.start_ns, latest);
        latest = hold.start_ns;
        taken.emplace_back(current, hold.start_ns, hold.end_ns, hold.size_bytes);
      });
  std::ranges::sort(taken);
  return taken;
}

TEST(HeldResources, GivesAllOfThemInOrderInMemoryAndOutOfIt) {
  HeldResources in_memory{std::size_t{1} << 20}, in_file{240};
  for (const int count : {0, 1, 9, 10, 11, 400, 3}) {  // of one iteration after the other
    Random random{static_cast<std::uint64_t>(count) + 1};
    Taken given;
    for (int i = 0; i < count; ++i) {
      const LinkHold hold{random.between(0, 1000), 1000, random.between(1, 5)};
      const auto resource = static_cast<std::int32_t>(random.between(0, 5));
      in_memory.add(resource, hold);
      in_file.add(resource, hold);
      given.emplace_back(resource, hold.start_ns, hold.end_ns, hold.size_bytes);
    }
    std::ranges::sort(given);
    EXPECT_EQ(taken_from(in_memory), given);
    EXPECT_EQ(taken_from(in_file), given);
  }
}

}  // namespace
}  // namespace longhaul::report
