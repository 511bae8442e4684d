#include "prefill/requests.hpp"

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "fuzz/refusal.hpp"
#include "fuzz/targets.hpp"

namespace longhaul::fuzz {
namespace {

constexpr const char* kRequestSource = "input.csv";

/// What a reader gave, and why it refused the rest.
struct ReadRequests {
  std::vector<prefill::Request> requests;
  std::string refusal;
};

ReadRequests from_text(std::string_view bytes) {
  ReadRequests read;
  try {
    read.requests = prefill::parse_requests(bytes, kRequestSource);
  } catch (const Error& error) {
    expect_refusal(error, kRequestSource);
    read.refusal = error.what();
  }
  return read;
}

/// With a buffer that the longest line just fits into.
ReadRequests from_stream(std::string_view bytes) {
  std::size_t longest = 0;
  for (std::size_t begin = 0; begin <= bytes.size();) {
    const std::size_t end = std::min(bytes.find('\n', begin), bytes.size());
    longest = std::max(longest, end - begin);
    begin = end + 1;
  }
  ReadRequests read;
  try {
    prefill::RequestFile file{std::make_unique<std::istringstream>(std::string{bytes}),
                              kRequestSource, longest};
    while (auto request = file.next()) read.requests.push_back(*request);
  } catch (const Error& error) {
    read.refusal = error.what();
  }
  return read;
}

/// What was accepted can be offered.
void expect_offers(const std::vector<prefill::Request>& requests) {
  std::int64_t id = 0;
  Duration last{};
  for (const prefill::Request& each : requests) {
    LONGHAUL_ASSERT(each.id == id++ && each.arrival >= last && each.tokens > 0, "request {}", id);
    last = each.arrival;
  }
  prefill::LoadOptions options;
  options.copies = 3;
  options.rate = 0.5;
  try {
    const auto offered = prefill::offered_load(requests, options);
    LONGHAUL_ASSERT(offered.size() == 3 * requests.size(), "{} offered", offered.size());
    LONGHAUL_ASSERT(std::ranges::is_sorted(offered, {}, &prefill::Request::arrival), "unsorted");
  } catch (const Error& error) {
    expect_refusal(error, "--rate");
  }
}

}  // namespace

void requests(std::string_view bytes) {
  const ReadRequests whole = from_text(bytes);
  const ReadRequests streamed = from_stream(bytes);
  LONGHAUL_ASSERT(whole.refusal == streamed.refusal, "{} and {}", whole.refusal, streamed.refusal);
  if (!whole.refusal.empty()) return;
  LONGHAUL_ASSERT(whole.requests == streamed.requests, "not the same of a stream");
  expect_offers(whole.requests);
}

}  // namespace longhaul::fuzz
