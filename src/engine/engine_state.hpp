#pragma once

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "comm/transport.hpp"
#include "engine/links.hpp"
#include "engine/links/link_conditions.hpp"
#include "engine/op_states.hpp"
#include "engine/options.hpp"
#include "engine/payloads/data_plane.hpp"
#include "engine/payloads/message.hpp"
#include "engine/payloads/relay_buffers.hpp"
#include "engine/tags.hpp"
#include "engine/timers.hpp"

namespace longhaul {

/// What an unfinished operation of the transport is for.
enum class Role : std::uint8_t {
  header_sent,
  payload_sent,
  go_ahead_sent,
  header_received,
  payload_received,
  go_ahead_received,
  gathering,
  collective,
};
struct Expected {
  Role role{};
  OpId op = kNone<OpId>;  ///< none: the gathering of all ranks
};

/// How long real transfers took, by the receivers' clocks (header seen to payload there).
struct TransferCost {
  std::int64_t transfers = 0;
  Duration total{};
  Duration longest{};
};

/// What the parts of the engine share.
struct EngineState {
  EngineState(const Plan& the_plan, const HostRanks& the_board, Transport& the_transport,
              DataPlane& the_cargo, const EngineOptions& the_options, std::uint32_t run_number)
      : plan{the_plan},
        host_ranks{the_board},
        transport{the_transport},
        data_plane{the_cargo},
        options{the_options},
        run{run_number},
        tags{the_plan, the_board.ranks(), the_transport.tags()},
        relays{the_plan, the_board.self()},
        ops{the_plan, the_board},
        conditions{the_plan} {
    if (emulates()) links.emplace(the_plan, the_board);
    if (options.marks) ops.show_marks();
  }

  [[nodiscard]] bool emulates() const { return options.emulation == Emulation::on; }
  /// Does a transfer have to wait for its receiver's word? A receive that depends on nothing is
  /// posted from the start and needs none: so are all of them in decoupled plans.
  [[nodiscard]] bool needs_go_ahead(OpId send) const {
    return plan.op(OpId{plan.op(send).match}).after_count > 0;
  }
  /// When something begins that waited for `cause` and that we get to at `at`.
  [[nodiscard]] TimePoint begin_at(const Cause& cause, TimePoint at) const {
    if (cause.kind == BoundKind::start) return at;
    return std::clamp(cause.until, at - options.credit, at);
  }
  void expect(RequestId ticket, Role role, OpId op) { expected[ticket] = {role, op}; }

  const Plan& plan;
  const HostRanks& host_ranks;
  Transport& transport;
  DataPlane& data_plane;
  const EngineOptions& options;
  std::uint32_t run = 0;
  int iteration = 0;
  TimePoint began{};           ///< the iteration, on this rank
  std::optional<OpId> struck;  ///< by the fault, in this iteration

  Tags tags;
  RelayBuffers relays;
  OpStates ops;
  LinkConditions conditions;
  Timers timers;
  std::optional<Links> links;  ///< none without emulation: nobody holds anything
  Checks checks;
  std::vector<WrongMessage> wrong;  ///< of this iteration, the first few
  TransferCost transfers;
  int open_transfers = 0;  ///< header seen, payload on its way
  std::unordered_map<RequestId, Expected> expected;
  OpId posted = kNone<OpId>;  ///< last given to the transport, and perhaps not expected yet
};

}  // namespace longhaul
