#include "trace/export/export.hpp"

#include <map>
#include <set>
#include <sstream>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "trace/report/report.hpp"
#include "trace/sample_timeline.hpp"

namespace longhaul::trace {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr testing::Shape kShape{.ranks = 4, .microbatches = 6};

Trace sample_trace(int iterations) {
  Trace trace;
  trace.info.creator = "test \"1\"";
  trace.measured = testing::random_timeline(1, kShape, iterations);
  trace.predicted = testing::random_timeline(2, kShape);
  return trace;
}

json exported(const Trace& trace, const Selection& selection = {}) {
  std::ostringstream out;
  export_chrome(trace, selection, out);
  return json::parse(out.str());
}

std::int64_t ns(const json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000);
}

struct Slice {
  std::int64_t begin, end;
};
using Thread = std::pair<int, int>;

Thread thread_of(const json& event) { return {event["pid"], event["tid"]}; }

std::map<Thread, std::vector<Slice>> slices_of(const json& document) {
  std::map<Thread, std::vector<Slice>> slices;
  for (const json& event : document["traceEvents"]) {
    if (event["ph"] != "X") continue;
    slices[thread_of(event)].push_back({ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])});
  }
  return slices;
}

TEST(ChromeExport, NamesProcessesForDatacentersAndThreadsForLanes) {
  std::set<std::string> processes;
  std::set<std::string> threads;
  const json document = exported(sample_trace(1));
  for (const json& event : document["traceEvents"]) {
    if (event["name"] == "process_name") processes.insert(event["args"]["name"]);
    if (event["name"] == "thread_name") threads.insert(event["args"]["name"]);
  }
  EXPECT_THAT(processes, ::testing::ElementsAre("east (measured)", "east (predicted)",
                                                "west (measured)", "west (predicted)"));
  EXPECT_TRUE(threads.contains("rank 3 compute"));
  EXPECT_TRUE(threads.contains("rank 0 send>1"));
}

TEST(ChromeExport, DrawsEveryRowWithItsTimesAndArguments) {
  const Trace trace = sample_trace(2);
  std::multiset<std::tuple<std::string, int, int, std::int64_t, std::int64_t>> drawn, wanted;
  const json document = exported(trace);
  for (const json& event : document["traceEvents"]) {
    if (event["ph"] != "X" || event["cat"] == "iteration") continue;
    const json& args = event["args"];
    drawn.emplace(event["cat"], args["chunk"], args["microbatch"], args["op"], ns(event["dur"]));
  }
  for (const Timeline* timeline : {&trace.measured, &trace.predicted}) {
    for (const TimelineRow& row : timeline->rows)
      wanted.emplace(longhaul::to_string(row.kind), row.chunk, row.microbatch, row.op,
                     row.end_ns - row.start_ns);
  }
  EXPECT_EQ(drawn, wanted);
}

TEST(ChromeExport, NeverOverlapsSlicesOfAThread) {
  auto threads = slices_of(exported(sample_trace(3)));
  ASSERT_FALSE(threads.empty());
  for (auto& [thread, slices] : threads) {
    std::ranges::sort(slices, {}, &Slice::begin);
    for (std::size_t i = 1; i < slices.size(); ++i)
      EXPECT_LE(slices[i - 1].end, slices[i].begin) << "thread " << thread.second;
  }
}

TEST(ChromeExport, JoinsBothSidesOfEveryMessage) {
  const Trace trace = sample_trace(2);
  const json document = exported(trace);
  const auto slices = slices_of(document);
  const auto inside = [&](const json& event) {
    const auto& mine = slices.at(thread_of(event));
    const std::int64_t at = ns(event["ts"]);
    return std::ranges::any_of(mine, [&](const Slice& s) { return s.begin <= at && at < s.end; });
  };
  std::map<int, std::int64_t> starts;
  std::map<int, std::int64_t> finishes;
  for (const json& event : document["traceEvents"]) {
    if (event["ph"] != "s" && event["ph"] != "f") continue;
    auto& ends = event["ph"] == "s" ? starts : finishes;
    EXPECT_TRUE(ends.emplace(event["id"], ns(event["ts"])).second) << "id " << event["id"];
    EXPECT_TRUE(inside(event)) << event;
  }
  std::size_t messages = 0;
  for (const Timeline* timeline : {&trace.measured, &trace.predicted}) {
    messages += static_cast<std::size_t>(
        std::ranges::count(timeline->rows, RowKind::send, &TimelineRow::kind));
  }
  EXPECT_EQ(starts.size(), messages);
  ASSERT_EQ(finishes.size(), messages);
  for (const auto& [id, start] : starts) EXPECT_LE(start, finishes.at(id)) << "id " << id;
}

TEST(ChromeExport, HoldsArrowsOfMessagesThatTakeNoTime) {
  Trace trace;
  trace.measured = testing::random_timeline(
      3, {.ranks = 2, .microbatches = 3, .latency_ns = 0, .transfer_ns = 0});
  const json document = exported(trace);
  const auto slices = slices_of(document);
  int arrows = 0;
  for (const json& event : document["traceEvents"]) {
    if (event["ph"] != "s" && event["ph"] != "f") continue;
    ++arrows;
    const std::int64_t at = ns(event["ts"]);
    EXPECT_TRUE(std::ranges::any_of(slices.at(thread_of(event)),
                                    [&](const Slice& s) { return s.begin <= at && at < s.end; }));
  }
  EXPECT_EQ(arrows, 2 * 6);
}

TEST(ChromeExport, ShowsAPredictionAboveTheFirstIterationOfItsSchedule) {
  std::map<std::string, std::set<std::int64_t>> begins;
  const json document = exported(sample_trace(3), {.schedule = {}, .iteration = 2});
  for (const json& event : document["traceEvents"]) {
    if (event["ph"] == "X" && event["cat"] == "iteration")
      begins[event["name"]].insert(ns(event["ts"]));
  }
  EXPECT_EQ(begins, (std::map<std::string, std::set<std::int64_t>>{{"gpipe, predicted", {0}},
                                                                   {"gpipe, iteration 2", {0}}}));
}

TEST(ChromeExport, SurvivesNamesThatAreNotUtf8) {
  Trace trace = sample_trace(1);
  trace.measured.datacenters[0] = "we\xffst\"\n";
  EXPECT_NO_THROW((void)exported(trace));
}

TEST(ChromeExport, RefusesWhatViewersCannotOpenAndWhatIsNotThere) {
  std::ostringstream out;
  const auto message = [&](const Selection& selection) -> std::string {
    try {
      export_chrome(sample_trace(2), selection, out);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(message({.schedule = {}, .iteration = {}, .most_bytes = 10'000}),
              HasSubstr("Select one schedule and one iteration"));
  EXPECT_THAT(message({.schedule = "zbv", .iteration = {}}), HasSubstr("nothing to export"));
}

TEST(CsvExport, WritesEveryRowWithNamesSpelledOut) {
  Trace trace;
  testing::TimelineBuilder builder;
  builder.begin_iteration("1f1b, \"mine\"", 4);
  builder.block(1, RowKind::D, 2, 3, 10, 20, {-1, BoundKind::start}, -7);
  trace.measured = builder.timeline();
  std::ostringstream out;
  export_csv(trace, {}, out);
  EXPECT_EQ(out.str(),
            "source,schedule,iteration,op,rank,replica,device,datacenter,lane,resource,kind,chunk,"
            "microbatch,part,parts,peer,leg,owner,piece,pieces,collective,step,level,layer,"
            "operator,slice,slices,outcome,version,request,tokens,size_bytes,planned_ns,ready_ns,"
            "start_ns,end_ns,bound_by,"
            "bound_kind\n"
            "measured,\"1f1b, "
            "\"\"mine\"\"\",4,0,1,0,1,east,compute,,D,2,3,0,1,-1,whole,0,0,1,,-1,,-1,,0,1,ran,-1,"
            "-1,-1,-7,10,10,10,20,-1,start\n");
}

TEST(CsvExport, SpellsOutWhatSchemas3And4Add) {
  Trace trace;
  testing::TimelineBuilder builder;
  builder.block(1, RowKind::F, 2, 3, 10, 20);
  trace.measured = builder.timeline();
  trace.measured.collectives = {"all_reduce of chunk 0", "all_gather of chunk 1"};
  trace.measured.operators = {"attention"};
  TimelineRow& row = trace.measured.rows.front();
  row.collective = 1;
  row.step = 4;
  row.level = static_cast<std::int32_t>(NetworkLevel::wan);
  row.layer = 7;
  row.operator_index = 0;
  row.slice = 1;
  row.slices = 2;
  row.outcome = static_cast<std::int32_t>(Outcome::late);
  row.version = 9;
  row.request = 5;
  row.tokens = 512;
  std::ostringstream out;
  export_csv(trace, {}, out);
  EXPECT_THAT(out.str(),
              HasSubstr(",1,all_gather of chunk 1,4,wan,7,attention,1,2,late,9,5,512,0,10,"));
}

std::string memory_of(const Trace& trace, const Selection& selection = {}) {
  std::ostringstream out;
  export_memory(trace, selection, out);
  return out.str();
}

/// Rank 0 takes 10 and 12 bytes, then releases the first in two steps and the second in one. Rank 1
/// releases 7 bytes at the moment at which it takes 7 again.
Trace two_ranks_with_memory() {
  testing::TimelineBuilder t;
  t.begin_iteration("zb, mine", 3);
  t.block(0, RowKind::F, 0, 0, 0, 100, {}, 10);
  t.block(0, RowKind::F, 0, 1, 100, 180, {}, 12);
  t.block(0, RowKind::D, 0, 0, 300, 400, {}, -6);
  t.block(0, RowKind::W, 0, 0, 400, 450, {}, -4);
  t.block(0, RowKind::B, 0, 1, 450, 500, {}, -12);
  t.send(0, 1, 0, 0, {100, 100, 150}, {});
  t.block(1, RowKind::F, 1, 0, 200, 250, {}, 7);
  t.block(1, RowKind::R, 1, 0, 250, 250, {}, 0);
  t.block(1, RowKind::B, 1, 0, 250, 300, {}, -7);
  t.recv(1, 0, 0, 0, {0, 100, 200}, {});
  t.block(1, RowKind::F, 1, 1, 300, 310, {}, 7);
  Trace trace;
  trace.measured = t.timeline();
  return trace;
}

TEST(MemoryExport, HoldsARunningSumForEachRank) {
  EXPECT_EQ(memory_of(two_ranks_with_memory()),
            "source,schedule,iteration,rank,device,time_ns,activation_bytes\n"
            "measured,\"zb, mine\",3,0,0,0,10\n"
            "measured,\"zb, mine\",3,0,0,100,22\n"
            "measured,\"zb, mine\",3,0,0,400,16\n"
            "measured,\"zb, mine\",3,0,0,450,12\n"
            "measured,\"zb, mine\",3,0,0,500,0\n"
            "measured,\"zb, mine\",3,1,1,200,7\n"
            "measured,\"zb, mine\",3,1,1,300,0\n"
            "measured,\"zb, mine\",3,1,1,300,7\n");
}

TEST(MemoryExport, BeginsEachIterationAnewAndSelects) {
  const std::string text = memory_of(sample_trace(2), {.schedule = "gpipe", .iteration = 1});
  // Each of 4 ranks takes and releases 6 activations, measured (iteration 1) and predicted.
  EXPECT_EQ(std::ranges::count(text, '\n'), 1 + 2 * 4 * 12);
  EXPECT_THAT(text, HasSubstr("measured,gpipe,1,0,0,0,1000\n"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("measured,gpipe,0")));
  EXPECT_THAT(text, HasSubstr("predicted,gpipe,0,0,0,0,1000\n"));
  EXPECT_THAT(text, HasSubstr(",6000\n"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr(",7000\n")));
  EXPECT_THROW((void)memory_of(sample_trace(1), {.schedule = "zbv", .iteration = {}}), Error);
}

TEST(CsvExport, SelectsAScheduleByItsNameWhereverEitherTableHoldsIt) {
  Trace trace = sample_trace(1);
  trace.predicted.schedules = {"1f1b", "gpipe"};
  for (TimelineRow& row : trace.predicted.rows) row.schedule = 1;
  std::ostringstream out;
  export_csv(trace, {.schedule = "gpipe", .iteration = {}}, out);
  const std::string text = out.str();
  EXPECT_EQ(
      std::ranges::count(text, '\n'),
      static_cast<std::ptrdiff_t>(1 + trace.predicted.rows.size() + trace.measured.rows.size()));
}

TEST(CsvExport, SelectsIterationsOfWhatWasMeasured) {
  std::ostringstream out;
  export_csv(sample_trace(3), {.schedule = "gpipe", .iteration = 1}, out);
  const std::string text = out.str();
  const auto lines = static_cast<std::size_t>(std::ranges::count(text, '\n'));
  EXPECT_EQ(lines, 1 + 2 * testing::random_timeline(2, kShape).rows.size());
}

}  // namespace
}  // namespace longhaul::trace
