#pragma once

#include <memory>
#include <string>

#include "cuda/urgency.hpp"
#include "nn/tensor_ops.hpp"

/// Made by src/nn/cuda where CUDA was built in, refused by src/nn/without_gpu/without_cuda.cpp
/// where not.
namespace longhaul::nn {

/// bf16 on device `index`; throws Error where there is none.
[[nodiscard]] std::unique_ptr<TensorOps> make_cuda_tensor_ops(
    int index, cuda::Urgency urgency = cuda::Urgency::normal);
/// Text for records on how `math` computes: "attention: cuDNN 9.19.0". Empty for a CPU.
[[nodiscard]] std::string accelerator_notes(const TensorOps& math);

}  // namespace longhaul::nn
