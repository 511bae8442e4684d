#include <algorithm>
#include <string>
#include <vector>

#include <sys/socket.h>

#include "fuzz/refusal.hpp"
#include "fuzz/targets.hpp"
#include "prefill/service/line_socket.hpp"
#include "prefill/service/service_lines.hpp"

namespace longhaul::fuzz {
namespace {

constexpr std::size_t kLongestFuzzed = 200;

/// What a connection gives of bytes that come in pieces and end.
std::vector<prefill::LineConnection::Line> lines_of(std::string_view bytes, std::size_t piece) {
  int both[2];
  LONGHAUL_ASSERT(::socketpair(AF_UNIX, SOCK_STREAM, 0, both) == 0, "no pair of sockets");
  prefill::SocketHandle client{both[0]};
  prefill::LineConnection server{prefill::SocketHandle{both[1]}, kLongestFuzzed};
  std::vector<prefill::LineConnection::Line> lines;
  const auto add = [&] {
    for (auto& line : server.receive()) lines.push_back(std::move(line));
  };
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    const std::string_view part = bytes.substr(at, piece);
    LONGHAUL_ASSERT(::send(client.get(), part.data(), part.size(), MSG_NOSIGNAL) ==
                        static_cast<ssize_t>(part.size()),
                    "{} bytes not sent", part.size());
    add();
  }
  client = prefill::SocketHandle{};
  add();
  LONGHAUL_ASSERT(server.is_over(), "the other side has gone");
  return lines;
}

/// The same, by looking at all bytes at once.
std::vector<prefill::LineConnection::Line> split(std::string_view bytes) {
  using Kind = prefill::LineConnection::Line::Kind;
  std::vector<prefill::LineConnection::Line> lines;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view text = bytes.substr(0, end);
    if (text.size() > kLongestFuzzed)
      lines.push_back({Kind::too_long, {}});
    else
      lines.push_back({end == bytes.npos ? Kind::half : Kind::whole, std::string{text}});
    if (end == bytes.npos) break;
    bytes.remove_prefix(end + 1);
  }
  return lines;
}

/// What a line says is a request with its id back in each answer, or a reason in one line.
void expect_answers(std::string_view text) {
  const prefill::ServiceLine line = prefill::parse_service_line(text);
  const auto expect_one_line = [](std::string_view answer) {
    LONGHAUL_ASSERT(answer.find('\n') == answer.size() - 1, "no line: {}", answer);
    return prefill::parse_answer_line(answer.substr(0, answer.size() - 1));
  };
  if (const auto* const bad = std::get_if<prefill::BadLine>(&line))
    LONGHAUL_ASSERT(expect_one_line(prefill::error_line(bad->why)).reason == bad->why, "{}",
                    bad->why);
  const auto* const asked = std::get_if<prefill::AskLine>(&line);
  if (asked == nullptr) return;
  LONGHAUL_ASSERT(asked->tokens > 0, "{} tokens", asked->tokens);
  for (const prefill::NewsKind kind : every<prefill::NewsKind>()) {
    const auto answer = expect_one_line(prefill::answer_line(asked->id, {.kind = kind}));
    LONGHAUL_ASSERT(answer.id == asked->id && answer.answer == to_string(kind), "{}", asked->id);
  }
}

}  // namespace

void service(std::string_view bytes) {
  if (bytes.empty()) return;
  const std::size_t piece = std::max<std::size_t>(1, static_cast<unsigned char>(bytes.front()));
  bytes.remove_prefix(1);
  const auto lines = lines_of(bytes, piece);
  const auto expected = split(bytes);
  LONGHAUL_ASSERT(lines.size() == expected.size(), "{} lines, not {}", lines.size(),
                  expected.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    LONGHAUL_ASSERT(lines[i].kind == expected[i].kind && lines[i].text == expected[i].text,
                    "line {}", i);
    if (lines[i].kind == prefill::LineConnection::Line::Kind::whole) expect_answers(lines[i].text);
  }
  static_cast<void>(prefill::parse_answer_line(bytes));
}

}  // namespace longhaul::fuzz
