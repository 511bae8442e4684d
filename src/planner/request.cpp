#include "planner/request.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/suggest.hpp"

namespace longhaul::planner {
namespace {

struct SearchName {
  ScheduleSearch search;
  std::string_view name;
  bool shares_wan;
  std::string_view summary;
  [[nodiscard]] std::string full_name() const {
    return shares_wan ? schedule::shared_name(name) : std::string{name};
  }
};

constexpr std::array kSearches{
    SearchName{ScheduleSearch::best, "best", false,
               "the best of all static and dynamic ones that fit, improved by search"},
    SearchName{ScheduleSearch::shared_best, "best", true,
               "rows and WAN turns of Atlas' cells, searched together"},
    SearchName{ScheduleSearch::cross_ud_opt, "cross-ud-opt", false,
               "by a solver, from the best of one stage a device (CrossPipe 4.1)"},
    SearchName{ScheduleSearch::cross_wave_opt, "cross-wave-opt", false,
               "by a solver, from the best of two chunks in a V (CrossPipe 4.1)"},
};

struct Group {
  std::string_view name;
  bool is_static;
};
constexpr std::array kGroups{Group{"static", true}, Group{"dynamic", false}};
/// All schedules that share the WAN in time.
constexpr std::string_view kSharedGroup = "shared";

bool is_group(std::string_view word) {
  return word == kSharedGroup || std::ranges::find(kGroups, word, &Group::name) != kGroups.end();
}

std::vector<std::string> known_words() {
  std::vector<std::string> words;
  for (const Group& group : kGroups) words.emplace_back(group.name);
  words.emplace_back(kSharedGroup);
  for (const ScheduleName& schedule : schedule_names()) words.push_back(schedule.name);
  return words;
}

std::vector<std::string> names_that_may_share() {
  std::vector<std::string> names;
  for (const schedule::Generator& generator : schedule::generators())
    if (!generator.shares_wan) names.emplace_back(generator.name);
  for (const SearchName& search : kSearches)
    if (!search.shares_wan) names.emplace_back(search.name);
  return names;
}

[[noreturn]] void refuse_unknown(std::string_view name) {
  if (const auto shared = schedule::name_without_sharing(name))
    fail("There is no schedule \"{}\" that pipelines could share the WAN under (\"{}\"). {}",
         *shared, name, suggestion(*shared, names_that_may_share()));
  fail("There is no schedule \"{}\". {}", name, suggestion(name, known_words()));
}

bool is_search(std::string_view name) {
  return std::ranges::find(kSearches, name, &SearchName::full_name) != kSearches.end();
}

/// A name, or a file's. shared_name("mine.csv") is mine.csv in cells, unless there is a file of
/// this name; shared_name("best") is a search of its own.
ScheduleRequest parse_word(std::string_view word) {
  ScheduleRequest request;
  request.name = word;
  const bool is_file = word.ends_with(".csv");
  std::string_view alone = word;
  if (!(is_file ? std::filesystem::exists(word) : is_search(word))) {
    const auto shared = schedule::name_without_sharing(word);
    request.put_in_cells = shared.has_value();
    alone = shared.value_or(word);
  }
  if (is_file) {
    request.file = alone;
    return request;
  }
  request.generator = schedule::find_generator(alone);
  const auto* const search = std::ranges::find(kSearches, alone, &SearchName::full_name);
  if (search != kSearches.end()) request.search = search->search;
  const bool shares_already = (request.generator != nullptr && request.generator->shares_wan) ||
                              (search != kSearches.end() && search->shares_wan);
  if (!(request.generator != nullptr || request.search) || (request.put_in_cells && shares_already))
    refuse_unknown(word);
  return request;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

void append(std::vector<ScheduleRequest>& requests, ScheduleRequest request) {
  if (std::ranges::find(requests, request.name, &ScheduleRequest::name) != requests.end())
    fail("Schedule \"{}\" is named twice (a report has one line for each). Leave one out.",
         request.name);
  requests.push_back(std::move(request));
}

void append_of_group(std::vector<ScheduleRequest>& requests, const schedule::Generator& generator,
                     bool put_in_cells) {
  ScheduleRequest request;
  request.name = put_in_cells ? schedule::shared_name(generator.name) : std::string{generator.name};
  request.generator = &generator;
  request.put_in_cells = put_in_cells;
  request.from_group = true;
  append(requests, std::move(request));
}

void append_group(std::vector<ScheduleRequest>& requests, std::string_view word) {
  const auto group = std::ranges::find(kGroups, word, &Group::name);
  for (const schedule::Generator& generator : schedule::generators()) {
    if (word == kSharedGroup)
      append_of_group(requests, generator, !generator.shares_wan);
    else if (schedule::is_static(generator.knowledge) == group->is_static)
      append_of_group(requests, generator, false);
  }
}

void append_word(std::vector<ScheduleRequest>& requests, std::string_view word) {
  if (is_group(word)) return append_group(requests, word);
  append(requests, parse_word(word));
}

}  // namespace

bool ScheduleRequest::shares_wan() const {
  return put_in_cells || search == ScheduleSearch::shared_best ||
         (generator != nullptr && generator->shares_wan);
}

bool ScheduleRequest::has_timetable() const {
  return generator != nullptr && generator->timetable != nullptr && !put_in_cells;
}

const std::vector<ScheduleName>& schedule_names() {
  static const std::vector<ScheduleName> kNames = [] {
    std::vector<ScheduleName> names;
    for (const schedule::Generator& generator : schedule::generators())
      names.push_back({std::string{generator.name}, std::string{generator.summary}});
    for (const schedule::Generator& generator : schedule::stream_generators())
      names.push_back({std::string{generator.name}, std::string{generator.summary}});
    for (const SearchName& search : kSearches)
      names.push_back({search.full_name(), std::string{search.summary}});
    return names;
  }();
  return kNames;
}

ScheduleRequest parse_schedule(std::string_view name) {
  if (name.ends_with(".csv")) refuse_unknown(name);
  return parse_word(name);
}

std::vector<ScheduleRequest> parse_schedules(std::string_view list) {
  std::vector<ScheduleRequest> requests;
  for (std::string_view rest = list;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view word = trimmed(rest.substr(0, comma));
    if (word.empty())
      fail("The list of schedules \"{}\" has an empty name. Known: {}, or a file.csv.", list,
           fmt::join(known_words(), ", "));
    append_word(requests, word);
    if (comma == std::string_view::npos) return requests;
    rest.remove_prefix(comma + 1);
  }
}

std::vector<ScheduleRequest> parse_schedule_option(std::string_view list) {
  if (!list.empty()) return parse_schedules(list);
  std::vector<std::string> names;
  for (const ScheduleName& known : schedule_names()) names.push_back(known.name);
  fail(
      "--schedule is missing (the command needs one). Name one or more of static, dynamic, {}, "
      "or a .csv file.",
      fmt::join(names, ", "));
}

ScheduleRequest parse_single_schedule_option(std::string_view name) {
  if (is_group(name) || name.find(',') != std::string_view::npos)
    fail("--schedule: \"{}\" names several (this command takes one). Name one of them.", name);
  return std::move(parse_schedule_option(name).front());
}

}  // namespace longhaul::planner
