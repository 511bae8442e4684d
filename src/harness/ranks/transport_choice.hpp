#pragma once

#include <nlohmann/json_fwd.hpp>

#include "comm/registry/transports.hpp"
#include "engine/ranks.hpp"
#include "harness/ranks/rank_device.hpp"

namespace longhaul::harness {

/// Help text of --transport.
[[nodiscard]] std::string transport_help();

/// Collective, before anything is run: chooses what carries payloads of blocks on that kind of
/// device, and puts it in place. What cannot be becomes an CollectiveError that says what to use.
comm::TransportChoice take_transport(engine::Ranks& ranks, comm::TransportKind asked,
                                     DeviceKind device);

/// "transport" of a record's environment.
[[nodiscard]] nlohmann::ordered_json transport_json(const comm::TransportChoice& choice);
/// A line below the table; empty where payloads lie in the hosts' memory.
[[nodiscard]] std::string transport_note(const nlohmann::json& environment);

}  // namespace longhaul::harness
