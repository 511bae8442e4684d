#include "harness/ranks/device_and_transport.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "comm/cuda/device_backends.hpp"
#include "comm/payload_transport.hpp"
#include "cuda/accelerator.hpp"
#include "device/cpu_devices.hpp"
#include "device/cuda/factories.hpp"
#include "engine/payloads/synthetic_data_plane.hpp"
#include "harness/ranks/gather_texts.hpp"
#include "harness/ranks/main.hpp"
#include "host/machine.hpp"
#include "host/rank_accelerator.hpp"
#include "nn/cpu/cpu_tensor_ops.hpp"
#include "nn/cuda/factory.hpp"

namespace longhaul::harness {
namespace {

/// This rank's among those of its host.
int gpu_of(const engine::Ranks& ranks) {
  const std::string why = cuda::why_no_accelerator();
  if (!why.empty()) fail("--device cuda cannot compute here ({}). Use --device cpu.", why);
  return host::accelerator_of(ranks.host_ranks());
}

using Json = nlohmann::json;

/// This rank's payload place; "missing": the reason for which it has no GPU, though it should.
Json place_of(const engine::Ranks& ranks, DeviceKind device) {
  Json place = {{"host", index(ranks.host_ranks().host_of(ranks.self()))},
                {"host_name", host::host_name()},
                {"gpu", ""},
                {"beyond_reach", Json::array()},
                {"missing", ""}};
  if (device == DeviceKind::cpu) return place;
  place["missing"] = cuda::why_no_accelerator();
  if (place["missing"] != "") return place;
  const auto index = static_cast<std::size_t>(host::accelerator_of(ranks.host_ranks()));
  const cuda::AcceleratorInfo gpu = cuda::accelerators().at(index);
  place["gpu"] = gpu.uuid;
  place["beyond_reach"] = gpu.beyond_reach;
  return place;
}

comm::TransportChoice choose(comm::TransportKind asked, const std::vector<std::string>& texts) {
  std::vector<comm::PayloadPlace> places;
  for (const std::string& text : texts) {
    const Json place = Json::parse(text);
    const std::string missing = place["missing"];
    if (!missing.empty())
      fail("--device cuda: rank {} on {} has no GPU ({}). Use --device cpu.", places.size(),
           place["host_name"].get<std::string>(), missing);
    places.push_back({place["host"], place["host_name"], place["gpu"], place["beyond_reach"]});
  }
  return comm::choose_transport(asked, places, !comm::nccl_version().empty());
}

}  // namespace

DeviceKind device_kind_of(const std::string& text) {
  if (const auto kind = from_string<DeviceKind>(text)) return *kind;
  fail("--device {} is neither cpu nor cuda. Write --device cpu.", text);
}

std::unique_ptr<nn::TensorOps> make_tensor_ops(DeviceKind kind, const engine::Ranks& ranks) {
  if (kind == DeviceKind::cpu) return nn::make_cpu_math();
  return nn::make_cuda_tensor_ops(gpu_of(ranks));
}

std::unique_ptr<engine::Device> make_timed_device(DeviceKind kind, const engine::Ranks& ranks,
                                                  Duration credit) {
  if (kind == DeviceKind::cpu) return std::make_unique<device::TimedDevice>();
  return device::make_cuda_timed_device(gpu_of(ranks), credit);
}

std::unique_ptr<engine::DataPlane> make_data_plane(DeviceKind kind, const engine::Ranks& ranks,
                                                   const Plan& plan,
                                                   const engine::EngineOptions& options) {
  if (kind == DeviceKind::cpu)
    return std::make_unique<engine::SyntheticDataPlane>(plan, ranks.self(), options.run.seed,
                                                        options.payload, options.vector);
  return device::make_cuda_data_plane(gpu_of(ranks), plan, ranks.self(), options.run.seed,
                                      options.payload);
}

std::unique_ptr<engine::Device> make_layer_device(DeviceKind kind, const engine::Ranks& ranks,
                                                  engine::BlockWork& work, nn::TensorOps& math) {
  if (kind == DeviceKind::cpu)
    return std::make_unique<device::LayerDevice>(work, ranks.host_ranks());
  return device::make_cuda_layer_device(gpu_of(ranks), math, work);
}

std::string transport_help() { return "what carries payloads: " + comm::transport_names(); }

comm::TransportChoice take_transport(engine::Ranks& ranks, comm::TransportKind asked,
                                     DeviceKind device) {
  const auto texts = gather_texts(ranks.world(), place_of(ranks, device).dump());
  const std::string text = on_rank0(ranks.world(), [&] {
    const comm::TransportChoice choice = choose(asked, texts);
    return Json{{"kind", comm::to_string(choice.kind)}, {"why", choice.why}}.dump();
  });
  const Json chosen = Json::parse(text);
  const comm::TransportChoice choice{comm::transport_kind_of(chosen["kind"]), chosen["why"]};
  if (device == DeviceKind::cuda)
    ranks.carry_payloads_by(std::make_unique<comm::PayloadTransport>(
        ranks.host_transport(),
        comm::make_device_backend(choice.kind, ranks.host_transport(), ranks.world(),
                                  ranks.host_ranks(), host::accelerator_of(ranks.host_ranks()))));
  return choice;
}

nlohmann::ordered_json transport_json(const comm::TransportChoice& choice) {
  nlohmann::ordered_json transport = {{"name", comm::to_string(choice.kind)}, {"why", choice.why}};
  if (choice.kind == comm::TransportKind::nccl) transport["nccl"] = comm::nccl_version();
  return transport;
}

std::string transport_note(const nlohmann::json& environment) {
  if (!environment.contains("transport")) return "";
  const Json& transport = environment["transport"];
  if (transport["name"] == "mpi" && transport["why"] != "asked for") return "";
  return fmt::format("payloads over {} ({})\n", transport["name"].get<std::string>(),
                     transport["why"].get<std::string>());
}

}  // namespace longhaul::harness
