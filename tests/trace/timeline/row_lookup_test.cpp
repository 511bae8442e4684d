#include "trace/timeline/row_lookup.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "trace/timeline/memory_limit.hpp"

namespace longhaul::trace {
namespace {

/// Rows whose names and ends come several times, in no order.
std::vector<TimelineRow> random_rows(Random& random) {
  std::vector<TimelineRow> rows(static_cast<std::size_t>(random.between(0, 60)));
  for (TimelineRow& row : rows) {
    row.rank = static_cast<std::int32_t>(random.between(0, 3));
    row.chunk = static_cast<std::int32_t>(random.between(-1, 2));
    row.microbatch = static_cast<std::int32_t>(random.between(-1, 3));
    row.end_ns = random.between(0, 5);
  }
  return rows;
}

TEST(RowLookup, FindsTheChosenRowsOfANameInOrderOfTheirEnd) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random{seed};
    const std::vector<TimelineRow> rows = random_rows(random);
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (random.between(0, 3) != 0) chosen.push_back(i);
    const RowLookupOf<std::span<const TimelineRow>> lookup{rows, chosen};
    for (std::int32_t rank = 0; rank <= 4; ++rank) {
      for (std::int32_t chunk = -1; chunk <= 2; ++chunk) {
        for (std::int32_t microbatch = -1; microbatch <= 3; ++microbatch) {
          std::vector<std::uint32_t> expected;
          for (const std::size_t i : chosen)
            if (rows[i].rank == rank && rows[i].chunk == chunk && rows[i].microbatch == microbatch)
              expected.push_back(static_cast<std::uint32_t>(i));
          std::ranges::stable_sort(expected, {}, [&](std::uint32_t i) { return rows[i].end_ns; });
          EXPECT_THAT(lookup.find(rank, chunk, microbatch), ::testing::ElementsAreArray(expected))
              << "seed " << seed;
        }
      }
    }
  }
}

TEST(ForwardsAhead, KnowsTheEarliestArrivalAboveASize) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random{seed};
    ForwardsAhead ahead;
    std::vector<std::pair<std::int64_t, std::int64_t>> added;
    for (int i = 0; i < 20; ++i) {
      added.emplace_back(random.between(0, 5), random.between(0, 8));
      ahead.add(added.back().first, added.back().second);
      for (std::int64_t size = -1; size <= 6; ++size) {
        std::int64_t earliest = kNever;
        for (const auto& [above, arrival] : added)
          if (above > size) earliest = std::min(earliest, arrival);
        EXPECT_EQ(ahead.earliest_above(size), earliest) << "seed " << seed << ", size " << size;
      }
    }
  }
}

}  // namespace
}  // namespace longhaul::trace
