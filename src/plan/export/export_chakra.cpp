#include <algorithm>
#include <cstdlib>
#include <map>
#include <ostream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/index.hpp"
#include "plan/export/export.hpp"
#include "plan/export/protobuf.hpp"

namespace longhaul::plan {
namespace {

constexpr const char* kSchemaVersion = "0.0.4";

namespace field {
namespace metadata {
constexpr int kVersion = 1;
}
namespace node {
constexpr int kId = 1, kName = 2, kType = 3, kControl = 4, kData = 5, kDuration = 7,
              kAttribute = 10;
}
namespace attribute {
constexpr int kName = 1, kInt32 = 7, kInt64 = 9, kBool = 27, kString = 29;
}
}  // namespace field

std::uint64_t node_type(OpKind kind) {
  switch (kind) {
    case OpKind::compute: return 4;
    case OpKind::send: return 5;
    case OpKind::recv: return 6;
    case OpKind::collective: return 7;
  }
  return 0;
}

ProtobufMessage attribute(std::string_view name, int field, std::uint64_t value) {
  return ProtobufMessage{}.text(field::attribute::kName, name).number(field, value);
}

std::string block_text(const Op& op) {
  std::string text = fmt::format("{}{}{}", op.chunk, to_string(op.block_kind), op.microbatch);
  if (op.parts > 1) text += fmt::format(".{}/{}", op.part, op.parts);
  return text;
}

std::string message_text(const Plan& plan, const Op& op) {
  if (!is_step(op)) return block_text(op);
  return fmt::format("step {} of {} {}", op.microbatch, to_text(op.collective),
                     plan.stepped[stepped_of(op)].chunk);
}

std::string node_name(const Plan& plan, const Op& op) {
  switch (op.kind) {
    case OpKind::compute: return block_text(op);
    case OpKind::send: return fmt::format("send {} to {}", message_text(plan, op), index(op.peer));
    case OpKind::recv:
      return fmt::format("recv {} from {}", message_text(plan, op), index(op.peer));
    case OpKind::collective: break;
  }
  return fmt::format("{} {}", to_text(op.collective), op.chunk);
}

/// Ranks that meet in collectives, each set once, by the number of its first.
struct Groups {
  std::map<std::vector<std::size_t>, int> number;

  explicit Groups(const Plan& plan) {
    for (const std::vector<OpId>& members : plan.collectives)
      number.try_emplace(ranks_of(plan, members), static_cast<int>(number.size()) + 1);
  }
  static std::vector<std::size_t> ranks_of(const Plan& plan, const std::vector<OpId>& members) {
    std::vector<std::size_t> ranks;
    for (const OpId member : members) ranks.push_back(index(plan.rank_of(member)));
    return ranks;
  }
};

/// Whole microseconds whose sum keeps to the sum of the exact times.
class WholeMicroseconds {
public:
  std::uint64_t next(Duration exact) {
    constexpr std::int64_t kMicrosecond = 1000;
    passed_ += exact.count();
    const std::int64_t until = (passed_ + kMicrosecond / 2) / kMicrosecond;
    const std::int64_t whole = until - told_;
    told_ = until;
    error_ += std::abs(whole * kMicrosecond - exact.count());
    return static_cast<std::uint64_t>(whole);
  }
  [[nodiscard]] Duration error() const { return Duration{error_}; }

private:
  std::int64_t passed_ = 0;  ///< ns
  std::int64_t told_ = 0;    ///< us
  std::int64_t error_ = 0;   ///< ns
};

class ChakraWriter {
public:
  ChakraWriter(const Plan& plan, Rank rank)
      : plan_{plan}, rank_{rank}, groups_{plan}, tag_(plan.ops.size()) {
    std::map<std::pair<Rank, Rank>, std::uint64_t> next;
    for (std::size_t i = 0; i < plan.ops.size(); ++i) {
      const Op& op = plan.ops[i];
      if (op.kind != OpKind::send) continue;
      tag_[i] = tag_[op.match] =
          next[{plan.rank_of(OpId{static_cast<std::uint32_t>(i)}), op.peer}]++;
    }
  }

  ChakraRounding write(std::ostream& out) {
    out << ProtobufMessage{}.text(field::metadata::kVersion, kSchemaVersion).delimited();
    for (const Lane& lane : plan_.lanes) {
      if (lane.rank != rank_) continue;
      WholeMicroseconds time;
      for (std::uint32_t i = 0; i < lane.count; ++i) {
        const OpId id{static_cast<std::uint32_t>(index(lane.first)) + i};
        out << node(lane, id, time.next(plan_.op(id).duration)).delimited();
      }
      if (lane.kind == OpKind::compute) rounding_ = {lane.count, time.error()};
    }
    if (!out)
      fail("the execution trace cannot be written (the output fails). Check that there is space.");
    return rounding_;
  }

private:
  [[nodiscard]] ProtobufMessage node(const Lane& lane, OpId id, std::uint64_t duration) const {
    const Op& op = plan_.op(id);
    ProtobufMessage node;
    node.number(field::node::kId, index(id))
        .text(field::node::kName, node_name(plan_, op))
        .number(field::node::kType, node_type(op.kind));
    // A message would wait until the one before has arrived, on a lane or of a collective.
    const bool is_message = op.kind == OpKind::send || op.kind == OpKind::recv;
    const bool in_turn = id != lane.first && !is_message;
    if (in_turn) node.number(field::node::kControl, index(id) - 1);
    for (const OpId before : plan_.after_of(id))
      if (!is_message || plan_.op(before).kind != OpKind::send)
        node.number(field::node::kData, index(before));
    if (in_turn) node.number(field::node::kData, index(id) - 1);
    node.number(field::node::kDuration, duration);
    add_attributes(node, id);
    return node;
  }

  /// ASTRA-sim takes what a rank has before the collective: of an all-gather its share.
  [[nodiscard]] Bytes told_size(const Op& op) const {
    if (op.kind != OpKind::collective || facts_of(op.collective).brings != Portion::share)
      return op.size;
    const auto members = static_cast<std::int64_t>(plan_.collectives[op.match].size());
    return (op.size + Bytes{members - 1}) / members;
  }

  void add_attributes(ProtobufMessage& node, OpId id) const {
    const Op& op = plan_.op(id);
    const auto add = [&](std::string_view name, int field, std::uint64_t value) {
      node.message(field::node::kAttribute, attribute(name, field, value));
    };
    add("is_cpu_op", field::attribute::kBool, 0);
    if (op.kind == OpKind::compute) return;
    add("comm_size", field::attribute::kInt64, static_cast<std::uint64_t>(told_size(op).count()));
    if (op.kind == OpKind::collective) {
      add("comm_type", field::attribute::kInt64, facts_of(op.collective).number_in_chakra);
      const int group = groups_.number.at(Groups::ranks_of(plan_, plan_.collectives[op.match]));
      node.message(field::node::kAttribute,
                   ProtobufMessage{}
                       .text(field::attribute::kName, "pg_name")
                       .text(field::attribute::kString, std::to_string(group)));
      return;
    }
    const bool sends = op.kind == OpKind::send;
    add("comm_src", field::attribute::kInt32, index(sends ? rank_ : op.peer));
    add("comm_dst", field::attribute::kInt32, index(sends ? op.peer : rank_));
    add("comm_tag", field::attribute::kInt32, tag_[index(id)]);
  }

  const Plan& plan_;
  Rank rank_;
  Groups groups_;
  std::vector<std::uint64_t> tag_;  ///< index: op; counts the messages of an ordered pair of ranks
  ChakraRounding rounding_;
};

}  // namespace

ChakraRounding export_chakra(const Plan& plan, Rank rank, std::ostream& out) {
  return ChakraWriter{plan, rank}.write(out);
}

std::string chakra_groups(const Plan& plan) {
  const Groups groups{plan};
  if (groups.number.empty()) return {};
  std::map<int, std::vector<std::size_t>> by_number;
  for (const auto& [ranks, number] : groups.number) by_number[number] = ranks;
  std::string text = "{";
  for (const auto& [number, ranks] : by_number)
    text +=
        fmt::format("{}\n  \"{}\": [{}]", number == 1 ? "" : ",", number, fmt::join(ranks, ", "));
  return text + "\n}\n";
}

}  // namespace longhaul::plan
