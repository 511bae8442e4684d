#include "cuda/accelerator.hpp"

#include <array>

#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>

#include "base/index.hpp"
#include "cuda/check.hpp"

namespace longhaul::cuda {
namespace {

/// Devices, or the error that says why there are none; never throws, and no driver is no crash.
cudaError_t count_devices(int& count) {
  count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess) {
    count = 0;
    static_cast<void>(cudaGetLastError());
  }
  return code;
}

std::string version_text(int version) {  // 13020: 13.2
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

/// As nvidia-smi writes it.
std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

bool reaches(int from, int to) {
  int can = 1;
  if (from != to) check(cudaDeviceCanAccessPeer(&can, from, to));
  return can != 0;
}

nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t handle = nvtxDomainCreateA("longhaul");
  return handle;
}

}  // namespace

bool built_with_cuda() { return true; }

std::vector<AcceleratorInfo> accelerators() {
  std::vector<AcceleratorInfo> found;
  int count = 0, driver = 0;
  if (count_devices(count) != cudaSuccess) return found;
  check(cudaDriverGetVersion(&driver));
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, index));
    found.push_back({properties.name, version_text(driver), properties.multiProcessorCount,
                     properties.totalGlobalMem, uuid_text(properties.uuid)});
  }
  for (int from = 0; from < count; ++from)
    for (int to = 0; to < count; ++to)
      if (!reaches(from, to)) found[at(from)].beyond_reach.push_back(found[at(to)].uuid);
  return found;
}

std::string why_no_accelerator() {
  int count = 0, driver = 0;
  const cudaError_t code = count_devices(count);
  if (code == cudaSuccess && count > 0) return "";
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
    return "no driver: libcuda.so.1 cannot be loaded, or no NVIDIA driver is running";
  if (code == cudaSuccess || code == cudaErrorNoDevice)
    return "no device: the driver is here, and shows no GPU (CUDA_VISIBLE_DEVICES?)";
  return fmt::format("no device: {} ({})", cudaGetErrorString(code), cudaGetErrorName(code));
}

Mark begin_mark(const std::string& name) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name.c_str();
  return Mark{nvtxDomainRangeStartEx(domain(), &attributes)};
}

void end_mark(Mark mark) { nvtxDomainRangeEnd(domain(), static_cast<nvtxRangeId_t>(mark)); }

}  // namespace longhaul::cuda
