#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "support/chakra.hpp"

/// Plays Chakra traces by ASTRA-sim's rules, as its sources have them: a node is free when all of
/// its data dependencies are complete; free nodes are issued in order of id; a send is complete
/// when it has arrived; a collective is a ring whose members issue it first.
namespace longhaul::testing {

struct AstraNetwork {
  std::int64_t latency = 0;   ///< ns, of all pairs
  std::int64_t per_byte = 0;  ///< ns
};

enum class AstraSlots {
  one,  ///< as it is: a rank has one send or collective at a time, and messages share no link
  any,  ///< as many as are free; messages of an ordered pair of ranks take turns on their link
};

struct AstraTime {
  bool done = false;
  std::int64_t start = 0;
  std::int64_t end = 0;
};

class AstraSimulator {
public:
  /// By rank and place in its trace. Throws where a node is never complete.
  static std::vector<std::vector<AstraTime>> play(const std::vector<ChakraTrace>& traces,
                                                  const std::map<std::string, int>& members,
                                                  AstraNetwork network, AstraSlots slots) {
    return AstraSimulator{traces, members, network, slots}.run();
  }

private:
  using Node = std::pair<std::size_t, std::size_t>;  // rank, place
  static constexpr std::uint64_t kCompute = 4, kSend = 5, kReceive = 6, kCollective = 7;

  AstraSimulator(const std::vector<ChakraTrace>& traces, const std::map<std::string, int>& members,
                 AstraNetwork network, AstraSlots slots)
      : traces_{traces}, members_{members}, network_{network}, slots_{slots} {
    for (std::size_t rank = 0; rank < traces.size(); ++rank) {
      time_.emplace_back(traces[rank].nodes.size());
      computes_.push_back(false);
      communicates_.push_back(false);
      free_.emplace_back();
      place_of_.emplace_back();
      for (std::size_t i = 0; i < traces[rank].nodes.size(); ++i)
        place_of_[rank][traces[rank].nodes[i].id] = i;
      for (std::size_t i = 0; i < traces[rank].nodes.size(); ++i) {
        std::set<std::uint64_t> before{traces[rank].nodes[i].data.begin(),
                                       traces[rank].nodes[i].data.end()};
        waits_for_[{rank, i}] = before.size();
        for (const std::uint64_t id : before)
          dependents_[{rank, place_of_[rank].at(id)}].push_back(i);
        if (before.empty()) free_[rank].insert(traces[rank].nodes[i].id);
      }
    }
  }

  std::vector<std::vector<AstraTime>> run() {
    issue_all();
    while (!completions_.empty()) {
      now_ = completions_.top().first;
      while (!completions_.empty() && completions_.top().first == now_) {
        const Node node = completions_.top().second;
        completions_.pop();
        complete(node);
      }
      issue_all();
    }
    for (std::size_t rank = 0; rank < time_.size(); ++rank) {
      for (std::size_t i = 0; i < time_[rank].size(); ++i) {
        if (!time_[rank][i].done)
          throw std::runtime_error("never complete: " + traces_[rank].nodes[i].name);
      }
    }
    return time_;
  }

  void issue_all() {
    for (std::size_t rank = 0; rank < free_.size(); ++rank) {
      const std::set<std::uint64_t> candidates = free_[rank];
      for (const std::uint64_t id : candidates) {
        const Node node{rank, place_of_[rank].at(id)};
        if (!is_available(rank, of(node).type)) continue;
        free_[rank].erase(id);
        issue(node);
      }
    }
  }

  [[nodiscard]] bool is_available(std::size_t rank, std::uint64_t type) const {
    if (type == kCompute) return !computes_[rank];
    return type == kReceive || slots_ == AstraSlots::any || !communicates_[rank];
  }

  void issue(const Node& node) {
    time_of(node).start = now_;
    switch (of(node).type) {
      case kCompute:
        computes_[node.first] = true;
        return completions_.push(
            {now_ + static_cast<std::int64_t>(of(node).duration_micros) * 1000, node});
      case kSend: return send(node);
      case kReceive: return receive(node);
      case kCollective: return join(node);
      default: throw std::runtime_error("type of " + of(node).name);
    }
  }

  using Envelope = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;
  [[nodiscard]] Envelope envelope(const Node& node) const {
    const auto& number = of(node).number;
    return {number.at("comm_src"), number.at("comm_dst"), number.at("comm_tag")};
  }

  void send(const Node& node) {
    communicates_[node.first] = true;
    std::int64_t begin = now_;
    const std::int64_t transfer = size_of(node) * network_.per_byte;
    if (slots_ == AstraSlots::any) {
      std::int64_t& link = link_free_[{std::get<0>(envelope(node)), std::get<1>(envelope(node))}];
      begin = std::max(begin, link);
      link = begin + transfer;
    }
    const std::int64_t arrival = begin + transfer + network_.latency;
    completions_.push({arrival, node});
    if (!arrives_.emplace(envelope(node), arrival).second)
      throw std::runtime_error("a tag twice: " + of(node).name);
    const auto posted = posted_.find(envelope(node));
    if (posted != posted_.end()) completions_.push({arrival, posted->second});
  }

  void receive(const Node& node) {
    const auto sent = arrives_.find(envelope(node));
    if (sent == arrives_.end()) {
      posted_[envelope(node)] = node;
    } else {
      completions_.push({std::max(now_, sent->second), node});
    }
  }

  void join(const Node& node) {
    communicates_[node.first] = true;
    const std::string& group = of(node).text.at("pg_name");
    const int turn = turn_[{group, node.first}]++;
    std::vector<Node>& joined = joined_[{group, turn}];
    joined.push_back(node);
    if (static_cast<int>(joined.size()) < members_.at(group)) return;
    for (const Node& member : joined)
      completions_.push({now_ + ring_time(member, members_.at(group)), member});
  }

  /// All-gather: a rank has comm_size bytes and hands on all of them in each step; the others have
  /// comm_size in all, of which a step moves one part.
  [[nodiscard]] std::int64_t ring_time(const Node& node, std::int64_t n) const {
    const std::uint64_t type = of(node).number.at("comm_type");
    const bool gathers = type == 2;
    const bool reduces_all = type == 0;
    const std::int64_t message = gathers ? size_of(node) : size_of(node) / n;
    return (reduces_all ? 2 : 1) * (n - 1) * (message * network_.per_byte + network_.latency);
  }

  void complete(const Node& node) {
    time_of(node).done = true;
    time_of(node).end = now_;
    if (of(node).type == kCompute) computes_[node.first] = false;
    if (of(node).type == kSend || of(node).type == kCollective) communicates_[node.first] = false;
    for (const std::size_t next : dependents_[node])
      if (--waits_for_.at({node.first, next}) == 0)
        free_[node.first].insert(traces_[node.first].nodes[next].id);
  }

  [[nodiscard]] const ChakraNode& of(const Node& node) const {
    return traces_[node.first].nodes[node.second];
  }
  [[nodiscard]] AstraTime& time_of(const Node& node) { return time_[node.first][node.second]; }
  [[nodiscard]] std::int64_t size_of(const Node& node) const {
    return static_cast<std::int64_t>(of(node).number.at("comm_size"));
  }

  const std::vector<ChakraTrace>& traces_;
  const std::map<std::string, int>& members_;  ///< how many a group has
  AstraNetwork network_;
  AstraSlots slots_;
  std::int64_t now_ = 0;
  std::vector<std::vector<AstraTime>> time_;                    ///< index: rank, place
  std::vector<std::map<std::uint64_t, std::size_t>> place_of_;  ///< index: rank; by id
  std::vector<std::set<std::uint64_t>> free_;                   ///< index: rank; ids
  std::vector<bool> computes_, communicates_;                   ///< index: rank
  std::map<Node, std::size_t> waits_for_;
  std::map<Node, std::vector<std::size_t>> dependents_;  ///< places on the same rank
  std::map<Envelope, std::int64_t> arrives_;
  std::map<Envelope, Node> posted_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::int64_t> link_free_;
  std::map<std::pair<std::string, std::size_t>, int> turn_;
  std::map<std::pair<std::string, int>, std::vector<Node>> joined_;
  using Completion = std::pair<std::int64_t, Node>;
  std::priority_queue<Completion, std::vector<Completion>, std::greater<>> completions_;
};

}  // namespace longhaul::testing
