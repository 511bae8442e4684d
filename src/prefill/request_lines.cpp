#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/unit_text.hpp"
#include "prefill/requests.hpp"
#include "scenario/text/config_node.hpp"
#include "scenario/text/csv_lines.hpp"

namespace longhaul::prefill {
namespace {

using scenario::CsvLine;
using scenario::shown;

constexpr std::int64_t kMostPromptTokens = 1'000'000'000;
constexpr std::int64_t kLatest = kLatestArrival.count();
constexpr std::int64_t kNsOfMs = 1'000'000;
constexpr const char* kBlanks = " \r\n\t";

std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Nanoseconds since 1970 of "2023-11-16 18:17:03.9799600"; up to nine digits of a second.
std::optional<std::int64_t> timestamp(std::string_view text) {
  constexpr std::size_t kSeconds = 19;  // characters before the fraction
  if (text.size() < kSeconds || text[4] != '-' || text[7] != '-' || text[10] != ' ' ||
      text[13] != ':' || text[16] != ':')
    return std::nullopt;
  const auto part = [&](std::size_t begin, std::size_t count) {  // at most nine digits
    std::int64_t value = 0;
    for (const char digit : text.substr(begin, count)) {
      if (digit < '0' || digit > '9') return std::int64_t{-1};
      value = 10 * value + (digit - '0');
    }
    return value;
  };
  const std::array fields{part(0, 4),  part(5, 2),  part(8, 2),
                          part(11, 2), part(14, 2), part(17, 2)};
  if (std::ranges::min(fields) < 0 || fields[3] > 23 || fields[4] > 59 || fields[5] > 60)
    return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year{static_cast<int>(fields[0])},
                                         std::chrono::month{static_cast<unsigned>(fields[1])},
                                         std::chrono::day{static_cast<unsigned>(fields[2])}};
  if (!date.ok() || fields[0] < 1700 || fields[0] > 2200) return std::nullopt;
  std::int64_t fraction = 0;
  if (text.size() > kSeconds) {
    const std::size_t digits = text.size() - kSeconds - 1;
    if (text[kSeconds] != '.' || digits < 1 || digits > 9) return std::nullopt;
    fraction = part(kSeconds + 1, digits);
    if (fraction < 0) return std::nullopt;
    for (std::size_t i = digits; i < 9; ++i) fraction *= 10;
  }
  const std::int64_t days = std::chrono::sys_days{date}.time_since_epoch().count();
  const std::int64_t seconds = ((days * 24 + fields[3]) * 60 + fields[4]) * 60 + fields[5];
  return seconds * 1'000'000'000 + fraction;
}

std::size_t column_of(const CsvLine& names, std::string_view name) {
  const auto found = std::ranges::find(names.words, name);
  if (found == names.words.end())
    names.refuse(
        "there is no column \"{}\" (Azure's traces have TIMESTAMP, ContextTokens, "
        "GeneratedTokens). Name the columns in the first line.",
        name);
  return static_cast<std::size_t>(found - names.words.begin());
}

/// A whole number of a JSON line.
std::int64_t json_number(const CsvLine& line, const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) line.refuse("\"{}\" is missing. Give it.", key);
  if (!found->is_number_integer() ||
      (found->is_number_unsigned() &&
       found->get<std::uint64_t>() > static_cast<std::uint64_t>(kLatest)))
    line.refuse("\"{}\" = {} is no whole number in range. Give one.", key, shown(found->dump()));
  return found->get<std::int64_t>();
}

/// A text of a JSON line; empty where it is left out.
std::string json_text(const CsvLine& line, const nlohmann::json& json, const char* key,
                      const char* advice) {
  const auto named = json.find(key);
  if (named == json.end()) return {};
  if (!named->is_string()) line.refuse("\"{}\" is no text. {}.", key, advice);
  return named->get<std::string>();
}

/// What a line may say beside its arrival, its tokens and its model.
void add_optional_keys(const CsvLine& line, const nlohmann::json& json, Request& request) {
  request.region = json_text(line, json, "region", "Write it as \"azure:eastus\"");
  if (json.contains("takes_ns")) {
    const std::int64_t takes = json_number(line, json, "takes_ns");
    if (takes < 1) line.refuse("\"takes_ns\" = {} is no time. Give 1 or more.", takes);
    request.takes = Duration{takes};
  }
  const auto hashes = json.find("hash_ids");
  if (hashes == json.end()) return;
  if (!hashes->is_array()) line.refuse("\"hash_ids\" is no list. Write [46, 47, 48].");
  for (const nlohmann::json& hash : *hashes) {
    if (!hash.is_number_integer())
      line.refuse("\"hash_ids\" has {}, which is no whole number. Give one.", shown(hash.dump()));
    request.hash_ids.push_back(hash.get<std::int64_t>());
  }
}

}  // namespace

RequestParser::RequestParser(std::string name) : name_{std::move(name)}, line_{name_, 0, {}} {}

std::optional<Request> RequestParser::take(std::string_view text) {
  ++line_.number;
  if (text.ends_with('\r')) text.remove_suffix(1);
  if (format_ == Format::unknown) {
    const std::size_t begin = text.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) return std::nullopt;
    format_ = text[begin] == '{' ? Format::json_lines : Format::azure_names;
  }
  if (text.empty()) return std::nullopt;
  return format_ == Format::json_lines ? of_json(text) : of_azure(text);
}

std::optional<Request> RequestParser::of_azure(std::string_view text) {
  if (text.starts_with('#')) return std::nullopt;
  scenario::split_words(text, line_.words);
  const auto& words = line_.words;
  if (format_ == Format::azure_names) {
    time_column_ = column_of(line_, "TIMESTAMP");
    tokens_column_ = column_of(line_, "ContextTokens");
    columns_ = words.size();
    format_ = Format::azure;
    return std::nullopt;
  }
  if (words.size() != columns_)
    line_.refuse("{} values (the first line names {} columns). Give one for each.", words.size(),
                 columns_);
  const auto arrival = timestamp(words[time_column_]);
  if (!arrival)
    line_.refuse("\"{}\" is no time. Write it as 2023-11-16 18:17:03.9799600.",
                 shown(words[time_column_]));
  if (!first_) first_ = *arrival;
  if (*arrival > *first_ + kLatest)
    line_.refuse("the request arrives more than {} after the first one. Check its time.",
                 to_text(kLatestArrival));
  const auto tokens = whole(words[tokens_column_]);
  if (!tokens)
    line_.refuse("\"{}\" is no number of tokens (1 to {}). Give one.", shown(words[tokens_column_]),
                 kMostPromptTokens);
  return checked(*arrival - *first_, *tokens);
}

Request RequestParser::of_json(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object())
    line_.refuse(
        "\"{}\" is no JSON object (one stands in each line). Write {{\"timestamp\": 0, "
        "\"input_length\": 512}}, say.",
        shown(text));
  const std::int64_t arrival = json_number(line_, json, "timestamp");
  if (arrival < 0 || arrival > kLatest / kNsOfMs)
    line_.refuse("\"timestamp\" = {} is out of range (ms from 0 to {}). Check it.", arrival,
                 kLatest / kNsOfMs);
  Request request = checked(arrival * kNsOfMs, json_number(line_, json, "input_length"));
  request.model = json_text(line_, json, "model", "Name a [[prefill]]");
  add_optional_keys(line_, json, request);
  return request;
}

/// What both formats say, after the checks that they share.
Request RequestParser::checked(std::int64_t arrival, std::int64_t tokens) {
  if (tokens < 1 || tokens > kMostPromptTokens)
    line_.refuse("{} tokens are out of range (1 to {}). Leave the request out.", tokens,
                 kMostPromptTokens);
  if (Duration{arrival} < last_)
    line_.refuse("the request arrives before the one above it (time goes back). Sort the lines.");
  last_ = Duration{arrival};
  return {count_++, last_, tokens};
}

void RequestParser::finish() const {
  if (format_ == Format::unknown)
    fail("{}: it is empty (requests are Azure's CSV or JSON lines). Name another file.", name_);
  if (count_ == 0) fail("{}: it has no request. Add some, or name another file.", name_);
}

}  // namespace longhaul::prefill
