#include "cuda/intrinsics.hpp"
#include "cuda/launch.hpp"
#include "cuda/spin.hpp"

namespace longhaul::cuda {
namespace {

/// nanosleep takes up to twice what it is given: half of what is left never oversleeps. Short, so
/// that the clock's tick, not the sleep, says how late a spin ends.
__device__ std::uint64_t wait_until(std::uint64_t device_time) {
  constexpr std::uint64_t kLongest = 20'000, kShortest = 200;
  std::uint64_t now = global_timer();
  while (now < device_time) {
    const std::uint64_t half = (device_time - now) / 2;
    if (half > kShortest) nanosleep(static_cast<unsigned>(half < kLongest ? half : kLongest));
    now = global_timer();
  }
  return now;
}

__global__ void stamp_kernel(std::uint64_t* where) { store_for_system(where, global_timer()); }

__global__ void spin_for_kernel(std::uint64_t nanoseconds) {
  wait_until(global_timer() + nanoseconds);
}

__global__ void spin_until_kernel(std::uint64_t device_time) { wait_until(device_time); }

__global__ void hold_after_kernel(Stamps* stamps, std::uint64_t from, std::uint64_t nanoseconds) {
  const std::uint64_t begin = load_of_system(&stamps->begin);
  const std::uint64_t since = from != 0 && from < begin ? from : begin;
  store_for_system(&stamps->end, wait_until(since + nanoseconds));
}

__global__ void timed_block_kernel(TimedBlock block, std::uint64_t* free_since, Stamps* stamps) {
  const std::uint64_t could =
      block.not_before > *free_since ? block.not_before : *free_since;  // 0: no block before
  const std::uint64_t begin = wait_until(could);
  const bool late = could != 0 && begin - could <= block.credit;
  const std::uint64_t end = wait_until((late ? could : begin) + block.nanoseconds);
  *free_since = end;
  stamps->begin = begin;
  store_for_system(&stamps->end, end);
}

__global__ void answer_rounds_kernel(const std::uint64_t* ask, std::uint64_t* answers,
                                     unsigned rounds, std::uint64_t patience) {
  for (unsigned round = 1; round <= rounds; ++round) {
    const std::uint64_t give_up = global_timer() + patience;
    while (load_of_system(ask) < round)
      if (global_timer() > give_up) return;
    store_for_system(answers + (round - 1), global_timer());
  }
}

__global__ void measure_tick_kernel(std::uint64_t* where, unsigned count) {
  std::uint64_t smallest = ~std::uint64_t{0}, before = global_timer();
  for (unsigned steps = 0; steps < count;) {
    const std::uint64_t now = global_timer();
    if (now == before) continue;
    if (now - before < smallest) smallest = now - before;
    before = now;
    ++steps;
  }
  store_for_system(where, smallest);
}

Launch one_thread(cudaStream_t stream) { return {dim3{1}, dim3{1}, 0, stream}; }

template <typename... Parameters>
void load(void (*kernel)(Parameters...)) {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel)));
}

}  // namespace

void stamp(std::uint64_t* where, cudaStream_t stream) {
  launch(stamp_kernel, one_thread(stream), where);
}

void spin_for(std::uint64_t nanoseconds, cudaStream_t stream) {
  launch(spin_for_kernel, one_thread(stream), nanoseconds);
}

void spin_until(std::uint64_t device_time, cudaStream_t stream) {
  launch(spin_until_kernel, one_thread(stream), device_time);
}

void hold_after(Stamps* stamps, std::uint64_t from, std::uint64_t nanoseconds,
                cudaStream_t stream) {
  launch(hold_after_kernel, one_thread(stream), stamps, from, nanoseconds);
}

void timed_block(const TimedBlock& block, std::uint64_t* free_since, Stamps* stamps,
                 cudaStream_t stream) {
  launch(timed_block_kernel, one_thread(stream), block, free_since, stamps);
}

void answer_rounds(const std::uint64_t* ask, std::uint64_t* answers, unsigned rounds,
                   std::uint64_t patience, cudaStream_t stream) {
  launch(answer_rounds_kernel, one_thread(stream), ask, answers, rounds, patience);
}

void measure_tick(std::uint64_t* where, unsigned count, cudaStream_t stream) {
  launch(measure_tick_kernel, one_thread(stream), where, count);
}

void load_spin_kernels() {
  load(stamp_kernel);
  load(spin_for_kernel);
  load(spin_until_kernel);
  load(hold_after_kernel);
  load(timed_block_kernel);
  load(answer_rounds_kernel);
  load(measure_tick_kernel);
}

}  // namespace longhaul::cuda
