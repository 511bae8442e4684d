#pragma once

#include <cstddef>
#include <functional>

#include "cuda_runtime_api.h"
#include "streams/stream.hpp"

namespace longhaul::on_host {

/// Devices that this process sees: LONGHAUL_ON_HOST_DEVICES (1). 0: as where there is no driver.
[[nodiscard]] int device_count();
/// The current device of the calling thread.
[[nodiscard]] int current_device();
/// Bytes of a device's memory: LONGHAUL_ON_HOST_MEMORY (16 GiB).
[[nodiscard]] std::size_t device_memory();

/// The error that stays, once a kernel has failed; cudaSuccess before.
[[nodiscard]] cudaError_t sticky_error();
void set_sticky_error(cudaError_t code);
/// Remembers an error for cudaGetLastError; returns it.
cudaError_t note(cudaError_t code);

/// An API call: refused from inside cudaLaunchHostFunc, after a kernel has failed, or without a
/// driver; otherwise what `body` says.
cudaError_t call(const std::function<cudaError_t()>& body);

/// Says what is wrong with a call and returns `code`.
cudaError_t refuse(cudaError_t code, const char* why);

/// Is this thread inside a function of cudaLaunchHostFunc?
extern thread_local bool in_host_function;

}  // namespace longhaul::on_host
