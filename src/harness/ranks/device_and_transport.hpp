#pragma once

#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/listed_enum.hpp"
#include "comm/registry/transports.hpp"
#include "engine/device.hpp"
#include "engine/options.hpp"
#include "engine/payloads/data_plane.hpp"
#include "engine/ranks.hpp"
#include "nn/tensor_ops.hpp"

namespace longhaul::harness {

#define LONGHAUL_DEVICE_KINDS(X) X(cpu, "cpu") X(cuda, "cuda")
LONGHAUL_LISTED_ENUM(DeviceKind, LONGHAUL_DEVICE_KINDS);
/// --device; throws Error for what is none.
[[nodiscard]] DeviceKind device_kind_of(const std::string& text);

/// The tensor operations that this rank computes with. Throws Error where the device is not there.
[[nodiscard]] std::unique_ptr<nn::TensorOps> make_tensor_ops(DeviceKind kind,
                                                             const engine::Ranks& ranks);
/// Blocks that take their modelled time.
[[nodiscard]] std::unique_ptr<engine::Device> make_timed_device(DeviceKind kind,
                                                                const engine::Ranks& ranks,
                                                                Duration credit);
/// A data plane with synthetic payloads in the memory of such a device.
[[nodiscard]] std::unique_ptr<engine::DataPlane> make_data_plane(
    DeviceKind kind, const engine::Ranks& ranks, const Plan& plan,
    const engine::EngineOptions& options);
/// Blocks of `work`, which computes with `math`; both outlive the device.
[[nodiscard]] std::unique_ptr<engine::Device> make_layer_device(DeviceKind kind,
                                                                const engine::Ranks& ranks,
                                                                engine::BlockWork& work,
                                                                nn::TensorOps& math);

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
