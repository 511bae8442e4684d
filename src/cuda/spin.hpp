#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

/// Kernels of one thread that wait by the device's clock (%globaltimer), never by cycles, whose
/// rate changes. Each runs after the earlier work of its stream. Stamps are of that clock and
/// lie in pinned memory, which the host watches: 0 is "not yet".
namespace longhaul::cuda {

/// Begin and end of something in a stream. `end` is written last.
struct Stamps {
  std::uint64_t begin = 0, end = 0;
};

void stamp(std::uint64_t* where, cudaStream_t stream);
void spin_for(std::uint64_t nanoseconds, cudaStream_t stream);
void spin_until(std::uint64_t device_time, cudaStream_t stream);
/// Until `nanoseconds` after stamps->begin, or after `from` where that is earlier and not 0; then
/// writes stamps->end.
void hold_after(Stamps* stamps, std::uint64_t from, std::uint64_t nanoseconds, cudaStream_t stream);

/// The work of one timed block on the device.
struct TimedBlock {
  std::uint64_t not_before = 0;  ///< 0: at once
  std::uint64_t nanoseconds = 0;
  /// A block that begins later than it could have is shorter by that, up to here.
  std::uint64_t credit = 0;
};
/// Waits, stamps, spins, stamps. `free_since` (device memory): end of the block before; becomes its
/// own.
void timed_block(const TimedBlock& block, std::uint64_t* free_since, Stamps* stamps,
                 cudaStream_t stream);

/// Answers rounds 1 to `rounds` of the host: waits for *ask to be the round, and writes its stamp
/// to answers[round - 1]. Gives up after `patience` nanoseconds without a question.
void answer_rounds(const std::uint64_t* ask, std::uint64_t* answers, unsigned rounds,
                   std::uint64_t patience, cudaStream_t stream);
/// The smallest of `count` steps of the clock.
void measure_tick(std::uint64_t* where, unsigned count, cudaStream_t stream);

/// Loads all of these, so that the first use waits for nothing (CUDA loads kernels lazily, and some
/// loads wait for the device to be idle).
void load_spin_kernels();

}  // namespace longhaul::cuda
