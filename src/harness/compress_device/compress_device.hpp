#pragma once

#include "device/device_gradient.hpp"
#include "harness/compress_cost/compress_cost.hpp"

namespace longhaul::harness {

/// Options of bench_compress, of a host and of a device.
struct CompressDeviceOptions : CompressCostOptions {
  int index = 0;             ///< which GPU
  std::string model = "m8";  ///< whose layer runs beside
  int tokens = 4096;         ///< of a microbatch
  int samples = 12;          ///< of F beside each kind of work
  int host_threads = 0;      ///< that compress on the host; 0: all but two, which drive the device
};

/// Times of one kernel or copy of a device, caches cold and other numbers in every repetition.
struct DeviceCost {
  std::string name;
  double bytes = 0;             ///< that must pass through the device's memory, or the bus
  std::int64_t taken = 0;       ///< numbers, in the last repetition
  std::vector<double> seconds;  ///< of each repetition, by the device's events
};

/// F of a layer while other work goes on.
struct BesideLayer {
  std::string name;
  std::vector<double> seconds;  ///< of one F: each the mean of many, one after the other
  double gradients = 0;         ///< that the other work got through meanwhile
  double elapsed = 0;           ///< [s] meanwhile
};

/// What compression costs a device. In `costs` the copy within the device's memory is first.
struct CompressDeviceReport {
  std::string device, notes;
  std::vector<DeviceCost> costs;
  std::vector<BesideLayer> beside;  ///< alone first
  int host_threads = 0;             ///< used
};

/// Names that the record's readers look for.
inline constexpr const char* kCopyWithin = "copy within the device";
inline constexpr const char* kBlocksApart = "threshold of blocks of 16, residual apart";
inline constexpr const char* kSinglesApart = "threshold of single numbers, residual apart";
inline constexpr const char* kBlocksWithin = "threshold of blocks of 16";
inline constexpr const char* kSinglesWithin = "threshold of single numbers";
inline constexpr const char* kAlone = "alone";

/// Thresholds (mean magnitudes) that the wanted share of some gradient exceeds, other than those
/// that are timed.
struct DeviceThresholds {
  float blocks = 0, singles = 0;
};
[[nodiscard]] DeviceThresholds device_thresholds(const CompressDeviceOptions& options,
                                                 LargeNumbers& numbers);

/// Kernels and copies; before that each selection is held to the host's, bit for bit: throws Error
/// (the answer is no) where one differs.
[[nodiscard]] std::vector<DeviceCost> time_device_kernels(const CompressDeviceOptions& options,
                                                          const DeviceThresholds& thresholds,
                                                          LargeNumbers& numbers,
                                                          device::DeviceGradient& gradient);

/// F of a layer alone, beside copies through pinned memory, beside compression on the device alone
/// and with the copies that it needs, and beside compression on the host of what was copied there.
/// `report` gets all but the kernels.
void time_beside_layer(const CompressDeviceOptions& options, const DeviceThresholds& thresholds,
                       device::DeviceGradient& gradient, CompressDeviceReport& report);

/// All of it. Throws Error where there is no GPU. `say` gets the tables of each half as soon as it
/// is measured.
[[nodiscard]] CompressDeviceReport measure_device(
    const CompressDeviceOptions& options, const std::function<void(const std::string&)>& say);

/// For people, and as JSON text.
[[nodiscard]] std::string device_cost_table(const CompressDeviceReport& report,
                                            const CompressDeviceOptions& options);
[[nodiscard]] std::string beside_table(const CompressDeviceReport& report,
                                       const CompressDeviceOptions& options);
[[nodiscard]] std::string device_record(const CompressDeviceReport& report,
                                        const CompressDeviceOptions& options);

}  // namespace longhaul::harness
