#pragma once

namespace longhaul::cuda {

/// Throws the Error of a program built without CUDA that is asked for it: for the files in
/// without_gpu/ of all modules, which are not compiled where CUDA is.
[[noreturn]] void refuse_without_cuda();

}  // namespace longhaul::cuda
