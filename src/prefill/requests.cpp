#include "prefill/requests.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/random.hpp"
#include "base/unit_text.hpp"
#include "scenario/text/config_node.hpp"
#include "scenario/text/csv_lines.hpp"

namespace longhaul::prefill {
namespace {

using scenario::CsvLine;
using scenario::shown;

constexpr std::int64_t kMostPromptTokens = 1'000'000'000;
constexpr std::int64_t kLatest = std::int64_t{1} << 60;  // ns: 36 years

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
  const auto part = [&](std::size_t begin, std::size_t count) -> std::int64_t {
    const std::string_view digits = text.substr(begin, count);
    if (digits.find_first_not_of("0123456789") != std::string_view::npos) return -1;
    return whole(digits).value_or(-1);
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

/// Adds a request after checks that both formats share.
void add_request(const CsvLine& line, std::int64_t arrival, std::int64_t tokens, std::string model,
                 std::vector<Request>& requests) {
  if (tokens < 1 || tokens > kMostPromptTokens)
    line.refuse("{} tokens are out of range (1 to {}). Leave the request out.", tokens,
                kMostPromptTokens);
  if (!requests.empty() && Duration{arrival} < requests.back().arrival)
    line.refuse("the request arrives before the one above it (time goes back). Sort the lines.");
  requests.push_back({std::ssize(requests), Duration{arrival}, tokens, std::move(model)});
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

std::vector<Request> parse_azure(std::string_view text, const std::string& name) {
  std::vector<Request> requests;
  std::size_t columns = 0, time_column = 0, tokens_column = 0;
  std::optional<std::int64_t> first;
  scenario::each_csv_line(text, name, [&](const CsvLine& line) {
    if (columns == 0) {
      time_column = column_of(line, "TIMESTAMP");
      tokens_column = column_of(line, "ContextTokens");
      columns = line.words.size();
      return;
    }
    if (line.words.size() != columns)
      line.refuse("{} values (the first line names {} columns). Give one for each.",
                  line.words.size(), columns);
    const auto arrival = timestamp(line.words[time_column]);
    if (!arrival)
      line.refuse("\"{}\" is no time. Write it as 2023-11-16 18:17:03.9799600.",
                  shown(line.words[time_column]));
    if (!first) first = *arrival;
    if (*arrival > *first + kLatest)
      line.refuse("the request arrives more than {} after the first one. Check its time.",
                  to_text(Duration{kLatest}));
    const auto tokens = whole(line.words[tokens_column]);
    if (!tokens)
      line.refuse("\"{}\" is no number of tokens (1 to {}). Give one.",
                  shown(line.words[tokens_column]), kMostPromptTokens);
    add_request(line, *arrival - *first, *tokens, {}, requests);
  });
  return requests;
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

std::vector<Request> parse_json_lines(std::string_view text, const std::string& name) {
  constexpr std::int64_t kMs = 1'000'000;
  std::vector<Request> requests;
  CsvLine line{name, 0, {}};
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view words = text.substr(begin, end - begin);
    begin = end + 1;
    ++line.number;
    if (words.ends_with('\r')) words.remove_suffix(1);
    if (words.empty()) continue;
    const nlohmann::json json = nlohmann::json::parse(words, nullptr, false);
    if (!json.is_object())
      line.refuse(
          "\"{}\" is no JSON object (one stands in each line). Write {{\"timestamp\": 0, "
          "\"input_length\": 512}}, say.",
          shown(words));
    const std::int64_t arrival = json_number(line, json, "timestamp");
    if (arrival < 0 || arrival > kLatest / kMs)
      line.refuse("\"timestamp\" = {} is out of range (ms from 0 to {}). Check it.", arrival,
                  kLatest / kMs);
    add_request(line, arrival * kMs, json_number(line, json, "input_length"),
                json_text(line, json, "model", "Name a [[prefill]]"), requests);
    add_optional_keys(line, json, requests.back());
  }
  return requests;
}

/// Copies 1 to N - 1 shifted around the trace, each by its own seeded time.
void add_copies(std::vector<Request>& requests, int copies, std::uint64_t seed) {
  const std::vector<Request> file = requests;
  if (file.empty()) return;
  const std::int64_t span = std::max<std::int64_t>(1, file.back().arrival.count());
  const std::int64_t ids = std::ranges::max(file, {}, &Request::id).id + 1;
  for (int copy = 1; copy < copies; ++copy) {
    Random random{derived_seed(seed, 0x636f7079, static_cast<std::uint64_t>(copy))};
    const std::int64_t shift = random.between(0, span - 1);
    for (Request request : file) {
      request.id += copy * ids;
      request.arrival = Duration{(request.arrival.count() + shift) % span};
      requests.push_back(std::move(request));
    }
  }
}

/// So many nanoseconds. Throws Error that names the option where that is out of range.
Duration arrival_of(const Request& request, double ns, const char* option) {
  if (!(ns <= static_cast<double>(kLatest)))
    fail("{}: request {} would arrive after {:.3g} s, beyond {}. Give a larger rate.", option,
         request.id, ns / 1e9, to_text(Duration{kLatest}));
  return Duration{std::llround(ns)};
}

/// Exponential times between arrivals, in order of the requests.
void make_poisson(std::vector<Request>& requests, double rate, std::uint64_t seed) {
  Random random{derived_seed(seed, 0x706f6973)};
  double seconds = 0;
  for (Request& request : requests) {
    const double draw = random.uniform();
    seconds -= std::log1p(-draw) / rate;
    request.arrival = arrival_of(request, seconds * 1e9, "--poisson");
  }
}

}  // namespace

std::vector<Request> parse_requests(std::string_view text, const std::string& name) {
  const std::size_t begin = text.find_first_not_of(" \r\n\t");
  if (begin == std::string_view::npos)
    fail("{}: it is empty (requests are Azure's CSV or JSON lines). Name another file.", name);
  std::vector<Request> requests =
      text[begin] == '{' ? parse_json_lines(text, name) : parse_azure(text, name);
  if (requests.empty()) fail("{}: it has no request. Add some, or name another file.", name);
  return requests;
}

std::vector<Request> offered_load(std::vector<Request> requests, const LoadOptions& options) {
  const Duration from = options.window_from.value_or(Duration{});
  std::erase_if(requests, [&](const Request& request) {
    return request.arrival < from || (options.window_to && request.arrival >= *options.window_to);
  });
  for (Request& request : requests) request.arrival -= from;
  if (options.copies > 1) add_copies(requests, options.copies, options.seed);
  if (options.rate != 1)
    for (Request& request : requests)
      request.arrival = arrival_of(
          request, static_cast<double>(request.arrival.count()) * (1 / options.rate), "--rate");
  std::ranges::stable_sort(requests, [](const Request& a, const Request& b) {
    return std::pair{a.arrival, a.id} < std::pair{b.arrival, b.id};
  });
  if (options.poisson) make_poisson(requests, *options.poisson, options.seed);
  return requests;
}

}  // namespace longhaul::prefill
