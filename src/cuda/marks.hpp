#pragma once

#include <cstdint>
#include <string>

namespace longhaul::cuda {

/// A range of NVTX's domain "longhaul", for profilers; nothing without CUDA.
enum class Mark : std::uint64_t {};
Mark begin_mark(const std::string& name);
void end_mark(Mark mark);

}  // namespace longhaul::cuda
