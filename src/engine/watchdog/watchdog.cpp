#include "engine/watchdog/watchdog.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/unit_text.hpp"
#include "comm/group/session.hpp"
#include "plan/plan.hpp"

namespace longhaul::engine {
namespace {

/// Of ranks of this process: those that have a farewell to say, and whether one of them ends it.
std::atomic<int> open_farewells = 0;
std::atomic<bool> is_ending = false;

/// The process that started the ranks; nullopt: this one was started by hand, and whose child it is
/// means nothing.
std::optional<int> launcher_of_this_process() {
  return comm::was_launched() ? std::optional{getppid()} : std::nullopt;
}

constexpr int kFailed = 3;

/// "link west>east", by its datacenters; a collective has several.
std::string link_name(const Plan& plan, OpId id) {
  const Op& op = plan.op(id);
  if (op.kind == OpKind::collective) return "a link of its ring";
  const auto name = [&](Rank rank) {
    return plan.datacenters[index(plan.ranks[index(rank)].datacenter)];
  };
  return fmt::format("link {}>{}", name(plan.rank_of(id)), name(op.peer));
}

/// Ranks that are threads of this process say theirs as they look around; one that computes does
/// not.
void wait_for_farewells() {
  using namespace std::chrono_literals;
  for (int i = 0; i < 30 && open_farewells > 0; ++i) std::this_thread::sleep_for(10ms);
}

}  // namespace

Watchdog::Watchdog(const comm::HostRanks& host_ranks, const WatchdogOptions& options)
    : host_ranks_{host_ranks},
      options_{options},
      launcher_{launcher_of_this_process()},
      signals_{host_ranks_.mine().doorbell, options.drains},
      last_progress_{now()} {}

Watchdog::~Watchdog() { before_end({}); }

void Watchdog::before_end(std::function<void()> farewell) {
  open_farewells += static_cast<int>(static_cast<bool>(farewell)) -
                    static_cast<int>(static_cast<bool>(farewell_));
  farewell_ = std::move(farewell);
}

void Watchdog::drain_on_signal(Duration within) {
  drain_within_ = within;
  signals_.take_first_as_drain();
}

void Watchdog::watch(const Plan* plan, Duration longest_wait) {
  plan_ = plan;
  longest_wait_ = longest_wait;
  last_progress_ = now();
}

TimePoint Watchdog::expires(TimePoint next_timer) const {
  const TimePoint from = std::max(last_progress_, next_timer == kNever ? TimePoint{} : next_timer);
  return from + longest_wait_ + options_.deadline;
}

void Watchdog::check_signal() {
  if (launcher_ && getppid() != *launcher_)
    end(fmt::format("rank {} has lost its launcher (mpirun or its like was killed)",
                    index(host_ranks_.self())),
        {kFailed, Others::end_too});
  if (const int signal = signals_.told_to_end(); signal != 0) end_as_told(signal, "");
  if (is_ending) end("another rank of this process ends it", {kFailed});
  if (!drain_within_ || !is_told_to_drain()) return;
  const TimePoint at = now();
  if (!drains_since_) drains_since_ = at;
  if (at - *drains_since_ > *drain_within_)
    end_as_told(SIGTERM, fmt::format(", and what runs has not ended within {}",
                                     longhaul::to_text(*drain_within_)));
}

void Watchdog::end_as_told(int signal, const std::string& more) {
  end(fmt::format("rank {} was told to end (signal {}, {}){}", index(host_ranks_.self()), signal,
                  name_of_signal(signal), more),
      {128 + signal, Others::end_too});
}

void Watchdog::end_drained() { end_as_told(SIGTERM, ""); }

void Watchdog::check_wait(Duration waited) {
  using namespace std::chrono_literals;
  check_signal();
  const Duration limit = options_.deadline + patience_;
  const Duration grace = options_.deadline + 5s;
  if (waited <= std::min(limit, grace)) return;
  // Patience is for ranks that are at work; whether one is dead or stopped shows at once.
  if (waited <= limit && now() < next_look_) return;
  next_look_ = now() + 500ms;
  if (waited <= limit && failed_ranks().empty()) return;
  end(fmt::format("rank {} has waited {} for the others, outside an iteration",
                  index(host_ranks_.self()), longhaul::to_text(waited)),
      {kFailed});
}

void Watchdog::check(TimePoint at, TimePoint next_timer) {
  check_signal();
  if (at <= expires(next_timer)) return;
  end(fmt::format("rank {} has made no progress for {} (deadline {} beyond the plan's longest "
                  "wait of {})",
                  index(host_ranks_.self()), longhaul::to_text(at - last_progress_),
                  longhaul::to_text(options_.deadline), longhaul::to_text(longest_wait_)),
      {kFailed});
}

void Watchdog::check_outage(OpId op, Duration held, Duration left) {
  if (held <= options_.deadline) return;
  end(fmt::format("an outage of {} has held {} for {} and goes on for {} (longer than the deadline "
                  "of {})",
                  plan_ == nullptr ? "a link" : link_name(*plan_, op),
                  text_of(static_cast<std::uint32_t>(op)), longhaul::to_text(held),
                  longhaul::to_text(left), longhaul::to_text(options_.deadline)),
      {kFailed});
}

void Watchdog::fail(const std::string& cause) {
  end(fmt::format("rank {}: {}", index(host_ranks_.self()), cause), {kFailed});
}

void Watchdog::end(const std::string& cause, Ending ending) {
  using namespace std::chrono_literals;
  const bool is_reporter = host_ranks_.claim_report();
  is_ending = true;  // now that no other rank of this process can report itself
  if (farewell_) {
    farewell_();
    before_end({});
  }
  if (!is_reporter) {
    std::this_thread::sleep_for(3s);  // the reporter ends us
    std::_Exit(ending.code);
  }
  std::string text = report(cause);
  if (ending.others == Others::end_too && kept_) text += kept_();
  if (!failed_ranks().empty()) ending.code = kFailed;  // mpirun tells the others of it by SIGTERM
  keep_report(text);
  std::signal(SIGPIPE, SIG_IGN);  // no reader may be left
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
  wait_for_farewells();
  if (ending.others == Others::end_too) std::_Exit(ending.code);
  std::signal(SIGALRM, SIG_DFL);
  alarm(5);  // should the launcher not answer
  comm::abort_run(ending.code);
}

/// Best effort: the run ends either way.
void Watchdog::keep_report(const std::string& text) const {
  if (report_file_.empty()) return;
  const int file = open(report_file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return;
  if (write(file, text.data(), text.size()) < 0) unlink(report_file_.c_str());
  close(file);
}

Duration longest_wait(const Plan& plan, const OpTimes& predicted, Rank rank) {
  std::vector<Duration> events{Duration::zero()};
  const OpRange mine = ops_of_rank(plan, rank);
  for (std::uint32_t i = mine.first; i < mine.first + mine.count; ++i) {
    events.push_back(predicted[i].start);
    events.push_back(predicted[i].end);
  }
  events.push_back(std::ranges::max_element(predicted, {}, &OpTime::end)->end);
  std::ranges::sort(events);
  Duration longest{};
  for (std::size_t i = 1; i < events.size(); ++i)
    longest = std::max(longest, events[i] - events[i - 1]);
  return longest;
}

}  // namespace longhaul::engine
