#pragma once

namespace longhaul::testing {

/// Two tensor ranks, two replicas that hold the weights together.
inline constexpr const char* kTwoByTwo = R"([scenario]
name = "two-by-two"
[model]
layers = 4
hidden = 16
intermediate = 24
heads = 4
kv_heads = 2
vocabulary = 16
sequence_length = 8
achieved_flops = 1e9
memory_bandwidth = "1GB/s"
[parallel]
stages = 1
microbatches = 2
replicas = 2
tensor = 2
shard = 2
sequence_parallel = true
gradient_sync = "zero3"
[[datacenter]]
name = "local"
[[node]]
datacenter = "local"
gpus = 4
device = "1GB/s"
[run]
iterations = 2
warmup = 1
)";

}  // namespace longhaul::testing
