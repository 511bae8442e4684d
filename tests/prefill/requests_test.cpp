#include "prefill/requests.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace longhaul::prefill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kAzure =
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
    "2023-11-16 23:59:59.9799600,4808,10\r\n"
    "2023-11-17 00:00:00.0799600,3180,8\r\n"
    "2023-11-17 00:00:02,110,27\r\n";

std::string refusal(const char* text) {
  try {
    (void)parse_requests(text, "r");
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(ParseRequests, TakesAzuresTraceAsPublished) {
  EXPECT_THAT(parse_requests(kAzure, "r"),
              ElementsAre(Request{0, 0ns, 4808}, Request{1, 100ms, 3180},
                          Request{2, Duration{2'020'040'000}, 110}));
}

TEST(ParseRequests, TakesJsonLinesInMilliseconds) {
  const auto requests = parse_requests(
      "{\"timestamp\": 0, \"input_length\": 6758, \"output_length\": 500, \"hash_ids\": [0, 1]}\n\n"
      "{\"timestamp\": 27, \"input_length\": 12, \"model\": \"small\"}\n",
      "r");
  EXPECT_THAT(requests,
              ElementsAre(Request{0, 0ns, 6758, "", "", {0, 1}}, Request{1, 27ms, 12, "small"}));
}

TEST(ParseRequests, RefusesWithTheLine) {
  EXPECT_THAT(refusal(""), HasSubstr("r: it is empty"));
  EXPECT_THAT(refusal("TIMESTAMP,ContextTokens\n"), HasSubstr("it has no request"));
  EXPECT_THAT(refusal("TIMESTAMP,Tokens\nx,1\n"), HasSubstr("r:1: there is no column"));
  EXPECT_THAT(refusal("TIMESTAMP,ContextTokens\nnoon,1\n"), HasSubstr("r:2: \"noon\" is no time"));
  EXPECT_THAT(refusal("TIMESTAMP,ContextTokens\n2023-02-30 00:00:00,1\n"), HasSubstr("is no time"));
  EXPECT_THAT(refusal("TIMESTAMP,ContextTokens\n2023-01-01 00:00:00,0\n"),
              HasSubstr("r:2: 0 tokens are out of range"));
  EXPECT_THAT(refusal("TIMESTAMP,ContextTokens\n2023-01-01 00:00:01,1\n2023-01-01 00:00:00,1\n"),
              HasSubstr("r:3: the request arrives before the one above it"));
  EXPECT_THAT(refusal("{\"timestamp\": 0}\n"), HasSubstr("\"input_length\" is missing"));
  EXPECT_THAT(refusal("{\"timestamp\": -1, \"input_length\": 3}\n"), HasSubstr("out of range"));
  EXPECT_THAT(refusal("{\"timestamp\": 0, \"input_length\": 3, \"hash_ids\": 1}\n"),
              HasSubstr("\"hash_ids\" is no list"));
  EXPECT_THAT(refusal("{\"timestamp\": 0, \"input_length\": 3, \"takes_ns\": 0}\n"),
              HasSubstr("is no time"));
  EXPECT_THAT(refusal("TIMESTAMP,ContextTokens\n2023-01-01 00:00:00,100000000000000000000\n"),
              HasSubstr("r:2: \"100000000000000000000\" is no number of tokens"));
  EXPECT_THAT(refusal("TIMESTAMP,ContextTokens\n1701-01-01 00:00:00,5\n2199-01-01 00:00:00,5\n"),
              HasSubstr("r:3: the request arrives more than"));
  EXPECT_THAT(refusal("{not json\n"), HasSubstr("r:1: \"{not json\" is no JSON object"));
}

std::vector<Request> streamed(const std::string& text, std::size_t longest,
                              const LoadOptions& options = {}) {
  RequestFile file{std::make_unique<std::istringstream>(text), "r", longest};
  OfferedStream requests{file, options};
  std::vector<Request> all;
  while (auto request = requests.next()) all.push_back(*request);
  return all;
}

TEST(RequestFile, GivesTheSameRequestsAsTheWholeText) {
  for (const std::size_t longest : {40U, 41U, 57U, 1000U})
    EXPECT_EQ(streamed(kAzure, longest), parse_requests(kAzure, "r")) << longest;
  const std::string text = "{\"timestamp\": 5, \"input_length\": 7}";
  EXPECT_EQ(streamed(text, text.size()), parse_requests(text, "r")) << "no end of the last line";
}

TEST(RequestFile, RefusesALineThatItHasNoRoomFor) {
  EXPECT_THAT([] { (void)streamed(kAzure, 38); },
              ::testing::ThrowsMessage<Error>(
                  HasSubstr("r: a line has more than 38 bytes (after 0 requests)")));
  EXPECT_THAT([] { (void)streamed("", 10); },
              ::testing::ThrowsMessage<Error>(HasSubstr("r: it is empty")));
  EXPECT_THAT([] { RequestFile file{"/no/such.csv"}; },
              ::testing::ThrowsMessage<Error>(HasSubstr("/no/such.csv: it cannot be read")));
}

TEST(RequestFile, IsOfferedAsTheWholeTextIs) {
  const std::vector<Request> file = parse_requests(kAzure, "r");
  LoadOptions options;
  options.window_from = 50ms;
  options.rate = 3;
  EXPECT_EQ(streamed(kAzure, 99, options), offered_load(file, options));
  options = {.poisson = 2};
  EXPECT_EQ(streamed(kAzure, 99, options), offered_load(file, options));
  options = {.window_to = 1s};
  EXPECT_EQ(streamed(kAzure, 99, options), offered_load(file, options));
}

TEST(OfferedLoad, AWindowCountsFromItsBegin) {
  LoadOptions options;
  options.window_from = 50ms;
  options.window_to = 2020ms;
  EXPECT_THAT(offered_load(parse_requests(kAzure, "r"), options),
              ElementsAre(Request{1, 50ms, 3180}));
  options.window_from = 100ms;  // the window has its begin, not its end
  options.window_to = Duration{2'020'040'000};
  EXPECT_THAT(offered_load(parse_requests(kAzure, "r"), options),
              ElementsAre(Request{1, 0ns, 3180}));
}

TEST(OfferedLoad, ARateShortensTime) {
  LoadOptions options;
  options.rate = 4;
  EXPECT_EQ(offered_load(parse_requests(kAzure, "r"), options)[1].arrival, 25ms);
}

TEST(OfferedLoad, RefusesArrivalsThatNoTimeHolds) {
  const auto refusal = [](const LoadOptions& options) -> std::string {
    try {
      (void)offered_load({{0, 1s, 1}, {1, Duration{std::int64_t{1} << 60}, 1}}, options);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_EQ(refusal({.rate = 2}), "");
  EXPECT_THAT(refusal({.rate = 0.5}), HasSubstr("--rate: request 1 would arrive after 2.31e+09 s"));
  EXPECT_THAT(refusal({.poisson = 1e-12}), HasSubstr("--poisson: request 0 would arrive after"));
}

TEST(OfferedLoad, CopiesHaveTheTracesRequestsEachInItsSpan) {
  LoadOptions options;
  options.copies = 5;
  const auto file = parse_requests(kAzure, "r");
  const auto requests = offered_load(file, options);
  ASSERT_EQ(requests.size(), 15U);
  EXPECT_TRUE(std::ranges::is_sorted(requests, {}, &Request::arrival));
  EXPECT_LE(requests.back().arrival, file.back().arrival);
  std::set<std::int64_t> ids;
  for (const Request& request : requests) {
    ids.insert(request.id);
    EXPECT_EQ(request.tokens, file[static_cast<std::size_t>(request.id % 3)].tokens);
  }
  EXPECT_EQ(ids.size(), 15U);
  EXPECT_EQ(offered_load(file, options), requests) << "the same seed, the same shifts";
}

TEST(OfferedLoad, PoissonArrivalsHaveTheirRate) {
  std::vector<Request> requests;
  for (std::int64_t id = 0; id < 20'000; ++id) requests.push_back({id, 0ns, 1});
  LoadOptions options;
  options.poisson = 50;
  const auto drawn = offered_load(requests, options);
  EXPECT_TRUE(std::ranges::is_sorted(drawn, {}, &Request::arrival));
  // 20,000 exponential times of 20 ms: 400 s, of a standard deviation of 2.8 s.
  EXPECT_NEAR(static_cast<double>(drawn.back().arrival.count()), 400e9, 12e9);
}

}  // namespace
}  // namespace longhaul::prefill
