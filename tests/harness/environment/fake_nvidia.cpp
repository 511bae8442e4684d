// Answers as NVML and NCCL do, for two GPUs.
#include <cstdio>
#include <cstring>

namespace {

int index_of(void* device) { return *static_cast<int*>(device); }
int devices[2] = {0, 1};

struct PciInfo {
  char legacy_address[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char address[32];
};

}  // namespace

extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlSystemGetDriverVersion(char* text, unsigned length) {
  std::snprintf(text, length, "555.42.06");
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = &devices[index];
  return 0;
}
int nvmlDeviceGetName(void* device, char* text, unsigned length) {
  std::snprintf(text, length, "Made-up GPU %d", index_of(device));
  return 0;
}
int nvmlDeviceGetPciInfo_v3(void* device, PciInfo* info) {
  std::memset(info, 0, sizeof *info);
  std::snprintf(info->address, sizeof info->address, "00000000:%02X:00.0", index_of(device) + 16);
  return 0;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  for (int& index : devices) {
    char own[] = "GPU-0";
    own[4] = static_cast<char>('0' + index);
    if (std::strcmp(uuid, own) != 0) continue;
    *device = &index;
    return 0;
  }
  return 6;
}
/// The first counts 2 J from look to look, the second cannot.
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  static unsigned long long drawn = 5000;
  if (index_of(device) != 0) return 3;
  *millijoules = drawn += 2000;
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 700'000;
  return 0;
}
int ncclGetVersion(int* version) {
  *version = 22105;
  return 0;
}
}
