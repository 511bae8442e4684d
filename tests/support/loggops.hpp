#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "base/index.hpp"
#include "support/goal.hpp"

/// Plays GOAL by the rules of its simulators, as their sources have them, with o = g = O = 0 and
/// eager messages.
namespace longhaul::testing {

/// The original is spcl/LogGOPSim, the other one LogGOPSim of spcl/atlahs.
///  - An op that was freed is tried from the clock of its processor (original); from the end of all
///    that it requires, 0 where an `irequires` freed it (atlahs).
///  - A send takes its interface for (size - 1) G in both.
///  - A message arrives after L in the original, and the processor of its receive must be free; in
///    atlahs after (size - 1) G + L, and the receiver's processor of the sender's number is taken
///    for (size - 1) G then.
///  - Ties go by order of insertion, freed sends before blocks (original), or in any order
///  (atlahs).
enum class LogGopsRules { original, atlahs };

struct LogGopsParameters {
  std::int64_t latency = 0;
  double per_byte = 0;     ///< the original has whole ones
  std::uint32_t ties = 1;  ///< seed of the order of ties, where it is any
};

class LogGopsSimulator {
public:
  struct Time {
    bool done = false;
    std::int64_t start = 0;
    std::int64_t end = 0;
  };
  /// By op. Throws where an op is never done.
  static std::vector<Time> play(const Goal& goal, LogGopsRules rules,
                                LogGopsParameters parameters) {
    return LogGopsSimulator{goal, rules, parameters}.run();
  }

private:
  struct Event {
    std::int64_t time = 0;
    std::uint64_t tie = 0;
    std::size_t op = 0;
    bool is_message = false;  ///< of the send `op`
    bool operator>(const Event& other) const {
      return std::tie(time, tie) > std::tie(other.time, other.tie);
    }
  };
  /// Clocks of a host: when each processor is free, and each interface to send and to receive.
  struct Host {
    std::array<std::int64_t, 256> processor{}, sends{}, receives{};
  };
  using Envelope = std::tuple<int, int, std::uint32_t>;  // to, from, tag

  LogGopsSimulator(const Goal& goal, LogGopsRules rules, LogGopsParameters parameters)
      : goal_{goal},
        rules_{rules},
        parameters_{parameters},
        random_{parameters.ties},
        hosts_(static_cast<std::size_t>(goal.ranks)),
        time_(goal.ops.size()),
        waits_for_(goal.ops.size()),
        ready_(goal.ops.size()),
        after_end_(goal.ops.size()),
        after_start_(goal.ops.size()) {
    for (std::size_t i = 0; i < goal.ops.size(); ++i) {
      const GoalOp& op = goal.ops[i];
      waits_for_[i] = op.requires_end.size() + op.requires_start.size();
      for (const std::size_t before : op.requires_end) after_end_[before].push_back(i);
      for (const std::size_t before : op.requires_start) after_start_[before].push_back(i);
    }
  }

  [[nodiscard]] bool original() const { return rules_ == LogGopsRules::original; }

  std::vector<Time> run() {
    for (std::size_t i = 0; i < goal_.ops.size(); ++i)
      if (waits_for_[i] == 0) freed_.push_back({i, 0});
    insert_freed();
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      if (event.is_message) {
        arrive(event);
      } else {
        attempt(event);
      }
      insert_freed();
    }
    for (std::size_t i = 0; i < time_.size(); ++i)
      if (!time_[i].done) throw std::runtime_error("never done: " + goal_.ops[i].label);
    return time_;
  }

  void insert(Event event) {
    event.tie = original() ? ++inserted_ : random_();
    events_.push(event);
  }
  /// Keeps its place among ties, as in the original, where it has one.
  void insert_again(Event event, std::int64_t time) {
    event.time = time;
    if (!original()) event.tie = random_();
    events_.push(event);
  }

  void insert_freed() {
    if (original()) {
      std::ranges::stable_sort(freed_, {}, [&](const auto& freed) {
        constexpr std::array kOrder{2, 0, 1};  // send, recv, calc
        return kOrder.at(static_cast<std::size_t>(goal_.ops[freed.first].kind));
      });
    }
    for (const auto& [i, ready] : freed_) {
      const GoalOp& op = goal_.ops[i];
      const Host& host = host_of(op);
      std::int64_t time = original() ? host.processor[at(op.cpu)] : ready;
      if (op.kind == GoalOp::Kind::send) time = std::max(time, host.sends[at(op.nic)]);
      insert({time, 0, i, false});
    }
    freed_.clear();
  }

  void attempt(const Event& event) {
    const GoalOp& op = goal_.ops[event.op];
    Host& host = host_of(op);
    std::int64_t& processor = host.processor[at(op.cpu)];
    switch (op.kind) {
      case GoalOp::Kind::calc:
        if (processor > event.time) return insert_again(event, processor);
        processor = event.time + op.size;
        begin(event.op, event.time);
        return finish(event.op, processor);
      case GoalOp::Kind::send: {
        std::int64_t& interface = host.sends[at(op.nic)];
        if (std::max(processor, interface) > event.time)
          return insert_again(event, std::max(processor, interface));
        processor = event.time;
        interface = event.time + transfer(op);
        begin(event.op, event.time);
        const std::int64_t wire = parameters_.latency + (original() ? 0 : transfer(op));
        insert({event.time + wire, 0, event.op, true});
        return finish(event.op, event.time);
      }
      case GoalOp::Kind::recv: return post(event, op, host);
    }
  }

  void post(const Event& event, const GoalOp& op, Host& host) {
    begin(event.op, event.time);
    const Envelope envelope{op.rank, op.peer, op.tag};
    auto& came = unexpected_[envelope];
    if (came == 0) return posted_[envelope].push(event.op);
    --came;
    if (original()) return finish(event.op, event.time);
    // It waits for the sends of the interface, and sets the processor's clock, even back.
    const std::int64_t end = std::max(event.time, host.sends[at(op.nic)]);
    host.processor[at(op.cpu)] = end;
    host.receives[at(op.nic)] = end;
    finish(event.op, end);
  }

  void arrive(const Event& event) {
    const GoalOp& send = goal_.ops[event.op];
    Host& host = hosts_.at(at(send.peer));
    const Envelope envelope{send.peer, send.rank, send.tag};
    auto& posted = posted_[envelope];
    std::int64_t& interface = host.receives[at(send.nic)];
    if (original()) {
      std::int64_t& processor = host.processor[at(send.cpu)];
      if (std::max(processor, interface) > event.time)
        return insert_again(event, std::max(processor, interface));
      processor = interface = event.time + transfer(send);
      return deliver(posted, envelope, processor);
    }
    if (posted.empty()) return deliver(posted, envelope, 0);
    std::int64_t& processor = host.processor[at(goal_.ops[posted.front()].cpu)];
    if (std::max(processor, interface) > event.time)
      return insert_again(event, std::max(processor, interface));
    processor = interface = event.time;
    deliver(posted, envelope, event.time);
  }

  void deliver(std::queue<std::size_t>& posted, const Envelope& envelope, std::int64_t end) {
    if (posted.empty()) {
      ++unexpected_[envelope];
      return;
    }
    const std::size_t receive = posted.front();
    posted.pop();
    finish(receive, end);
  }

  void begin(std::size_t op, std::int64_t time) {
    time_[op].start = time;
    for (const std::size_t next : after_start_[op]) release(next, 0);
  }
  void finish(std::size_t op, std::int64_t time) {
    time_[op].done = true;
    time_[op].end = time;
    for (const std::size_t next : after_end_[op]) {
      ready_[next] = std::max(ready_[next], time);
      release(next, ready_[next]);
    }
  }
  void release(std::size_t op, std::int64_t ready) {
    if (--waits_for_[op] == 0) freed_.emplace_back(op, ready);
  }

  [[nodiscard]] std::int64_t transfer(const GoalOp& op) const {
    return static_cast<std::int64_t>(static_cast<double>(op.size - 1) * parameters_.per_byte);
  }
  [[nodiscard]] Host& host_of(const GoalOp& op) { return hosts_.at(at(op.rank)); }

  const Goal& goal_;
  LogGopsRules rules_;
  LogGopsParameters parameters_;
  std::mt19937 random_;
  std::uint64_t inserted_ = 0;
  std::vector<Host> hosts_;
  std::vector<Time> time_;                                         ///< index: op
  std::vector<std::size_t> waits_for_;                             ///< index: op
  std::vector<std::int64_t> ready_;                                ///< index: op
  std::vector<std::vector<std::size_t>> after_end_, after_start_;  ///< index: op
  std::vector<std::pair<std::size_t, std::int64_t>> freed_;        ///< op, ready
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::map<Envelope, std::queue<std::size_t>> posted_;
  std::map<Envelope, int> unexpected_;
};

}  // namespace longhaul::testing
