#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/group/host_ranks.hpp"
#include "engine/watchdog/op_events.hpp"
#include "engine/watchdog/process_signals.hpp"
#include "plan/plan.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::engine {

struct WatchdogOptions {
  /// Longest time without progress, in addition to the waits that a rank's plan allows.
  Duration deadline = std::chrono::seconds{10};
  bool drains = false;  ///< it will call drain_on_signal(); until then a signal ends it
};

/// Ends the run when it hangs or is told to end: one rank of a host reports why, and for every rank
/// of the host what it did last; then all ranks end: with 128 + the signal, or with exit code 3.
class Watchdog {
public:
  /// Takes signals over for this process (ProcessSignals).
  Watchdog(const comm::HostRanks& host_ranks, const WatchdogOptions& options);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// The plan that runs now (nullptr: none), for the report and for how long a rank may wait:
  /// `longest_wait` is the longest that the plan leaves this rank without an event of its own.
  void watch(const Plan* plan, Duration longest_wait);

  /// A file for the report beside stderr, which leads through the launcher and ends with it.
  void report_also_to(std::filesystem::path file) { report_file_ = std::move(file); }

  /// Lines on what stays of a run that a signal, or the loss of its launcher, ends.
  void tell_kept(std::function<std::string()> kept) { kept_ = std::move(kept); }

  /// What this rank does at last when the run ends by its watchdog, or that of another rank in its
  /// process, whatever the reason; empty: nothing. On this rank's thread, in a look around.
  void before_end(std::function<void()> farewell);

  /// Ranks of this host that are dead; where none is, those that are stopped.
  [[nodiscard]] std::vector<Rank> gone_ranks() const;

  /// From now on the first order to end that may be one to drain (ProcessSignals) ends nothing: the
  /// caller heeds is_told_to_drain(), and says so by drained(), within so long; later, or with a
  /// second order, the run ends as ever. Needs WatchdogOptions::drains.
  void drain_on_signal(Duration within);
  [[nodiscard]] bool is_told_to_drain() const { return signals_.told_to_drain(); }
  /// What was to end has: writing what was done has no limit of its own.
  void drained() {
    drain_within_.reset();
    drains_since_.reset();
  }
  /// Ends a run that was told to drain and has done nothing that could be kept.
  [[noreturn]] void end_drained();

  /// The events of the plan's ops, for the report (nullptr: not known).
  void follow(const OpEvents* events) { events_ = events; }

  /// Time beyond the deadline that a rank may wait for others outside iterations: seconds between
  /// them, more while rank 0 reads, searches or writes (the default). A rank of this host that is
  /// dead or stopped ends the run 5 s after the deadline, however patient we are.
  void set_patience(Duration patience) { patience_ = patience; }
  [[nodiscard]] Duration patience() const { return patience_; }

  /// Call whenever this rank looks around. Ends the run if a signal came, or if neither progress
  /// nor a timer of ours (`next_timer`; kNever: none) is within the deadline.
  void check(TimePoint at, TimePoint next_timer);
  /// Ends the run if an outage of the weather has held this op of ours for longer than the
  /// deadline; it goes on for `left`.
  void check_outage(OpId op, Duration held, Duration left);
  /// Ends the run with the report: this rank cannot go on, for a reason of its own.
  [[noreturn]] void fail(const std::string& cause);
  /// Text for an op of the plan that is watched, for messages.
  [[nodiscard]] std::string text_of(OpId op) const {
    return text_of(static_cast<std::uint32_t>(op));
  }
  /// The same in an operation outside an iteration, that this rank has waited in for so long.
  void check_wait(Duration waited);
  /// When check() would end the run, should nothing happen until then.
  [[nodiscard]] TimePoint expires(TimePoint next_timer) const;
  /// This rank got on.
  void progress(TimePoint at) { last_progress_ = at; }

private:
  /// After a signal its sender ends the other ranks, too.
  enum class Others { aborted_by_us, end_too };
  struct Ending {
    int code;
    Others others = Others::aborted_by_us;
  };

  void check_signal();
  [[noreturn]] void end(const std::string& cause, Ending ending);
  [[noreturn]] void end_as_told(int signal, const std::string& more);
  [[nodiscard]] std::string report(const std::string& cause) const;
  /// "rank 5 is gone (killed or crashed), last started: ...", or stopped; "" where all run.
  [[nodiscard]] std::string failed_ranks() const;
  [[nodiscard]] std::string line_of(Rank rank, TimePoint at) const;
  [[nodiscard]] std::string last_of(const comm::RankStatus& slot) const;
  [[nodiscard]] std::string text_of(std::uint32_t op) const;
  /// A line for each rank of another host that holds a link which is leased here.
  [[nodiscard]] std::string leased_away() const;
  /// ", held up by ..." where what it waits for waits in turn.
  [[nodiscard]] std::string cause_of(std::uint32_t waits_for) const;

  void keep_report(const std::string& text) const;

  const comm::HostRanks& host_ranks_;
  WatchdogOptions options_;
  std::optional<int> launcher_;  ///< the process that started the ranks
  ProcessSignals signals_;
  std::optional<Duration> drain_within_;
  std::optional<TimePoint> drains_since_;
  std::function<void()> farewell_;
  std::filesystem::path report_file_;
  std::function<std::string()> kept_;
  const Plan* plan_ = nullptr;
  const OpEvents* events_ = nullptr;
  Duration longest_wait_{};
  Duration patience_ = std::chrono::seconds{120};
  TimePoint last_progress_{};
  TimePoint next_look_{};  ///< at the others' processes, in a long wait
};

/// The longest time that a rank spends in an iteration without one of its own ops starting or
/// ending, by predicted times; from the start of the iteration and to its end, too.
[[nodiscard]] Duration longest_wait(const Plan& plan, const OpTimes& predicted, Rank rank);

}  // namespace longhaul::engine
