#include "device.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "device_memory/memory.hpp"

namespace longhaul::on_host {

thread_local bool in_host_function = false;

namespace {

constexpr int kVersion = 13000;
thread_local int device_of_thread = 0;
thread_local cudaError_t last_error = cudaSuccess;
std::atomic<cudaError_t> broken{cudaSuccess};

long number_of(const char* name, long otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtol(text, nullptr, 10);
}

}  // namespace

int device_count() {
  static const int count = static_cast<int>(number_of("LONGHAUL_ON_HOST_DEVICES", 1));
  return count;
}

std::size_t device_memory() {
  static const auto bytes =
      static_cast<std::size_t>(number_of("LONGHAUL_ON_HOST_MEMORY", 16L << 30));
  return bytes;
}

int current_device() { return device_of_thread; }

cudaError_t sticky_error() { return broken.load(); }

void set_sticky_error(cudaError_t code) {
  cudaError_t none = cudaSuccess;
  broken.compare_exchange_strong(none, code);
}

cudaError_t note(cudaError_t code) {
  if (code != cudaSuccess) last_error = code;
  return code;
}

cudaError_t call(const std::function<cudaError_t()>& body) {
  if (in_host_function) return note(cudaErrorNotPermitted);
  if (device_count() == 0) return note(cudaErrorInsufficientDriver);
  if (sticky_error() != cudaSuccess) return note(sticky_error());
  return note(body());
}

cudaError_t refuse(cudaError_t code, const char* why) {
  std::fprintf(stderr, "cuda_on_host: %s: %s\n", cudaGetErrorName(code), why);
  return code;
}

}  // namespace longhaul::on_host

using namespace longhaul::on_host;

cudaError_t cudaGetLastError() {
  if (longhaul::on_host::sticky_error() != cudaSuccess) return longhaul::on_host::sticky_error();
  const cudaError_t code = last_error;
  last_error = cudaSuccess;
  return code;
}

cudaError_t cudaPeekAtLastError() {
  return longhaul::on_host::sticky_error() != cudaSuccess ? longhaul::on_host::sticky_error()
                                                          : last_error;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  return longhaul::on_host::call([&] {
    *count = longhaul::on_host::device_count();
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return longhaul::on_host::call([&] {
    if (device < 0 || device >= longhaul::on_host::device_count()) return cudaErrorInvalidDevice;
    device_of_thread = device;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return longhaul::on_host::call([&] {
    *device = longhaul::on_host::current_device();
    return cudaSuccess;
  });
}

cudaError_t cudaSetDeviceFlags(unsigned) {
  return longhaul::on_host::call([] { return cudaSuccess; });
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned) { return cudaSetDevice(device); }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return longhaul::on_host::call([&] {
    if (device < 0 || device >= longhaul::on_host::device_count()) return cudaErrorInvalidDevice;
    *properties = {};
    std::snprintf(properties->name, sizeof properties->name, "stand-in for a GPU, on the host");
    properties->uuid.bytes[0] = 'L';
    properties->uuid.bytes[15] = static_cast<char>(device);
    properties->totalGlobalMem = longhaul::on_host::device_memory();
    properties->sharedMemPerBlock = 48U << 10U;
    properties->sharedMemPerBlockOptin = 227U << 10U;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = 1024;
    properties->maxThreadsPerMultiProcessor = 2048;
    properties->multiProcessorCount = 4;
    properties->major = 9;
    properties->l2CacheSize = 1 << 20;
    properties->asyncEngineCount = 2;
    properties->concurrentKernels = properties->unifiedAddressing = 1;
    properties->pciBusID = device + 1;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp properties{};
  if (const cudaError_t code = cudaGetDeviceProperties(&properties, device)) return code;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = properties.maxThreadsPerBlock; break;
    case cudaDevAttrMultiProcessorCount: *value = properties.multiProcessorCount; break;
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrMemoryPoolsSupported: *value = 1; break;
    case cudaDevAttrComputeCapabilityMajor: *value = properties.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = properties.minor; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(properties.sharedMemPerBlockOptin);
      break;
    default:
      return longhaul::on_host::note(
          longhaul::on_host::refuse(cudaErrorNotSupported, "this attribute is not implemented"));
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  return longhaul::on_host::call([&] {
    std::snprintf(id, static_cast<std::size_t>(length), "0000:%02X:00.0",
                  static_cast<unsigned>(device + 1));
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return longhaul::on_host::call([&] {
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return longhaul::on_host::call([] {
    longhaul::on_host::drain_device(longhaul::on_host::current_device());
    return longhaul::on_host::sticky_error();
  });
}

cudaError_t cudaDeviceReset() {
  broken = cudaSuccess;
  last_error = cudaSuccess;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return longhaul::on_host::call([&] {
    *can = device != peer ? 1 : 0;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
  return longhaul::on_host::call([] { return cudaSuccess; });
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = longhaul::on_host::device_count() == 0 ? 0 : kVersion;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return longhaul::on_host::call([&] {
    *total = longhaul::on_host::device_memory();
    *free = *total - longhaul::on_host::bytes_in_use(longhaul::on_host::current_device());
    return cudaSuccess;
  });
}
