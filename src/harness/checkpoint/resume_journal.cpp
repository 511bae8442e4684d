#include "harness/checkpoint/resume_journal.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "base/error.hpp"
#include "report/watched_run.hpp"

namespace longhaul::harness {
namespace {

/// Locks the file; false where another process holds it. Where the file system knows no locks,
/// files that are created exclusively still keep two runs from mixing.
bool lock(int descriptor) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (fcntl(descriptor, F_OFD_SETLK, &whole) == 0) return true;
  return errno != EAGAIN && errno != EACCES;
}

[[noreturn]] void fail_writing(const std::filesystem::path& file) {
  throw Error{fmt::format("cannot write {} ({}). Make room, and run again with --resume.",
                          file.string(), std::strerror(errno)),
              ExitCode::run_failed};
}

using Json = nlohmann::json;

struct Count {
  const char* name;
  std::int64_t engine::Checks::*member;
};
constexpr Count kCounts[] = {{"messages", &engine::Checks::messages},
                             {"relayed", &engine::Checks::relayed},
                             {"relayed_bytes", &engine::Checks::relayed_bytes},
                             {"blocks", &engine::Checks::blocks},
                             {"lost", &engine::Checks::lost},
                             {"mixed_up", &engine::Checks::mixed_up},
                             {"corrupted", &engine::Checks::corrupted},
                             {"out_of_order", &engine::Checks::out_of_order},
                             {"unclaimed", &engine::Checks::unclaimed},
                             {"wrong_tensors", &engine::Checks::wrong_tensors}};

engine::IterationResult sums_of(const Json& entry) {
  engine::IterationResult sums;
  for (const Count& count : kCounts) sums.checks.*count.member = entry.value(count.name, 0LL);
  sums.checks.of_leg = entry.value("of_leg", sums.checks.of_leg);
  sums.lease = {entry.value("leases", 0LL),
                Duration{entry.value("lease_total_ns", 0LL)},
                Duration{entry.value("lease_longest_ns", 0LL)},
                entry.value("leases_by_words", 0LL),
                Duration{entry.value("lease_words_total_ns", 0LL)},
                Duration{entry.value("lease_words_longest_ns", 0LL)}};
  sums.lateness = {entry.value("blocks_seen", 0LL), Duration{entry.value("late_total_ns", 0LL)},
                   Duration{entry.value("late_longest_ns", 0LL)}};
  sums.credit = {entry.value("credit_ops", 0LL), entry.value("credited", 0LL),
                 Duration{entry.value("credit_total_ns", 0LL)},
                 Duration{entry.value("credit_largest_ns", 0LL)}};
  sums.transfers = entry.value("transfers", 0LL);
  sums.transfer_total = Duration{entry.value("transfer_total_ns", 0LL)};
  sums.transfer_longest = Duration{entry.value("transfer_longest_ns", 0LL)};
  return sums;
}

/// Times of all ops of a plan; nullopt: the rows of an iteration do not make it up.
std::optional<OpTimes> times_of(std::span<const TimelineRow> rows, const Plan& plan) {
  if (rows.size() != plan.ops.size()) return std::nullopt;
  OpTimes times;
  for (const TimelineRow& row : rows) {
    if (std::cmp_not_equal(row.op, times.size())) return std::nullopt;
    times.push_back(
        {Duration{row.ready_ns}, Duration{row.start_ns}, Duration{row.end_ns},
         row.bound_by < 0 ? kNone<OpId> : OpId{static_cast<std::uint32_t>(row.bound_by)},
         row.bound_kind});
  }
  return times;
}

/// The rows of each iteration: they lie together.
std::map<IterationKey, std::span<const TimelineRow>> by_iteration(
    std::span<const TimelineRow> rows) {
  std::map<IterationKey, std::span<const TimelineRow>> parts;
  std::size_t first = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool last = i + 1 == rows.size() || rows[i + 1].iteration != rows[i].iteration ||
                      rows[i + 1].schedule != rows[i].schedule;
    if (!last) continue;
    parts[{rows[i].schedule, rows[i].iteration}] = rows.subspan(first, i + 1 - first);
    first = i + 1;
  }
  return parts;
}

/// Do the checks of an iteration stand in an entry, and not a part of them?
bool holds_checks(const Json& entry) {
  return std::ranges::all_of(kCounts, [&](const Count& count) {
    const auto at = entry.find(count.name);
    return at != entry.end() && at->is_number_integer();
  });
}

/// The checks of each schedule's iterations, warm-up included, by position and iteration; of one
/// that was done again the last.
using ChecksByIteration = std::map<std::pair<int, int>, Json>;

ChecksByIteration checks_in(const std::vector<Json>& journal) {
  ChecksByIteration checks;
  for (const Json& entry : journal)
    if (entry.contains("schedule") && holds_checks(entry))
      checks[{entry.value("schedule", -1), entry.value("iteration", 0)}] = entry;
  return checks;
}

/// Is the journal there from its beginning on: the first part's entry, the schedule's warm-up?
bool begins_whole(const std::vector<Json>& journal, const ChecksByIteration& checks, int position,
                  int warmup) {
  if (std::ranges::none_of(journal, [](const Json& entry) { return entry.contains("part"); }))
    return false;
  for (int i = -warmup; i < 0; ++i)
    if (!checks.contains({position, i})) return false;
  return true;
}

/// Warm-up is done again where anything is left to run: then only what went wrong in it counts.
bool counts(const Json& entry, const EarlierIterations& earlier, bool has_ended) {
  const int iteration = entry.value("iteration", 0);
  if (iteration >= 0) return iteration < earlier.count;
  return has_ended || sums_of(entry).checks.wrong() > 0;
}

}  // namespace

Journal::Journal(const std::filesystem::path& directory) : file_{directory / report::kJournalName} {
  descriptor_ = open(file_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor_ < 0)
    fail("cannot open {} ({}). Give --out a directory that can be written.", file_.string(),
         std::strerror(errno));
  if (lock(descriptor_)) return;
  close(descriptor_);
  fail(
      "another run is going on in {} (results are never mixed). Wait for it, or give --out another "
      "directory.",
      directory.string());
}

Journal::~Journal() { close(descriptor_); }

std::vector<nlohmann::json> Journal::read() const { return report::read_journal(file_); }

void Journal::add(const nlohmann::json& entry) {
  // In front, too: the line before may have been cut short.
  const std::string line = fmt::format("\n{}\n", entry.dump());
  std::size_t written = 0;
  while (written < line.size()) {
    const ssize_t count = write(descriptor_, line.data() + written, line.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail_writing(file_);
    written += static_cast<std::size_t>(count);
  }
  // Pipes and some file systems of networks cannot.
  if (fdatasync(descriptor_) != 0 && errno != EINVAL && errno != ENOTSUP) fail_writing(file_);
}

void Journal::remove() { unlink(file_.c_str()); }

Json sums_entry(int position, int iteration, const engine::IterationResult& sums) {
  Json entry = {{"schedule", position}, {"iteration", iteration}, {"of_leg", sums.checks.of_leg}};
  for (const Count& count : kCounts) entry[count.name] = sums.checks.*count.member;
  entry["weather_age_ns"] = sums.weather_age.count();
  entry["leases"] = sums.lease.leases;
  entry["lease_total_ns"] = sums.lease.total.count();
  entry["lease_longest_ns"] = sums.lease.longest.count();
  entry["leases_by_words"] = sums.lease.by_words;
  entry["lease_words_total_ns"] = sums.lease.words_total.count();
  entry["lease_words_longest_ns"] = sums.lease.words_longest.count();
  entry["blocks_seen"] = sums.lateness.blocks;
  entry["late_total_ns"] = sums.lateness.total.count();
  entry["late_longest_ns"] = sums.lateness.longest.count();
  entry["credit_ops"] = sums.credit.ops;
  entry["credited"] = sums.credit.credited;
  entry["credit_total_ns"] = sums.credit.total.count();
  entry["credit_largest_ns"] = sums.credit.largest.count();
  entry["credit_lag_ns"] = sums.end.lag().count();
  entry["transfers"] = sums.transfers;
  entry["transfer_total_ns"] = sums.transfer_total.count();
  entry["transfer_longest_ns"] = sums.transfer_longest.count();
  return entry;
}

Json end_entry(int position, const PipelineMeasurement& measurement) {
  return {{"end_of_schedule", position},
          {"unclaimed", measurement.checks.unclaimed},
          {"wrong_messages", measurement.wrong_messages}};
}

std::vector<EarlierIterations> read_earlier(const Timeline& measured, const PipelineInput& input,
                                            const std::vector<Json>& journal) {
  const auto parts = by_iteration(measured.rows);
  const ChecksByIteration checks = checks_in(journal);
  std::vector<EarlierIterations> all(input.schedules.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const int position = static_cast<int>(i);
    if (!begins_whole(journal, checks, position, input.warmup)) continue;
    const Plan& plan = input.schedules[i].plan;
    for (int& count = all[i].count; checks.contains({position, count}); ++count) {
      const auto rows = parts.find({position, count});
      if (rows == parts.end()) break;
      const auto times = times_of(rows->second, plan);
      if (!times) break;
      all[i].outcomes.push_back(outcome_of(plan, *times, count, input.scenario));
      all[i].outcomes.back().credit_lag =
          Duration{checks.at({position, count}).value("credit_lag_ns", 0LL)};
      all[i].outcomes.back().exposure = exposure_of(input.schedules[i], *times);
    }
  }
  std::set<int> ended;
  for (const Json& entry : journal) {
    const int position = entry.value("end_of_schedule", -1);
    if (position < 0 || std::cmp_greater_equal(position, all.size())) continue;
    EarlierIterations& of = all[static_cast<std::size_t>(position)];
    if (!parts.contains({position, of.count})) ended.insert(position);  // else some are done again
    of.sums.checks.unclaimed = entry.value("unclaimed", 0LL);
    of.wrong_messages = entry.value("wrong_messages", of.wrong_messages);
  }
  for (const auto& [key, entry] : checks) {
    const auto& [position, iteration] = key;
    if (position < 0 || std::cmp_greater_equal(position, all.size())) continue;
    EarlierIterations& of = all[static_cast<std::size_t>(position)];
    if (!counts(entry, of, ended.contains(position))) continue;
    add(of.sums, sums_of(entry));
    if (iteration >= 0)  // ascending, as the map is
      of.weather_ages.emplace_back(entry.value("weather_age_ns", 0LL));
  }
  return all;
}

}  // namespace longhaul::harness
