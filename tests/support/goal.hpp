#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

/// Reads GOAL text by the grammar of LogGOPSim's txt2bin.
namespace longhaul::testing {

struct GoalOp {
  enum class Kind { calc, send, recv };
  Kind kind = Kind::calc;
  int rank = 0;
  std::string label;
  std::int64_t size = 0;  ///< ns or bytes
  int peer = -1;
  std::uint32_t tag = 0;
  int cpu = 0;
  int nic = 0;
  std::vector<std::size_t> requires_end;    ///< index of ops
  std::vector<std::size_t> requires_start;  ///< index of ops
};

struct Goal {
  int ranks = 0;
  std::vector<GoalOp> ops;
};

class GoalReader {
public:
  static Goal read(const std::string& text) { return GoalReader{text}.run(); }

private:
  explicit GoalReader(const std::string& text) : in_{text} {}

  [[noreturn]] void refuse(const std::string& why) const {
    throw std::runtime_error("GOAL line " + std::to_string(line_) + ": " + why);
  }

  Goal run() {
    for (std::string line; std::getline(in_, line);) {
      ++line_;
      std::istringstream words{line};
      std::string first;
      if (!(words >> first)) continue;
      if (first == "num_ranks") {
        goal_.ranks = static_cast<int>(number(words));
      } else if (first == "rank") {
        if (rank_) refuse("a block in a block");
        rank_ = static_cast<int>(number(words));
        if (*rank_ >= goal_.ranks || !seen_.insert(*rank_).second) refuse("which rank?");
        expect(words, "{");
      } else if (first == "}") {
        rank_.reset();
        labels_.clear();
      } else if (!rank_) {
        refuse("outside of a rank");
      } else if (first.back() == ':') {
        read_op(first.substr(0, first.size() - 1), words);
      } else {
        read_dependency(first, words);
      }
      std::string rest;
      if (words >> rest) refuse("unexpected \"" + rest + "\"");
    }
    if (rank_) refuse("a block is open");
    if (static_cast<int>(seen_.size()) != goal_.ranks) refuse("a rank is missing");
    return goal_;
  }

  std::int64_t number(std::istream& words, const std::string& unit = "") const {
    std::string word;
    words >> word;
    const std::size_t digits = word.find_first_not_of("0123456789");
    if (word.empty() || digits == 0) refuse("no number: \"" + word + "\"");
    if (word.substr(std::min(digits, word.size())) != unit) refuse("unit of \"" + word + "\"");
    return std::stoll(word);
  }

  /// Processors and interfaces have 8 bits in the binary file.
  int small_number(std::istream& words) const {
    const std::int64_t read = number(words);
    if (read > 255) refuse("more than 8 bits");
    return static_cast<int>(read);
  }

  void expect(std::istream& words, const std::string& wanted) const {
    std::string word;
    words >> word;
    if (word != wanted) refuse("\"" + wanted + "\" is expected, not \"" + word + "\"");
  }

  void read_op(const std::string& label, std::istream& words) {
    if (label.empty() || !std::isalpha(static_cast<unsigned char>(label[0]))) refuse("label");
    GoalOp op;
    op.label = label;
    op.rank = *rank_;
    std::string kind;
    words >> kind;
    if (kind == "calc") {
      op.size = number(words);
    } else if (kind == "send" || kind == "recv") {
      op.kind = kind == "send" ? GoalOp::Kind::send : GoalOp::Kind::recv;
      op.size = number(words, "b");
      expect(words, kind == "send" ? "to" : "from");
      op.peer = static_cast<int>(number(words));
    } else {
      refuse("unknown op \"" + kind + "\"");
    }
    // In this order, each at most once; calc knows cpu alone.
    for (std::string key; words >> key;) {
      if (key == "tag" && op.kind != GoalOp::Kind::calc) {
        op.tag = static_cast<std::uint32_t>(number(words));
      } else if (key == "cpu") {
        op.cpu = small_number(words);
      } else if (key == "nic" && op.kind != GoalOp::Kind::calc) {
        op.nic = small_number(words);
      } else {
        refuse("unknown key \"" + key + "\"");
      }
    }
    if (!labels_.emplace(label, goal_.ops.size()).second) refuse("a label twice");
    goal_.ops.push_back(op);
  }

  void read_dependency(const std::string& label, std::istream& words) {
    std::string how;
    std::string before;
    words >> how >> before;
    if (how != "requires" && how != "irequires") refuse("\"" + how + "\"");
    if (!labels_.contains(label) || !labels_.contains(before)) refuse("an undefined label");
    GoalOp& op = goal_.ops[labels_[label]];
    (how == "requires" ? op.requires_end : op.requires_start).push_back(labels_[before]);
  }

  std::istringstream in_;
  int line_ = 0;
  std::optional<int> rank_;
  std::set<int> seen_;
  std::map<std::string, std::size_t> labels_;
  Goal goal_;
};

/// For each send the receive that it reaches; throws unless they match one to one.
inline std::map<std::size_t, std::size_t> matched_receives(const Goal& goal) {
  std::map<std::tuple<int, int, std::uint32_t>, std::size_t> sends;
  for (std::size_t i = 0; i < goal.ops.size(); ++i) {
    const GoalOp& op = goal.ops[i];
    if (op.kind != GoalOp::Kind::send) continue;
    if (!sends.emplace(std::tuple{op.rank, op.peer, op.tag}, i).second)
      throw std::runtime_error("two sends of one tag");
  }
  std::map<std::size_t, std::size_t> matched;
  for (std::size_t i = 0; i < goal.ops.size(); ++i) {
    const GoalOp& op = goal.ops[i];
    if (op.kind != GoalOp::Kind::recv) continue;
    const auto send = sends.find({op.peer, op.rank, op.tag});
    if (send == sends.end() || goal.ops[send->second].size != op.size)
      throw std::runtime_error("a receive without its send: " + op.label);
    matched[send->second] = i;
    sends.erase(send);
  }
  if (!sends.empty()) throw std::runtime_error("a send without its receive");
  return matched;
}

}  // namespace longhaul::testing
