#include "prefill/service/service_lines.hpp"

#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "scenario/text/config_node.hpp"

namespace longhaul::prefill {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestId = 64;                    // bytes of its JSON
constexpr std::int64_t kMostAskedTokens = 1'000'000'000;  // as in a file
constexpr std::int64_t kMostPipelines = 1'000'000;

const json* key_of(const json& line, const char* key) {
  const auto found = line.find(key);
  return found == line.end() ? nullptr : &*found;
}

/// A whole number from `least` to `most`.
std::optional<std::int64_t> number_in(const json& value, std::int64_t least, std::int64_t most) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(most))
    return std::nullopt;
  const auto number = value.get<std::int64_t>();
  if (number < least || number > most) return std::nullopt;
  return number;
}

std::optional<std::string> id_of(const json& value) {
  if (!value.is_number_integer() && !value.is_string()) return std::nullopt;
  std::string id = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (id.size() > kLongestId) return std::nullopt;
  return id;
}

BadLine bad(const char* key, const char* advice) {
  return {fmt::format("\"{}\": {}", key, advice)};
}

/// Reads "model" where the line has it; false: it is no name.
bool read_model(const json& line, std::string& model) {
  const json* const found = key_of(line, "model");
  if (found == nullptr) return true;
  if (!found->is_string()) return false;
  model = found->get<std::string>();
  return true;
}

ServiceLine drain_line(const json& line, const json& value, const char* key, bool drains) {
  const auto pipeline = number_in(value, 0, kMostPipelines);
  if (!pipeline) return bad(key, "give the number of a pipeline");
  DrainLine drain{static_cast<std::int32_t>(*pipeline), drains};
  if (!read_model(line, drain.model)) return bad("model", "name a [[prefill]]");
  return drain;
}

ServiceLine ask_line(const json& line) {
  const json* const id = key_of(line, "id");
  const auto own = id == nullptr ? std::nullopt : id_of(*id);
  if (!own) return bad("id", "give a whole number or a short text");
  const json* const length = key_of(line, "input_length");
  const auto tokens = length == nullptr ? std::nullopt : number_in(*length, 1, kMostAskedTokens);
  if (!tokens) return bad("input_length", "give a number of tokens (1 to 1000000000)");
  AskLine ask{*own, *tokens};
  if (!read_model(line, ask.model)) return bad("model", "name a [[prefill]]");
  return ask;
}

}  // namespace

ServiceLine parse_service_line(std::string_view text) {
  if (text.ends_with('\r')) text.remove_suffix(1);
  const json line = json::parse(text, nullptr, false);
  if (!line.is_object())
    return BadLine{
        "no JSON object. Write {\"id\": 1, \"input_length\": 512}, {\"cancel\": 1}, "
        "{\"drain\": 0} or {\"resume\": 0}"};
  if (const json* const cancel = key_of(line, "cancel")) {
    const auto id = id_of(*cancel);
    if (!id) return bad("cancel", "give the id of a request");
    return CancelLine{*id};
  }
  if (const json* const drain = key_of(line, "drain"))
    return drain_line(line, *drain, "drain", true);
  if (const json* const resume = key_of(line, "resume"))
    return drain_line(line, *resume, "resume", false);
  return ask_line(line);
}

std::string answer_line(const std::string& id, const RequestNews& news) {
  std::string line = fmt::format("{{\"id\": {}, \"answer\": \"{}\"", id, to_string(news.kind));
  switch (news.kind) {
    case NewsKind::placed:
      line += fmt::format(", \"pipeline\": {}, \"start_ns\": {}, \"expected_ttft_ns\": {}",
                          news.pipeline, news.start.count(), (news.end - news.arrival).count());
      break;
    case NewsKind::refused:
      line += fmt::format(", \"reason\": \"{}\"", to_string(news.reason));
      break;
    case NewsKind::done:
      line += fmt::format(", \"pipeline\": {}, \"ttft_ns\": {}", news.pipeline,
                          (news.end - news.arrival).count());
      break;
    case NewsKind::failed:
      if (!news.why.empty())
        line += fmt::format(", \"reason\": {}",
                            json(news.why).dump(-1, ' ', true, json::error_handler_t::replace));
      break;
    case NewsKind::cancelled: break;
  }
  return line + "}\n";
}

std::string error_line(std::string_view why) {
  return fmt::format("{{\"answer\": \"error\", \"reason\": {}}}\n",
                     json(why).dump(-1, ' ', true, json::error_handler_t::replace));
}

AnswerLine parse_answer_line(std::string_view text) {
  AnswerLine answer{.id = {}, .answer = "error"};
  const json line = json::parse(text, nullptr, false);
  const auto word = [&](const char* key) -> std::string {
    const json* const found = line.is_object() ? key_of(line, key) : nullptr;
    return found != nullptr && found->is_string() ? found->get<std::string>() : std::string{};
  };
  if (!line.is_object()) {
    answer.reason = fmt::format("\"{}\" is no answer", scenario::shown(text));
    return answer;
  }
  for (const char* const known : {"placed", "refused", "done", "cancelled", "failed"})
    if (word("answer") == known) answer.answer = known;
  answer.reason = word("reason");
  if (const json* const id = key_of(line, "id")) answer.id = id_of(*id).value_or("");
  if (const json* const ttft = key_of(line, "ttft_ns"))
    answer.ttft_ns = number_in(*ttft, 0, kLatestArrival.count()).value_or(0);
  return answer;
}

}  // namespace longhaul::prefill
