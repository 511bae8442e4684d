#include <algorithm>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/index.hpp"
#include "cli/support.hpp"
#include "report/page/page.hpp"
#include "support/file_text.hpp"
#include "trace/file/trace_file.hpp"
#include "trace/report/report.hpp"

namespace longhaul::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

template <typename Number>
std::vector<Number> numbers_of(const nlohmann::json& base64) {
  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::uint8_t> bytes;
  std::uint32_t word = 0, bits = 0;
  for (const char letter : base64.get<std::string>()) {
    if (letter == '=') break;
    word = word << 6U | static_cast<std::uint32_t>(letters.find(letter));
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<std::uint8_t>(word >> bits));
  }
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(Number));
  return numbers;
}

class ReportCommand : public ::testing::Test {
protected:
  std::string simulated(const std::string& name, const std::string& schedules) {
    const std::string trace = dir_.path(name);
    const Outcome run = longhaul_run({"simulate", dir_.write(name + ".toml", kTwoSites),
                                      "--schedule", schedules, "--out", trace});
    EXPECT_EQ(run.code, 0) << run.err;
    return trace;
  }
  Outcome report(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "report");
    arguments.insert(arguments.end(), {"--out", page_});
    return longhaul_run(arguments);
  }
  TempDir dir_;
  std::string page_ = dir_.path("report.html");
};

TEST_F(ReportCommand, HoldsEveryOpAsTheTraceDoes) {
  const std::string file = simulated("t.h5", "zb-h1");
  ASSERT_EQ(report({file}).code, 0);
  const auto timeline = data_of(testing::file_text(page_))["timelines"][0];
  const auto predicted = timeline["predicted"];
  const auto start = numbers_of<std::uint32_t>(predicted["start"]);
  const auto length = numbers_of<std::uint32_t>(predicted["length"]);
  const auto bound = numbers_of<std::int32_t>(predicted["bound"]);
  const auto lane = numbers_of<std::uint16_t>(timeline["lane"]);
  const auto kind = numbers_of<std::uint8_t>(timeline["kind"]);
  const auto microbatch = numbers_of<std::uint16_t>(timeline["microbatch"]);
  const trace::Trace trace = trace::read_trace(file);
  const auto& rows = trace.predicted.rows;
  ASSERT_EQ(start.size(), rows.size());
  EXPECT_THAT(timeline["ops"], IsEmpty()) << "they count up from 0";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(start[i], rows[i].start_ns);
    EXPECT_EQ(start[i] + length[i], rows[i].end_ns);
    EXPECT_EQ(bound[i], rows[i].bound_by);
    EXPECT_EQ(timeline["kinds"][kind[i]], to_string(rows[i].kind));
    EXPECT_EQ(microbatch[i], rows[i].microbatch);
    EXPECT_EQ(timeline["lanes"][lane[i]]["rank"], rows[i].rank);
    EXPECT_EQ(timeline["lanes"][lane[i]]["name"], trace.predicted.lanes[at(rows[i].lane)]);
  }
  std::vector<std::int64_t> path;
  for (const auto& step : trace::critical_path(rows)) path.push_back(step.op);
  EXPECT_EQ(predicted["path"].get<std::vector<std::int64_t>>(), path);
}

TEST_F(ReportCommand, ShowsTheActivationsThatADeviceHoldsAtMost) {
  const std::string file = simulated("t.h5", "1f1b");
  ASSERT_EQ(report({file}).code, 0);
  const auto memory = data_of(testing::file_text(page_))["timelines"][0]["predicted"]["memory"];
  const trace::Trace trace = trace::read_trace(file);
  const auto peaks = trace::report_iteration(trace.predicted, 0, 0, 0).peak_activation_bytes;
  ASSERT_THAT(memory, SizeIs(peaks.size()));
  for (std::size_t rank = 0; rank < peaks.size(); ++rank)
    EXPECT_EQ(std::ranges::max(numbers_of<float>(memory[rank])), static_cast<float>(peaks[rank]));
}

TEST_F(ReportCommand, PutsTheFastestFirstAndSaysByHowMuch) {
  const Outcome run = report({simulated("t.h5", "gpipe,zb-h1"), "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = run.json();
  ASSERT_THAT(json["schedules"], SizeIs(2));
  EXPECT_EQ(json["schedules"][0]["schedule"], "zb-h1");
  const double gpipe = json["schedules"][1]["predicted_ns"],
               best = json["schedules"][0]["predicted_ns"];
  EXPECT_EQ(json["schedules"][1]["over_fastest"], gpipe / best);
  ASSERT_THAT(json["sentences"], SizeIs(5));
  EXPECT_THAT(json["sentences"][1].get<std::string>(),
              AllOf(HasSubstr("zb-h1"), HasSubstr("predicted")));
  EXPECT_THAT(json["sentences"][2].get<std::string>(),
              HasSubstr(fmt::format("gpipe, takes {:.2f}% longer", 100 * (gpipe / best - 1))));
  EXPECT_THAT(json["sentences"][3].get<std::string>(), HasSubstr("Nothing here was measured"));
}

TEST_F(ReportCommand, ComparesSeveralRuns) {
  const std::string first = simulated("a.h5", "1f1b"), second = simulated("b.h5", "zb-h1");
  ASSERT_EQ(report({first, second}).code, 0);
  const auto data = data_of(testing::file_text(page_));
  EXPECT_THAT(data["runs"], SizeIs(2));
  EXPECT_EQ(data["schedules"][0]["run"], second);
  EXPECT_EQ(data["timelines"][0]["title"], "zb-h1 of " + second);
}

/// A name that would end the script, or begin another element.
TEST(ReportPage, TakesNoTextForMarkup) {
  const std::string page = report::report_page("<b>&\"", {{"text", "</script><b>@STYLE@"}});
  EXPECT_THAT(page, HasSubstr("<title>&lt;b&gt;&amp;&quot;</title>"));
  EXPECT_THAT(page, Not(HasSubstr("</script><b>")));
  EXPECT_EQ(data_of(page)["text"], "</script><b>@STYLE@");
  EXPECT_THAT(page, Not(HasSubstr("http:")));
  EXPECT_THAT(page, Not(HasSubstr("https:")));
}

TEST_F(ReportCommand, RefusesInOneLine) {
  const std::string trace = simulated("t.h5", "1f1b");
  const auto refused = [&](std::vector<std::string> arguments, const std::string& why) {
    const Outcome run = longhaul_run(arguments);
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.err, HasSubstr(why));
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1);
  };
  refused({"report", trace}, "Give --out report.html");
  refused({"report", trace, "--out", trace}, "exists");
  refused({"report", trace, "--out", page_, "--schedule", "1f1c"}, "Did you mean \"1f1b\"?");
  refused({"report", dir_.path("none.h5"), "--out", page_}, "there is no such file");
  refused({"report", dir_.write("x.h5", "no trace"), "--out", page_}, "x.h5");
}

}  // namespace
}  // namespace longhaul::test
