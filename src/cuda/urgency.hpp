#pragma once

namespace longhaul::cuda {

/// Of a stream, beside others of its device: the least and the greatest priority that it has. For
/// every program, with CUDA and without.
enum class Urgency : bool { normal, high };

}  // namespace longhaul::cuda
