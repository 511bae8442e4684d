#include "harness/checkpoint/run_segments.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/index.hpp"
#include "trace/file/segment.hpp"

namespace longhaul::harness {
namespace {

bool is_temporary(const std::string& name) {
  return name.starts_with('.') && name.ends_with(".tmp");
}

bool is_segment(const std::string& name) {
  return name.starts_with("segment.") && name.ends_with(".h5");
}

bool is_report(const std::string& name) {
  return name.starts_with("report.") && name.ends_with(".txt");
}

/// Of an iteration that is not done again.
bool is_gone_on_from(const std::string& name, const std::vector<int>& finished) {
  const auto segment = trace::parse_segment_name(name);
  if (!segment || !std::cmp_less(segment->key.schedule, finished.size())) return false;
  return segment->key.iteration < finished[to_size(segment->key.schedule)];
}

/// A new directory that no run had before.
std::filesystem::path make_aside(const std::filesystem::path& directory) {
  for (int number = 1;; ++number) {
    std::filesystem::path aside = directory / fmt::format("unfinished-{}", number);
    if (std::filesystem::create_directory(aside)) return aside;
  }
}

}  // namespace

void set_unfinished_aside(const std::filesystem::path& directory,
                          const std::vector<int>& finished) {
  std::vector<std::filesystem::path> half;
  for (const auto& entry : std::filesystem::directory_iterator{directory}) {
    const std::string name = entry.path().filename().string();
    const bool lost = is_segment(name) && !is_gone_on_from(name, finished);
    const bool is_of_a_part = name == "trace.h5" || name == "record.json" || name == "report.html";
    if (is_temporary(name) || is_of_a_part || is_report(name) || lost) half.push_back(entry.path());
  }
  if (half.empty()) return;
  const std::filesystem::path aside = make_aside(directory);
  for (const auto& file : half) std::filesystem::rename(file, aside / file.filename());
}

void remove_segments(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> merged;
  for (const auto& entry : std::filesystem::directory_iterator{directory}) {
    const std::string name = entry.path().filename().string();
    if (is_segment(name) || name == "run.h5") merged.push_back(entry.path());
  }
  for (const auto& file : merged) std::filesystem::remove(file);
}

std::vector<int> count_finished(const std::filesystem::path& directory, int ranks,
                                std::size_t schedules) {
  std::vector<int> counts(schedules, 0);
  for (const IterationKey& key : trace::finished_iterations(directory, ranks))
    if (std::cmp_less(key.schedule, schedules) && counts[to_size(key.schedule)] == key.iteration)
      ++counts[to_size(key.schedule)];
  return counts;
}

}  // namespace longhaul::harness
