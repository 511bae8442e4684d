#include "engine/payloads/fault.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <string>
#include <vector>

#include <unistd.h>

#include "base/error.hpp"
#include "base/index.hpp"
#include "engine/payloads/relay_buffers.hpp"
#include "plan/plan.hpp"

namespace longhaul::engine {
namespace {

constexpr std::pair<std::string_view, FaultAim> kAims[] = {
    {"send", FaultAim::send}, {"recv", FaultAim::recv}, {"write", FaultAim::write}};
constexpr std::string_view kRelay = "relay";

/// The kind of op that it is a fault of.
OpKind op_kind_of(const Fault& fault) {
  if (fault.aim == FaultAim::recv) return OpKind::recv;
  const bool message =
      fault.relayed || fault.leg != MessageLeg::whole || fault.aim == FaultAim::send;
  switch (fault.kind) {
    case FaultKind::kill:
    case FaultKind::freeze: return message ? OpKind::send : OpKind::compute;
    case FaultKind::device:
    case FaultKind::perturb: return OpKind::compute;
    case FaultKind::no_receive: return OpKind::recv;
    default: return OpKind::send;
  }
}

/// Of a send: does its receiver add it up? Nothing where it belongs to no collective.
std::optional<bool> adds(const Plan& plan, OpId send) {
  if (!is_step(plan.op(send))) return std::nullopt;
  const SteppedCollective& stepped = plan.stepped[stepped_of(plan.op(send))];
  const auto message = std::ranges::find(stepped.sends, send) - stepped.sends.begin();
  return stepped.steps->messages[to_size(message)].adds;
}

bool is_aimed_at(const Fault& fault, const Plan& plan, const RelayTable& forwards, OpId id) {
  if (fault.kind == FaultKind::swap &&
      (plan.lane_of(id).first == id || forwards.recv_before(id) != kNone<OpId>))
    return false;
  if (is_of_operators(fault))
    return adds(plan, id) == std::optional{fault.kind != FaultKind::stale};
  if (fault.relayed)
    return forwards.recv_before(id) != kNone<OpId> || forwards.send_after(id) != kNone<OpId>;
  return fault.leg == MessageLeg::whole || plan.op(id).leg == fault.leg;
}

[[noreturn]] void refuse(std::string_view text) {
  fail(
      "fault \"{}\" is not one. Write KIND@RANK:OPINDEX[:ITERATION] with kill, freeze, norecv, "
      "lose, corrupt, mixup, twice, swap, device, perturb, omit, repeat or stale; for OPINDEX also "
      "scatterN, wanN, gatherN or relayN, for kill and freeze sendN, recvN or write0.",
      text);
}

/// Takes "wan" off "wan3:1".
void aim(Fault& fault, std::string_view& text) {
  const bool strikes_rank = fault.kind == FaultKind::kill || fault.kind == FaultKind::freeze;
  for (const auto& [name, target] : kAims) {
    if (!strikes_rank || !text.starts_with(name)) continue;
    fault.aim = target;
    text.remove_prefix(name.size());
    return;
  }
  if (text.starts_with(kRelay)) {
    fault.relayed = true;
    text.remove_prefix(kRelay.size());
    return;
  }
  for (const MessageLeg leg : every<MessageLeg>()) {
    const std::string_view name = longhaul::to_string(leg);
    if (leg == MessageLeg::whole || !text.starts_with(name)) continue;
    fault.leg = leg;
    text.remove_prefix(name.size());
    return;
  }
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
  const auto kind = from_string<FaultKind>(text.substr(0, at));
  if (!kind) refuse(text);
  Fault fault;
  fault.kind = *kind;
  std::string_view rest = text.substr(at + 1);
  const std::size_t colon = rest.find(':');
  if (colon == std::string_view::npos) refuse(text);
  const std::vector<int> rank = numbers_of(rest.substr(0, colon), text);
  rest.remove_prefix(colon + 1);
  aim(fault, rest);
  const std::vector<int> numbers = numbers_of(rest, text);
  if (numbers.size() > 2) refuse(text);
  fault.rank = Rank{rank[0]};
  fault.op_index = numbers[0];
  if (numbers.size() == 2) fault.iteration = numbers[1];
  return fault;
}

std::optional<OpId> find_fault_op(const std::optional<Fault>& fault, const Plan& plan, Rank self,
                                  int iteration) {
  if (!fault || fault->rank != self || fault->iteration != iteration) return std::nullopt;
  if (fault->aim == FaultAim::write) return std::nullopt;
  const bool of_leg =
      fault->relayed || fault->leg != MessageLeg::whole || fault->aim != FaultAim::op;
  const RelayTable forwards{plan, self};
  const OpRange mine = ops_of_rank(plan, self);
  int place = 0;
  for (std::uint32_t i = 0; i < mine.count; ++i) {
    const OpId id{mine.first + i};
    if (!of_leg) place = static_cast<int>(i);
    if (plan.op(id).kind != op_kind_of(*fault) || !is_aimed_at(*fault, plan, forwards, id))
      continue;
    if (place >= fault->op_index) return id;
    ++place;
  }
  return std::nullopt;
}

bool strikes_write(const std::optional<Fault>& fault, Rank self, int iteration) {
  return fault && fault->aim == FaultAim::write && fault->rank == self &&
         fault->iteration == iteration;
}

bool is_of_operators(const Fault& fault) {
  return fault.kind == FaultKind::omit || fault.kind == FaultKind::repeat ||
         fault.kind == FaultKind::stale;
}

bool is_of_real_layers(const Fault& fault) {
  return fault.kind == FaultKind::perturb || is_of_operators(fault);
}

void inject_fault(const Fault& fault) {
  if (fault.kind == FaultKind::kill) kill(getpid(), SIGKILL);
  if (fault.kind == FaultKind::freeze) kill(getpid(), SIGSTOP);
}

}  // namespace longhaul::engine
