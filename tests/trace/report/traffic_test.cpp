// Bytes between datacenters: of messages, and of data parallelism.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/report/report.hpp"

namespace longhaul::trace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::string> kSites{"west", "east"};

TimelineRow row(RowKind kind, int rank, int datacenter, int peer, std::int64_t bytes) {
  TimelineRow row;
  row.kind = kind;
  row.rank = rank;
  row.datacenter = datacenter;
  row.peer = peer;
  row.size_bytes = bytes;
  return row;
}

TEST(Traffic, MessagesCountAtTheirSender) {
  const std::vector<TimelineRow> rows{
      row(RowKind::F, 0, 0, -1, 7), row(RowKind::send, 0, 0, 1, 100),
      row(RowKind::send, 0, 0, 2, 30), row(RowKind::recv, 1, 1, 0, 100),
      row(RowKind::recv, 2, 0, 0, 30)};
  EXPECT_THAT(traffic_of(rows, kSites),
              ElementsAre(Traffic{"west", "west", 30, 0}, Traffic{"west", "east", 100, 0}));
  EXPECT_THAT(traffic_of({}, kSites), IsEmpty());
}

/// Four members, two a site: a ring crosses once each way, with 3/4 of the bytes; twice for an
/// all-reduce.
TEST(Traffic, CollectivesGoAroundARingOfRanks) {
  for (const auto& [kind, rounds] : {std::pair{RowKind::all_gather, 1}, {RowKind::all_reduce, 2}}) {
    std::vector<TimelineRow> rows;
    for (const int rank : {3, 0, 2, 1}) rows.push_back(row(kind, rank, rank / 2, 0, 400));
    const std::int64_t hop = rounds * 300;
    EXPECT_THAT(traffic_of(rows, kSites),
                ElementsAre(Traffic{"west", "west", 0, hop}, Traffic{"west", "east", 0, hop},
                            Traffic{"east", "west", 0, hop}, Traffic{"east", "east", 0, hop}));
  }
}

/// Two chunks of the same two ranks are two collectives, not one of four.
TEST(Traffic, CollectivesOfTheSameRanksAreToldApartByTheirOrder) {
  std::vector<TimelineRow> rows;
  for (const int rank : {0, 1})
    for (const std::int64_t bytes : {100, 60})
      rows.push_back(row(RowKind::reduce_scatter, rank, rank, 0, bytes));
  EXPECT_THAT(traffic_of(rows, kSites),
              ElementsAre(Traffic{"west", "east", 0, 80}, Traffic{"east", "west", 0, 80}));
}

}  // namespace
}  // namespace longhaul::trace
