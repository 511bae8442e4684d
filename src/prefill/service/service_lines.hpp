#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "prefill/live/arrivals.hpp"

namespace longhaul::prefill {

/// What a client says in one line (docs/prefill.md).
struct AskLine {
  std::string id;  ///< as JSON: a whole number or a text
  std::int64_t tokens = 0;
  std::string model{};  ///< empty: the first
};
struct CancelLine {
  std::string id;
};
/// A pipeline, by number, that begins no prompts from now on, or does again.
struct DrainLine {
  std::int32_t pipeline = 0;
  bool drains = true;
  std::string model{};  ///< whose; empty: of every model that has one of that number
};
/// Why a line is none of these.
struct BadLine {
  std::string why;
};
using ServiceLine = std::variant<AskLine, CancelLine, DrainLine, BadLine>;

inline constexpr std::size_t kLongestServiceLine = std::size_t{1} << 16U;  // bytes

/// A line without its end. Never throws.
[[nodiscard]] ServiceLine parse_service_line(std::string_view text);

/// The answer to a request, with the end of the line.
[[nodiscard]] std::string answer_line(const std::string& id, const RequestNews& news);
[[nodiscard]] std::string error_line(std::string_view why);

/// What a server says in one line, as its client takes it; "error" where it is no such line.
struct AnswerLine {
  std::string id;      ///< as JSON; empty: of no request
  std::string answer;  ///< placed, refused, done, cancelled, failed, error
  std::string reason{};
  std::int64_t ttft_ns = 0;  ///< done: measured
  [[nodiscard]] bool is_final() const { return answer != "placed" && answer != "error"; }
};
[[nodiscard]] AnswerLine parse_answer_line(std::string_view text);

}  // namespace longhaul::prefill
