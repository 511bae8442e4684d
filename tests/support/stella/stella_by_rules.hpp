#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/units.hpp"

namespace longhaul::testing {

/// What a replica does in each iteration, by part.
struct StellaReplica {
  int site = 0;
  std::vector<Duration> forward, backward;
};

/// Replicas that exchange sets part by part, from the rules of docs/training.md alone: no plan, and
/// a simulator that looks at all jobs whenever something ends.
struct StellaRules {
  std::vector<StellaReplica> replicas;
  int staleness = 0;
  bool by_deadline = true;  ///< otherwise by arrival
  int host_threads = 1;
  bool ring = true;         ///< otherwise each to each
  bool shared_link = true;  ///< all messages of a way, or each pair of replicas, have one link
  Duration transfer{}, latency{};  ///< of a set between sites; inside them no time
  std::optional<Duration> copy_out, compress, merge, copy_in;
  Duration optimize{};
  /// Of each replica, by a number: those of one node have one sum and one step, by the first of
  /// them; a message at a time leaves a node or comes in. Empty: each replica is by itself.
  std::vector<int> nodes{};
  Duration gather{};                     ///< of a sum of several
  Duration inside{1}, latency_inside{};  ///< of gradients and weights from one port to another
};

/// Plays the rules for some iterations.
class StellaByRules {
public:
  struct Answer {
    std::vector<Duration> starts;            ///< of F of part 0 of replica 0
    std::vector<std::vector<int>> versions;  ///< by iteration: of F, by replica and part
    std::vector<Duration> updated;           ///< by iteration: the end of the last update
  };

  StellaByRules(const StellaRules& rules, int iterations) : rules_{rules}, iterations_{iterations} {
    for (int n = 0; n < iterations; ++n) add_iteration(n);
  }

  [[nodiscard]] Answer run() {
    while (start_one() || go_on()) {
    }
    Answer answer;
    const int replicas = static_cast<int>(rules_.replicas.size());
    for (int n = 0; n < iterations_; ++n) {
      answer.starts.push_back(*jobs_[id("F", n, 0, 0)].start);
      std::vector<int> versions;
      Duration updated{};
      for (int r = 0; r < replicas; ++r) {
        for (int p = 0; p < parts(); ++p) {
          versions.push_back(version(n, r, p));
          updated = std::max(updated, *jobs_[update(n, r, p)].end);
        }
      }
      answer.versions.push_back(versions);
      answer.updated.push_back(updated);
    }
    return answer;
  }

private:
  struct Job {
    std::vector<std::size_t> after;
    std::string lane, resource;  ///< "": none
    int iteration = 0;
    Duration takes{}, arrives{};                   ///< after which it has ended
    std::tuple<int, int, int, int, int> number{};  ///< of its op, for ties
    int part = 0;
    std::optional<Duration> start{}, freed{}, end{};
    std::vector<std::string> interfaces{};  ///< of nodes, which it holds like its resource
  };

  [[nodiscard]] int parts() const {
    return static_cast<int>(rules_.replicas.front().forward.size());
  }
  [[nodiscard]] std::size_t id(const std::string& kind, int n, int r, int p, int hop = 0) const {
    return names_.at({kind, n, r, p, hop});
  }
  [[nodiscard]] std::size_t update(int n, int r, int p) const {
    return id(rules_.copy_in || leader_of(r) != r ? "in" : "optimize", n, r, p);
  }
  [[nodiscard]] int leader_of(int r) const {
    if (rules_.nodes.empty()) return r;
    return static_cast<int>(std::ranges::find(rules_.nodes, rules_.nodes.at(std::size_t(r))) -
                            rules_.nodes.begin());
  }
  /// Those that exchange.
  [[nodiscard]] std::vector<int> leaders() const {
    std::vector<int> all;
    for (int r = 0; r < static_cast<int>(rules_.replicas.size()); ++r)
      if (leader_of(r) == r) all.push_back(r);
    return all;
  }
  /// Of a leader: the others of its node.
  [[nodiscard]] std::vector<int> led_by(int leader) const {
    std::vector<int> all;
    for (int r = leader + 1; r < static_cast<int>(rules_.replicas.size()); ++r)
      if (leader_of(r) == leader) all.push_back(r);
    return all;
  }
  [[nodiscard]] int version(int n, int r, int p) const {
    const Duration start = *jobs_[id("F", n, r, p)].start;
    int newest = -1;
    for (int before = 0; before < n; ++before)
      if (*jobs_[update(before, r, p)].end <= start) newest = before;
    return newest;
  }

  std::size_t add(const std::string& kind, int n, int r, int p, int hop, Job job) {
    job.iteration = n;
    job.part = p;
    names_[{kind, n, r, p, hop}] = jobs_.size();
    jobs_.push_back(std::move(job));
    return jobs_.size() - 1;
  }

  void add_iteration(int n) {
    const int replicas = static_cast<int>(rules_.replicas.size());
    for (int r = 0; r < replicas; ++r) add_blocks(n, r);
    for (int r = replicas; r-- > 0;)  // a leader's comes after those that it adds
      for (int p = 0; p < parts(); ++p) add_own_set(n, r, p);
    const int sets = static_cast<int>(leaders().size());
    for (int hop = 0; hop + 1 < sets; ++hop)
      for (int at = 0; at < sets; ++at)
        for (int p = 0; p < parts(); ++p) add_message(n, at, p, hop);
    for (int r = 0; r < replicas; ++r)
      for (int p = 0; p < parts(); ++p) add_update(n, r, p);
  }

  void add_blocks(int n, int r) {
    const std::string device = "device " + std::to_string(r);
    const auto block = [&](const std::string& kind, int p, Duration takes) {
      Job job{{}, device, device, 0, takes, {}, {r, 0, 0, 0, 0}};
      if (last_block_.contains(r)) job.after.push_back(last_block_[r]);
      if (kind == "F" && n > rules_.staleness)
        job.after.push_back(update(n - 1 - rules_.staleness, r, p));
      last_block_[r] = add(kind, n, r, p, 0, job);
    };
    const StellaReplica& replica = rules_.replicas[static_cast<std::size_t>(r)];
    for (int p = 0; p < parts(); ++p) block("F", p, replica.forward[static_cast<std::size_t>(p)]);
    for (int p = parts(); p-- > 0;) block("B", p, replica.backward[static_cast<std::size_t>(p)]);
  }

  void add_own_set(int n, int r, int p) {
    std::vector<std::size_t> before{id("B", n, r, p)};
    const auto task = [&](const std::string& kind, const std::string& resource, int lane, int which,
                          const std::optional<Duration>& takes) {
      if (!takes) return;
      before = {add(kind, n, r, p, 0,
                    {before,
                     resource == "out" ? "out" + std::to_string(r) : "host" + std::to_string(r),
                     resource + std::to_string(r),
                     0,
                     *takes,
                     {},
                     {r, lane, p, which, 0}})};
    };
    task("out", "out", 1, 0, rules_.copy_out);
    if (leader_of(r) != r) {
      add_inside("up", n, r, p, before.front());
      return;
    }
    const std::vector<int> others = led_by(r);
    for (const int other : others) before.push_back(id("up", n, other, p));
    if (!others.empty()) task("gather", "workers", 2, 0, rules_.gather);
    task("compress", "workers", 2, 1, rules_.compress);
    own_set_[{n, r, p}] = before.front();
  }

  /// A gradient or weights of replica r, from its port or to it.
  void add_inside(const std::string& way, int n, int r, int p, std::size_t after) {
    const int from = way == "up" ? r : leader_of(r), to = way == "up" ? leader_of(r) : r;
    Job job;
    job.after = {after};
    job.lane = way + std::to_string(r);
    job.resource = "out of port " + std::to_string(from);
    job.interfaces = {"into port " + std::to_string(to)};
    job.takes = rules_.inside;
    job.arrives = rules_.latency_inside;
    job.number = {from, 10, 0, to, p};
    add(way, n, r, p, 0, job);
  }

  /// That of leader number `at`, of the ring to the next, otherwise to the one `hop` + 1 away.
  void add_message(int n, int at, int p, int hop) {
    const std::vector<int> members = leaders();
    const auto member = [&](int number) {
      return members[static_cast<std::size_t>(number) % members.size()];
    };
    const int r = member(at);
    const int to = member(at + (rules_.ring ? 1 : hop + 1));
    const int from_site = rules_.replicas[static_cast<std::size_t>(r)].site;
    const int to_site = rules_.replicas[static_cast<std::size_t>(to)].site;
    Job job;
    job.after = {rules_.ring && hop > 0
                     ? id("send", n, member(at + static_cast<int>(members.size()) - 1), p, hop - 1)
                     : own_set_.at({n, r, p})};
    job.lane = "send" + std::to_string(r) + ">" + std::to_string(to) + "/" +
               std::to_string(rules_.ring ? hop : 0);
    if (from_site == to_site) {
      job.lane += "." + std::to_string(p);
    } else {
      job.resource = rules_.shared_link
                         ? "way" + std::to_string(from_site) + ">" + std::to_string(to_site)
                         : "pair" + std::to_string(r) + ">" + std::to_string(to);
      job.takes = rules_.transfer;
      job.arrives = rules_.latency;
      if (!rules_.nodes.empty())
        job.interfaces = {"egress" + std::to_string(rules_.nodes[static_cast<std::size_t>(r)]),
                          "ingress" + std::to_string(rules_.nodes[static_cast<std::size_t>(to)])};
    }
    job.number = {r, 10, rules_.ring ? hop : 0, to, p};
    add("send", n, r, p, hop, job);
  }

  void add_update(int n, int r, int p) {
    const std::vector<int> members = leaders();
    const int sets = static_cast<int>(members.size());
    std::vector<std::size_t> before;
    if (leader_of(r) == r) before.push_back(own_set_.at({n, r, p}));
    for (int from = 0; from < sets; ++from)
      for (int hop = 0; hop + 1 < sets; ++hop)
        if (members[static_cast<std::size_t>((from + (rules_.ring ? 1 : hop + 1)) % sets)] == r)
          before.push_back(id("send", n, members[static_cast<std::size_t>(from)], p, hop));
    const auto task = [&](const std::string& kind, const std::string& lane,
                          const std::string& resource, int which, Duration takes) {
      before = {add(kind, n, r, p, 0,
                    {before,
                     lane + std::to_string(r),
                     resource + std::to_string(r),
                     0,
                     takes,
                     {},
                     {r, which == 6 ? 5 : 4, p, which, 0}})};
    };
    if (leader_of(r) != r) {
      add_inside("down", n, r, p, id("optimize", n, leader_of(r), p));
      before = {id("down", n, r, p)};
      return task("in", "in", "in", 6, rules_.copy_in.value_or(Duration{}));
    }
    if (rules_.merge) task("merge", "update", "workers", 4, *rules_.merge);
    task("optimize", "update", "workers", 5, rules_.optimize);
    if (rules_.copy_in) task("in", "in", "in", 6, *rules_.copy_in);
  }

  [[nodiscard]] std::optional<Duration> ready_at(const Job& job) const {
    Duration ready{};
    for (const std::size_t before : job.after) {
      if (!jobs_[before].end) return std::nullopt;
      ready = std::max(ready, *jobs_[before].end);
    }
    return ready;
  }

  /// What holds at this instant.
  struct Now {
    std::map<std::string, int> holders;    ///< of resources
    std::map<std::string, int> iteration;  ///< of lanes: the first with a job that has not started
  };
  [[nodiscard]] Now what_holds() const {
    Now now;
    for (const Job& job : jobs_) {
      if (job.start && !job.resource.empty() && *job.freed > now_) {
        ++now.holders[job.resource];
        for (const std::string& each : job.interfaces) ++now.holders[each];
      }
      if (job.start) continue;
      const auto [at, is_new] = now.iteration.try_emplace(job.lane, job.iteration);
      if (!is_new) at->second = std::min(at->second, job.iteration);
    }
    return now;
  }
  [[nodiscard]] bool can_start(const Job& job, Now& now) const {
    if (now.iteration[job.lane] < job.iteration) return false;
    const int most = job.resource.starts_with("workers") ? rules_.host_threads : 1;
    const bool can_pass = std::ranges::all_of(
        job.interfaces, [&](const std::string& each) { return now.holders[each] == 0; });
    return job.resource.empty() || (now.holders[job.resource] < most && can_pass);
  }

  /// Starts the first of all jobs that can at this instant.
  bool start_one() {
    using Rank =
        std::tuple<std::int64_t, std::int64_t, std::int64_t, std::tuple<int, int, int, int, int>>;
    std::optional<std::pair<Rank, std::size_t>> first;
    Now now = what_holds();
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      const Job& job = jobs_[i];
      const auto ready = job.start ? std::nullopt : ready_at(job);
      if (!ready || *ready > now_ || !can_start(job, now)) continue;
      const bool chosen = !job.resource.empty() && !job.resource.starts_with("device");
      Rank rank{!chosen ? 0 : 1, rules_.by_deadline ? job.iteration : ready->count(),
                rules_.by_deadline ? job.part : job.iteration, job.number};
      if (!first || rank < first->first) first = {rank, i};
    }
    if (!first) return false;
    Job& job = jobs_[first->second];
    job.start = now_;
    job.freed = now_ + job.takes;
    job.end = *job.freed + job.arrives;
    times_.insert(*job.freed);
    times_.insert(*job.end);
    return true;
  }

  bool go_on() {
    const auto next = times_.upper_bound(now_);
    if (next == times_.end()) return false;
    now_ = *next;
    return true;
  }

  StellaRules rules_;
  int iterations_;
  std::vector<Job> jobs_;
  std::map<std::tuple<std::string, int, int, int, int>, std::size_t> names_;
  std::map<int, std::size_t> last_block_;
  std::map<std::tuple<int, int, int>, std::size_t> own_set_;
  std::set<Duration> times_;
  Duration now_{};
};

}  // namespace longhaul::testing
