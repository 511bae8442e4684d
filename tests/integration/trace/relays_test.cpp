#include <functional>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/export/export.hpp"
#include "trace/relayed_sample.hpp"
#include "trace/report/report.hpp"
#include "trace/validate/check_rows.hpp"

namespace longhaul {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::relayed;
using enum testing::Row;

std::vector<std::string> after(const std::function<void(std::vector<TimelineRow>&)>& change) {
  Timeline timeline = testing::relayed();
  change(timeline.rows);
  trace::Diagnostics findings;
  trace::check_rows(timeline, "rows", 0, findings);
  return findings.texts();
}

TEST(RelayedRows, AreValid) {
  EXPECT_THAT(after([](auto&) {}), IsEmpty());
}

TEST(RelayedRows, FindPiecesThatDoNotMakeUpTheirMessage) {
  EXPECT_THAT(after([](auto& rows) { rows[wan_out_1].piece = rows[wan_in_1].piece = 0; }),
              Contains(HasSubstr("of which piece 0 is there 2 times and piece 1 0 times")));
  EXPECT_THAT(after([](auto& rows) {
                for (const testing::Row row :
                     {scatter_out, scatter_in, wan_out_1, wan_in_1, gather_out, gather_in})
                  rows[row].size_bytes = 3;
              }),
              Contains(HasSubstr("has 6 bytes, piece 0 of 2 (the last one has 3")));
  EXPECT_THAT(after([](auto& rows) { rows[wan_out_1].pieces = 3; }),
              Contains(HasSubstr("is one of 3 pieces (op 2 is one of 2)")));
  EXPECT_THAT(after([](auto& rows) {
                for (TimelineRow& row : rows)
                  if (row.leg != MessageLeg::whole) row.pieces = 3;
              }),
              Contains(HasSubstr(
                  "a message of 3 pieces, of which piece 0 is there 1 times and piece 2 0 times")));
}

TEST(RelayedRows, FindRelaysWithoutTheirPartner) {
  EXPECT_THAT(after([](auto& rows) {
                std::erase_if(
                    rows, [](const TimelineRow& row) { return row.leg == MessageLeg::scatter; });
              }),
              Contains(HasSubstr("passes on (wan) a piece that it did not get (scatter)")));
  EXPECT_THAT(after([](auto& rows) {
                rows[consumed].bound_by = -1;
                std::erase_if(rows,
                              [](const TimelineRow& row) { return row.leg == MessageLeg::gather; });
              }),
              Contains(HasSubstr("gets (wan) a piece that it does not pass on (gather)")));
  EXPECT_THAT(after([](auto& rows) { rows[wan_out_1].start_ns = 109; }),
              Contains(HasSubstr("starts at 109 ns, before op 3 brings the piece at 110 ns")));
  EXPECT_THAT(after([](auto& rows) { rows[scatter_in].size_bytes = 4; }),
              Contains(HasSubstr("passes on 5 bytes (op 3 brought 4)")));
}

TEST(RelayedRows, FindLegsAndPiecesThatCannotBe) {
  EXPECT_THAT(after([](auto& rows) { rows[produced].leg = MessageLeg::wan; }),
              Contains(HasSubstr("has leg 2 (of a F)")));
  EXPECT_THAT(after([](auto& rows) { rows[wan_out_0].piece = 2; }),
              Contains(HasSubstr("piece 2 of 2")));
  EXPECT_THAT(after([](auto& rows) { rows[wan_out_0].owner = -1; }),
              Contains(HasSubstr("owner -1")));
}

TEST(RelayedRows, IdleTimeIsAttributedThroughRelays) {
  const Timeline timeline = testing::relayed();
  const trace::IdleTime idle = trace::attribute_idle(timeline.rows, 0);
  EXPECT_EQ(idle.link_wait, 10 + 80 + 10);  // gathered, over the WAN, scattered
  EXPECT_EQ(idle.link_busy, 15);            // its turn
  EXPECT_EQ(idle.dependency, 100);
}

TEST(RelayedRows, AreCountedByLeg) {
  const Timeline timeline = testing::relayed();
  const trace::IterationReport report = trace::report_iteration(timeline, 0, 0, 0);
  const auto leg = [&](MessageLeg l) { return report.legs[static_cast<std::size_t>(l)]; };
  EXPECT_EQ(leg(MessageLeg::whole).messages, 0);
  EXPECT_EQ(leg(MessageLeg::scatter).messages, 1);
  EXPECT_EQ(leg(MessageLeg::wan).messages, 2);
  EXPECT_EQ(leg(MessageLeg::wan).bytes, 11);
  EXPECT_EQ(leg(MessageLeg::gather).bytes, 5);
  EXPECT_EQ(report.wan_busy_ns, 60);
}

TEST(RelayedRows, AreNamedInTheChromeExport) {
  trace::Trace trace;
  trace.predicted = testing::relayed();
  std::ostringstream out;
  trace::export_chrome(trace, {}, out);
  EXPECT_THAT(out.str(), HasSubstr("wan 2/2 of chunk 0 microbatch 5 (replica 0)"));
}

}  // namespace
}  // namespace longhaul
