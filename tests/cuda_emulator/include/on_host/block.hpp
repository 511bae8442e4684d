#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>

#include "on_host/vector_types.hpp"

/// Runs the blocks of a launch on the calling thread, one after the other, and their threads as
/// fibers that change at barriers and shuffles alone.
namespace longhaul::on_host {

struct Grid {
  dim3 blocks, threads;
  std::size_t shared_bytes = 0;
  bool prepared = false;  ///< every thread must say that it waits for the kernel before
};

/// How a block ended. Anything but `fine` is said on standard error, with block, thread and place.
enum class Outcome : std::uint8_t { fine, divergent, illegal_address, trapped };

/// Blocks, and the threads of each, begin in ascending order in every other launch of a process and
/// in descending order in the others (LONGHAUL_ON_HOST_THREADS=ascending or descending: always so):
/// what lacks a barrier, or counts on the order of blocks, differs between them.
[[nodiscard]] Outcome run_blocks(const Grid& grid, const std::function<void()>& kernel);

/// For threads of a running block.
void note_wait();
void barrier(std::source_location where);
/// Waits for all lanes of `mask` in this warp, and gives all the `value`s that they brought: 32 of
/// them, valid until the next exchange.
[[nodiscard]] const std::uint64_t* exchange(unsigned mask, std::uint64_t value,
                                            std::source_location where);
[[noreturn]] void trap();
[[nodiscard]] std::byte* dynamic_shared();
/// Does the calling thread run a kernel?
[[nodiscard]] bool in_kernel();

}  // namespace longhaul::on_host
