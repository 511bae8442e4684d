#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "engine/payloads/message.hpp"

/// Payloads (engine/payloads/message.hpp) made and checked on the device.
namespace longhaul::device {

/// The result of a check, in pinned memory; of value once `done`.
struct CheckedPayload {
  engine::PayloadId found;
  std::uint32_t wrong = 0;  ///< bytes after the id that are not what they should be: some
  std::uint64_t done = 0;
};

/// `window`: in device memory, the bytes after the id.
void fill_payload(const engine::PayloadId& id, const std::byte* window, std::byte* payload,
                  std::size_t size, cudaStream_t stream);
void check_payload(const std::byte* payload, std::size_t size, const std::byte* window,
                   CheckedPayload* result, cudaStream_t stream);
/// Turns a bit of its last byte.
void corrupt_payload(std::byte* payload, std::size_t size, cudaStream_t stream);
void load_pattern_kernels();

}  // namespace longhaul::device
