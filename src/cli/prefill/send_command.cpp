#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/program/arguments.hpp"
#include "base/program/option_values.hpp"
#include "base/unit_text.hpp"
#include "cli/command/commands.hpp"
#include "prefill/outcome.hpp"
#include "prefill/requests.hpp"
#include "prefill/service/line_socket.hpp"
#include "prefill/service/service_lines.hpp"
#include "report/record_file.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;

constexpr Duration kRetry{1'000'000};  // of what the server did not take

/// What a server said of requests.
struct SentRequests {
  std::int64_t sent = 0, placed = 0, errors = 0;
  std::map<std::string, std::int64_t> answers{};  ///< last ones, by word
  std::map<std::string, std::int64_t> reasons{};  ///< of refusals
  std::int64_t unanswered = 0;                    ///< the server went before it said anything last
  prefill::TimeHistogram ttft{};

  void take(const prefill::AnswerLine& line) {
    if (line.answer == "error") ++errors;
    if (line.answer == "placed") ++placed;
    if (!line.is_final()) return;
    ++answers[line.answer];
    if (line.answer == "refused") ++reasons[line.reason];
    if (line.answer == "done") ttft.add(Duration{line.ttft_ns});
  }
  [[nodiscard]] std::int64_t answered() const {
    std::int64_t all = errors;
    for (const auto& [word, count] : answers) all += count;
    return all;
  }
};

std::string request_line(const prefill::Request& request) {
  ordered_json line{{"id", request.id}, {"input_length", request.tokens}};
  if (!request.model.empty()) line["model"] = request.model;
  return line.dump() + "\n";
}

/// An open loop: a request is sent when the file says, whatever was answered by then.
SentRequests send_requests(prefill::LineConnection& server, prefill::OfferedStream& requests) {
  SentRequests sums;
  const TimePoint begin = now();
  auto next = requests.next();
  while (!server.is_over() && (next || sums.answered() < sums.sent)) {
    for (; next && next->arrival <= now() - begin; next = requests.next(), ++sums.sent)
      server.send(request_line(*next));
    const Duration due = next ? next->arrival - (now() - begin) : Duration{100'000'000};
    const bool is_slow = server.has_unsent();
    prefill::wait_for_line(server, std::max(Duration{}, is_slow ? std::min(due, kRetry) : due));
    if (is_slow) server.send({});
    for (const auto& line : server.receive())
      if (line.kind == prefill::LineConnection::Line::Kind::whole)
        sums.take(prefill::parse_answer_line(line.text));
  }
  sums.unanswered = sums.sent - std::min(sums.sent, sums.answered());
  for (; next; next = requests.next()) ++sums.unanswered;
  return sums;
}

ordered_json sent_json(const SentRequests& sums) {
  ordered_json json{{"sent", sums.sent}, {"placed", sums.placed}, {"errors", sums.errors}};
  for (const char* const word : {"done", "refused", "cancelled", "failed"}) {
    const auto found = sums.answers.find(word);
    json[word] = found == sums.answers.end() ? 0 : found->second;
  }
  json["refused_by_reason"] = ordered_json::object();
  for (const auto& [reason, count] : sums.reasons) json["refused_by_reason"][reason] = count;
  json["unanswered"] = sums.unanswered;
  const auto ttft = sums.ttft.percentiles();
  json["ttft_ns"] = ttft ? ordered_json{{"p50", ttft->p50.count()},
                                        {"p90", ttft->p90.count()},
                                        {"p99", ttft->p99.count()},
                                        {"max", ttft->max.count()}}
                         : ordered_json{};
  return json;
}

}  // namespace

Answer send_command(const Options& options) {
  if (options.prefill.to.empty())
    fail("send: --to is missing (where bench_prefill --listen is). Give unix:PATH or tcp:PORT.");
  const auto address = prefill::socket_address("--to", options.prefill.to);
  prefill::LoadOptions load;
  if (!options.prefill.rate.empty()) load.rate = positive_number("--rate", options.prefill.rate);
  prefill::RequestFile file{options.files.front()};
  prefill::OfferedStream requests{file, load};
  prefill::LineConnection server = prefill::connect_to(address, prefill::kLongestServiceLine);
  const SentRequests sums = send_requests(server, requests);
  const ordered_json json = sent_json(sums);
  const ExitCode code = sums.unanswered + sums.errors > 0 ? ExitCode::answer_is_no : ExitCode::fine;
  if (options.json) return {report::json_text(json), code};
  std::string text =
      fmt::format("{} sent: {} done, {} refused, {} cancelled, {} failed", sums.sent,
                  json["done"].get<std::int64_t>(), json["refused"].get<std::int64_t>(),
                  json["cancelled"].get<std::int64_t>(), json["failed"].get<std::int64_t>());
  if (sums.errors > 0) text += fmt::format(", {} errors", sums.errors);
  if (sums.unanswered > 0) text += fmt::format(", {} without an answer", sums.unanswered);
  if (const auto ttft = sums.ttft.percentiles())
    text += fmt::format("\nTTFT p50 {}, p99 {}", to_text(ttft->p50), to_text(ttft->p99));
  return {text + "\n", code};
}

void add_send_options(Arguments& command, PrefillArguments& arguments) {
  command.option("--to", arguments.to, "unix:PATH or tcp:PORT of bench_prefill --listen");
  command.option("--rate", arguments.rate, "so many times as fast as the file says");
}

}  // namespace longhaul::cli
