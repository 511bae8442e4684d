#include "runtime/fault.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <string>
#include <vector>

#include <unistd.h>

#include "base/error.hpp"
#include "runtime/rank_ops.hpp"

namespace longhaul {
namespace {

struct Name {
  std::string_view text;
  FaultKind kind;
};
constexpr Name kNames[] = {{"kill", FaultKind::kill},         {"freeze", FaultKind::freeze},
                           {"norecv", FaultKind::no_receive}, {"lose", FaultKind::lose},
                           {"corrupt", FaultKind::corrupt},   {"mixup", FaultKind::mix_up},
                           {"twice", FaultKind::send_twice}};

/// The kind of op that it strikes.
OpKind op_kind_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::kill:
    case FaultKind::freeze: return OpKind::compute;
    case FaultKind::no_receive: return OpKind::recv;
    default: return OpKind::send;
  }
}

[[noreturn]] void refuse(std::string_view text) {
  fail(
      "fault \"{}\" is not one. Write KIND@RANK:OPINDEX[:ITERATION] with kill, freeze, norecv, "
      "lose, corrupt, mixup or twice.",
      text);
}

std::vector<int> numbers_of(std::string_view list, std::string_view whole) {
  std::vector<int> numbers;
  while (true) {
    const std::size_t end = std::min(list.find(':'), list.size());
    int value = 0;
    const auto [at, problem] = std::from_chars(list.data(), list.data() + end, value);
    if (problem != std::errc{} || at != list.data() + end || value < 0) refuse(whole);
    numbers.push_back(value);
    if (end == list.size()) return numbers;
    list.remove_prefix(end + 1);
  }
}

}  // namespace

Fault parse_fault(std::string_view text) {
  const std::size_t at = text.find('@');
  if (at == std::string_view::npos) refuse(text);
  const std::string_view name = text.substr(0, at);
  const auto known = std::ranges::find(kNames, name, &Name::text);
  if (known == std::end(kNames)) refuse(text);
  Fault fault;
  fault.kind = known->kind;
  const std::vector<int> numbers = numbers_of(text.substr(at + 1), text);
  if (numbers.size() < 2 || numbers.size() > 3) refuse(text);
  fault.rank = Rank{numbers[0]};
  fault.op_index = numbers[1];
  if (numbers.size() == 3) fault.iteration = numbers[2];
  return fault;
}

std::optional<OpId> struck_op(const std::optional<Fault>& fault, const Plan& plan, Rank self,
                              int iteration) {
  if (!fault || fault->rank != self || fault->iteration != iteration) return std::nullopt;
  const OpRange mine = ops_of_rank(plan, self);
  for (std::uint32_t i = static_cast<std::uint32_t>(fault->op_index); i < mine.count; ++i) {
    const OpId id{mine.first + i};
    if (plan.op(id).kind == op_kind_of(fault->kind)) return id;
  }
  return std::nullopt;
}

void strike(const Fault& fault) {
  if (fault.kind == FaultKind::kill) kill(getpid(), SIGKILL);
  if (fault.kind == FaultKind::freeze) kill(getpid(), SIGSTOP);
}

}  // namespace longhaul
