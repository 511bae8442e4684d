#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

namespace longhaul::testing {

/// What torch.distributed.pipelining's runtime asks of a file of format compute_comms, written from
/// its rules (schedules.py): cells that parse, blocks that are all there and in order, weights that
/// are gathered once, used when they are there and given up after a use, messages received before
/// they are used, and every row that gets to its end when a rank waits for the sends of others.
class PytorchRuntime {
public:
  explicit PytorchRuntime(const std::string& csv) {
    std::istringstream lines{csv};
    for (std::string line; std::getline(lines, line);) {
      rows_.emplace_back();
      std::istringstream cells{line};
      for (std::string cell; std::getline(cells, cell, ',');) rows_.back().push_back(parsed(cell));
    }
    for (std::size_t rank = 0; rank < rows_.size(); ++rank)
      for (const Action& each : rows_[rank]) {
        const auto [known, is_new] = rank_of_.try_emplace(each.stage, rank);
        if (known->second != rank) say(rank, each, "stage on two ranks");
        last_ = std::max(last_, each.stage);
      }
  }

  /// Empty: it runs.
  [[nodiscard]] const std::string& run(int microbatches, bool is_sharded) {
    for (std::size_t rank = 0; rank < rows_.size(); ++rank) run_row(rank, microbatches, is_sharded);
    if (faults_.empty()) progress();
    if (faults_.empty()) compare_orders();
    return faults_;
  }

private:
  struct Action {
    int stage = 0;
    std::string kind;
    int microbatch = -1;
    friend auto operator<=>(const Action&, const Action&) = default;
  };

  Action parsed(const std::string& cell) {
    const std::size_t letters = cell.find_first_not_of("0123456789");
    if (letters == 0 || letters == std::string::npos)
      return say(0, {0, cell}, "no action"), Action{};
    const std::size_t digits = cell.find_first_of("0123456789", letters);
    Action made{std::stoi(cell.substr(0, letters)), cell.substr(letters, digits - letters)};
    static const std::set<std::string> kNone{"UNSHARD", "RESHARD", "REDUCE_GRAD"};
    static const std::set<std::string> kOne{"F",      "I",      "B",      "W",
                                            "SEND_F", "RECV_F", "SEND_B", "RECV_B"};
    if (digits != std::string::npos) made.microbatch = std::stoi(cell.substr(digits));
    if (!(made.microbatch < 0 ? kNone : kOne).contains(made.kind)) say(0, made, "no action");
    return made;
  }

  void say(std::size_t rank, const Action& at, const std::string& what) {
    faults_ += fmt::format("rank {}: {}{}{}: {}\n", rank, at.stage, at.kind, at.microbatch, what);
  }
  [[nodiscard]] bool is_local(std::size_t rank, int stage) const {
    const auto known = rank_of_.find(stage);
    return known != rank_of_.end() && known->second == rank;
  }

  void run_row(std::size_t rank, int microbatches, bool is_sharded) {
    std::set<Action> done;
    std::map<int, int> backwards;
    std::set<int> pending, gathered;
    for (const Action& own : rows_[rank]) {
      const auto has = [&](const char* kind) {
        return done.contains({own.stage, kind, own.microbatch});
      };
      const bool backward = own.kind == "B" || own.kind == "I";
      if (own.kind == "F" || backward || own.kind == "W") {
        if (pending.erase(own.stage) > 0) gathered.insert(own.stage);
        if (is_sharded && !gathered.contains(own.stage)) say(rank, own, "on sharded weights");
        if (done.contains(own)) say(rank, own, "twice");
      }
      if (own.kind == "F" && own.stage > 0 && !is_local(rank, own.stage - 1) && !has("RECV_F"))
        say(rank, own, "before its input");
      if (backward && own.stage < last_ && !is_local(rank, own.stage + 1) && !has("RECV_B"))
        say(rank, own, "before its gradient");
      if (backward && !has("F")) say(rank, own, "before its forward");
      if (own.kind == "W" && !has("I")) say(rank, own, "before its input gradient");
      if (own.kind == "B" || own.kind == "W") ++backwards[own.stage];
      if (own.kind == "SEND_F" && !has("F")) say(rank, own, "before it is there");
      if (own.kind == "SEND_B" && !has("B") && !has("I")) say(rank, own, "before it is there");
      if (own.kind.starts_with("RECV") && done.contains(own)) say(rank, own, "twice");
      if (own.kind == "UNSHARD" &&
          (gathered.contains(own.stage) || !pending.insert(own.stage).second))
        say(rank, own, "twice");
      if (own.kind == "RESHARD" && gathered.erase(own.stage) == 0) say(rank, own, "of no gather");
      if (own.kind == "REDUCE_GRAD" && backwards[own.stage] != microbatches)
        say(rank, own, "before the last backward");
      done.insert(own);
    }
    if (!pending.empty() || !gathered.empty()) say(rank, {}, "gathers that are left");
    for (const auto& [stage, of] : rank_of_) {
      if (of != rank) continue;
      if (backwards[stage] != microbatches) say(rank, {stage, "B or W"}, "not of all microbatches");
      if (!done.contains({stage, "REDUCE_GRAD", -1})) say(rank, {stage, "REDUCE_GRAD"}, "missing");
    }
  }

  /// A receive waits for its send; a row goes on when its next action can.
  void progress() {
    std::set<Action> sent;
    std::vector<std::size_t> next(rows_.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < rows_.size(); ++rank)
        while (next[rank] < rows_[rank].size()) {
          const Action& own = rows_[rank][next[rank]];
          if (own.kind == "RECV_F" && !sent.contains({own.stage - 1, "SEND_F", own.microbatch}))
            break;
          if (own.kind == "RECV_B" && !sent.contains({own.stage + 1, "SEND_B", own.microbatch}))
            break;
          if (own.kind.starts_with("SEND")) sent.insert(own);
          ++next[rank];
          moved = true;
        }
    }
    for (std::size_t rank = 0; rank < rows_.size(); ++rank)
      if (next[rank] < rows_[rank].size()) say(rank, rows_[rank][next[rank]], "never goes on");
  }

  /// Messages of two ranks, both ways: one stream of a process group has them in one order.
  void compare_orders() {
    using Message = std::tuple<int, bool, int>;  // stage that sends, forward, microbatch
    std::map<std::pair<std::size_t, std::size_t>, std::vector<Message>> orders;
    for (std::size_t rank = 0; rank < rows_.size(); ++rank)
      for (const Action& own : rows_[rank]) {
        if (!own.kind.starts_with("SEND") && !own.kind.starts_with("RECV")) continue;
        const bool forward = own.kind.ends_with("F"), sends = own.kind.starts_with("SEND");
        const int other = own.stage + (forward == sends ? 1 : -1);
        orders[{rank, rank_of_.at(other)}].emplace_back(sends ? own.stage : other, forward,
                                                        own.microbatch);
      }
    for (const auto& [pair, own] : orders)
      if (own != orders[{pair.second, pair.first}])
        say(pair.first, {}, fmt::format("other order of messages than rank {}", pair.second));
  }

  std::vector<std::vector<Action>> rows_;
  std::map<int, std::size_t> rank_of_;
  int last_ = 0;
  std::string faults_;
};

}  // namespace longhaul::testing
