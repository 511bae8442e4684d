#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "report/link_load/held_resources.hpp"
#include "report/link_load/trace_network.hpp"
#include "scenario/reader/stored_text.hpp"
#include "trace/file/trace_file.hpp"
#include "trace/timeline/diagnostics.hpp"
#include "trace/validate/check_rows.hpp"

namespace longhaul::report {

/// Memory for the messages of an iteration; more wait in a file.
inline constexpr std::size_t kLinkCheckBytes = std::size_t{128} << 20;

/// No link, interface or port of a trace carries more than rate x time: for each of them and each
/// window of time within an iteration, the bytes that messages sent, those of collectives included.
/// Knows the rows of sends (ranks, size, start and end) and the scenario that the trace holds;
/// neither the plan, nor durations by plan, nor what an op waited for.
///
/// A message is forgiven a nanosecond, a measured one also the credit for lateness that the run
/// allowed (docs/runtime.md); a window the stated errors of the clocks. What cannot be checked is
/// said: never left out silently.
///
///     LinkCheck links{info};
///     trace::check_rows(rows, "measured", 0, findings, trace::kSortBytes, &links);
///     for (const std::string& problem : links.problems()) ...
class LinkCheck final : public trace::RowVisitor {
public:
  explicit LinkCheck(const trace::RunInfo& info, std::size_t memory_bytes = kLinkCheckBytes);
  /// Likewise, of a scenario that is known, as it was played: the text of `info` is left alone.
  LinkCheck(const trace::RunInfo& info, Scenario played);

  void begin(const char* group, std::int64_t slack_ns, const Timeline& names) override;
  void add(std::span<const TimelineRow> rows) override;
  void end() override;

  /// "measured: link west>east carries ... bytes from ... to ... ns"; a few, and how many more.
  [[nodiscard]] std::vector<std::string> problems() const { return problems_.texts(); }
  /// Lines for people: what was checked, and what was not.
  [[nodiscard]] std::vector<std::string> notes() const;
  /// {"resources", "messages", "not_checked": [...]}
  [[nodiscard]] nlohmann::ordered_json json() const;

private:
  [[nodiscard]] bool is_measured() const { return group_ == "measured"; }
  void begin_iteration(IterationKey key);
  void finish_iteration();
  void add_send(const TimelineRow& row);
  void judge(std::int32_t resource, const LoadWindow& window);
  /// The iteration whose links the rows have: of a prediction the one that it was made for.
  [[nodiscard]] int iteration_of_links(IterationKey key) const;
  /// nullptr where the rows were played, or planned, on other links than the scenario's.
  [[nodiscard]] TraceNetwork* network_of(IterationKey key);
  [[nodiscard]] Scenario scenario_at(int iteration) const;
  [[nodiscard]] std::vector<std::string> not_checked() const;
  /// The number of rows that are left out so.
  [[nodiscard]] std::int64_t& left_out(const std::string& what) {
    return left_out_[group_ + ": " + what];
  }

  std::string source_text_, unreadable_;
  std::optional<Scenario> known_;
  scenario::StoredOptions options_;
  double time_scale_ = 1;
  bool emulated_ = true;
  Duration credit_{};  ///< that measured ops may have been given at most

  std::string group_;
  std::int64_t slack_ns_ = 0;
  const Timeline* names_ = nullptr;
  std::optional<IterationKey> key_;
  /// Of this group, by the number of changes of links before.
  std::map<std::size_t, std::unique_ptr<TraceNetwork>> networks_;
  TraceNetwork* network_ = nullptr;
  const TraceNetwork::Way* way_ = nullptr;  ///< of the message before
  std::int64_t* left_out_of_way_ = nullptr;
  std::int32_t from_ = -1, to_ = -1;  ///< its ranks
  HeldResources held_;

  trace::Diagnostics problems_;
  std::map<std::string, std::int64_t> left_out_;  ///< rows, by what was not checked of them
  std::set<std::string> checked_;                 ///< names of resources
  std::int64_t messages_ = 0;
};

}  // namespace longhaul::report
