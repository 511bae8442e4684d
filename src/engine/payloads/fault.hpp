#pragma once

#include <optional>
#include <string_view>

#include "base/ids.hpp"
#include "base/listed_enum.hpp"
#include "plan/plan.hpp"

namespace longhaul::engine {

/// kill, freeze, no_receive, device and perturb are faults of a rank; the others one message that
/// it sends or takes on. swap: it carries what the message before it on its lane did; its header
/// stays right. perturb: a weight of the rank is another when the iteration begins (real layers).
/// Of a message of a collective (real layers): omit, what it adds is lost; repeat, it is added
/// twice; stale, it brings what it brought in the iteration before.
#define LONGHAUL_FAULT_KINDS(X) \
  X(kill, "kill")               \
  X(freeze, "freeze")           \
  X(no_receive, "norecv")       \
  X(lose, "lose")               \
  X(corrupt, "corrupt")         \
  X(mislabel, "mixup")          \
  X(send_twice, "twice")        \
  X(swap, "swap")               \
  X(device, "device") X(perturb, "perturb") X(omit, "omit") X(repeat, "repeat") X(stale, "stale")
LONGHAUL_LISTED_ENUM(FaultKind, LONGHAUL_FAULT_KINDS);
/// The target of a fault: a block or message, as its kind says; a send; a receive whose transfer
/// has begun; the writing of rows.
enum class FaultAim { op, send, recv, write };

/// A fault on purpose, for tests of the watchdog: what happens to one rank at one of its ops.
struct Fault {
  FaultKind kind = FaultKind::kill;
  Rank rank{};
  FaultAim aim = FaultAim::op;
  int op_index = 0;  ///< among the rank's ops, in order of id; or of those of `leg`
  /// Aims at messages of that leg: at sends, for no_receive at receives. `whole`: at any op.
  MessageLeg leg = MessageLeg::whole;
  bool relayed = false;  ///< aims at what the rank takes on for another, on whatever leg
  int iteration = 0;
};

/// "kill@RANK:OPINDEX[:ITERATION]", likewise freeze@, norecv@, lose@, corrupt@, mixup@, twice@
/// and swap@. Each takes the first op of its kind (block, receive or send) at or after OPINDEX.
/// For OPINDEX may stand scatterN, wanN or gatherN: the rank's send (norecv: receive) N of that
/// leg; or relayN: number N of those that it takes on for others (norecv: that it receives to do
/// so). kill@ and freeze@ also take sendN and recvN, the rank's send or receive N, and write0: the
/// file of its rows is half-written. device@ makes the rank's device fail with a block, as a CUDA
/// error would. swap@, perturb@, omit@, repeat@ and stale@ change what real layers compute; omit
/// and repeat take a send that is added up by its receiver, stale one that is not.
[[nodiscard]] Fault parse_fault(std::string_view text);

/// The op of the fault when `self` runs `iteration`; nullopt: none.
[[nodiscard]] std::optional<OpId> find_fault_op(const std::optional<Fault>& fault, const Plan& plan,
                                                Rank self, int iteration);
/// Is it a fault of real layers alone? Synthetic payloads are as right without it.
[[nodiscard]] bool is_of_real_layers(const Fault& fault);
/// And, of these, those of an iteration under an overlap alone?
[[nodiscard]] bool is_of_operators(const Fault& fault);
/// Kills or stops this process; nothing for the others.
void inject_fault(const Fault& fault);
/// Is it a fault of `self` while it writes the rows of `iteration`?
[[nodiscard]] bool strikes_write(const std::optional<Fault>& fault, Rank self, int iteration);

}  // namespace longhaul::engine
