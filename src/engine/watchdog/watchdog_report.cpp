// The watchdog's report when a run ends: which ranks failed, and what every rank did last.
#include <algorithm>
#include <fstream>

#include <fmt/format.h>

#include "base/unit_text.hpp"
#include "engine/watchdog/watchdog.hpp"
#include "plan/plan.hpp"

namespace longhaul::engine {
namespace {

/// "gone", "stopped" or "" (as it should be, or not there yet).
const char* state_of_process(int pid) {
  if (pid == 0) return "";
  std::ifstream file{fmt::format("/proc/{}/stat", pid)};
  std::string line;
  if (!std::getline(file, line)) return "gone";
  const std::size_t name_end = line.rfind(')');
  const char state = name_end + 2 < line.size() ? line[name_end + 2] : '?';
  if (state == 'Z' || state == 'X') return "gone";
  return state == 'T' || state == 't' ? "stopped" : "";
}

}  // namespace

std::string Watchdog::report(const std::string& cause) const {
  const TimePoint at = now();
  const std::string failed = failed_ranks();
  std::string text =
      fmt::format("longhaul: the run ends: {}{}{}{} What the ranks did last:\n", failed,
                  failed.empty() ? "" : ". Noticed: ", cause, cause.ends_with('.') ? "" : ".");
  for (const Rank rank : host_ranks_.local()) text += line_of(rank, at);
  if (!host_ranks_.all_local())
    text += leased_away() + fmt::format("  ({} ranks on other hosts report there)\n",
                                        host_ranks_.ranks() - host_ranks_.local_ranks());
  return text;
}

/// Of other hosts' ops this host knows those alone that it leases links to.
std::string Watchdog::leased_away() const {
  std::string text;
  if (plan_ == nullptr || events_ == nullptr) return text;
  for (std::size_t i = 0; i < plan_->ops.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    if (host_ranks_.is_local(plan_->rank_of(id)) || events_->of(id) != comm::OpEvent::started)
      continue;
    text += fmt::format("  on another host, with a link that is leased here: {}\n",
                        longhaul::to_text(*plan_, id));
  }
  return text;
}

/// A rank that is gone is the cause, whatever told us; a stopped one is where none is gone.
std::string Watchdog::failed_ranks() const {
  std::string text;
  for (const Rank rank : gone_ranks()) {
    const comm::RankStatus& slot = host_ranks_.slot(rank);
    const std::string state = state_of_process(slot.pid);
    text += fmt::format("{}rank {} is {}{}", text.empty() ? "" : "; ", index(rank), state,
                        state == "gone" ? " (killed or crashed)" : " (frozen, SIGSTOP)");
    if (slot.last_event != comm::OpEvent::none) text += fmt::format(", {}", last_of(slot));
  }
  return text;
}

std::vector<Rank> Watchdog::gone_ranks() const {
  for (const std::string state : {"gone", "stopped"}) {
    std::vector<Rank> found;
    for (const Rank rank : host_ranks_.local())
      if (const comm::RankStatus& slot = host_ranks_.slot(rank);
          slot.phase != comm::Phase::finished && state_of_process(slot.pid) == state)
        found.push_back(rank);
    if (!found.empty()) return found;
  }
  return {};
}

std::string Watchdog::text_of(std::uint32_t op) const {
  const bool known = plan_ != nullptr && op < plan_->ops.size();
  return known ? longhaul::to_text(*plan_, OpId{op}) : fmt::format("op {}", op);
}

std::string Watchdog::last_of(const comm::RankStatus& slot) const {
  return fmt::format("last {}: {}", comm::to_string(slot.last_event.load()), text_of(slot.last_op));
}

std::string Watchdog::line_of(Rank rank, TimePoint at) const {
  const comm::RankStatus& slot = host_ranks_.slot(rank);
  const std::string state = state_of_process(slot.pid);
  std::string line =
      fmt::format("  rank {}{} {}", index(rank), state.empty() ? "" : fmt::format(" ({})", state),
                  comm::to_string(slot.phase.load()));
  if (slot.phase != comm::Phase::set_up && slot.phase != comm::Phase::finished)
    line += fmt::format(" iteration {}", slot.iteration.load());
  // A rank goes on while others report.
  const Duration still = std::max(Duration::zero(), at - TimePoint{slot.progress});
  line += fmt::format(", {} without progress", longhaul::to_text(still));
  if (slot.last_event != comm::OpEvent::none) line += "; " + last_of(slot);
  if (slot.phase == comm::Phase::running && slot.waits_for != index(kNone<OpId>))
    line += fmt::format("; waits for: {}{}{}", text_of(slot.waits_for),
                        slot.unposted != 0 ? ", which it has not posted" : "",
                        cause_of(slot.waits_for));
  return line + "\n";
}

std::string Watchdog::cause_of(std::uint32_t waits_for) const {
  if (plan_ == nullptr || events_ == nullptr || waits_for >= plan_->ops.size()) return "";
  const HeldUp found = find_held_up(*plan_, *events_, host_ranks_, OpId{waits_for});
  if (found.op == OpId{waits_for} && plan_->op(found.op).kind != OpKind::recv) return "";
  return fmt::format("; held up by: {}: {}", longhaul::to_text(*plan_, found.op), found.why);
}

}  // namespace longhaul::engine
