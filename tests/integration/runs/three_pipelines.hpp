#pragma once

namespace longhaul::testing {

/// Four stages in three datacenters, [0], [1, 2], [3]. Rank = 4 * replica + stage.
inline constexpr const char* kThreePipelines = R"([scenario]
name = "cell"
[costs]
forward = "2ms"
backward = "4ms"
recompute = "2ms"
activation = "2MiB"
message = "6MB"
weights = "1MiB"
[parallel]
stages = 4
replicas = 3
cell = 3
microbatches = 4
gradient_sync = "none"
[memory]
recompute = true
[[datacenter]]
name = "dc1"
stages = [0]
[[datacenter]]
name = "dc2"
stages = [1, 2]
[[datacenter]]
name = "dc3"
stages = [3]
[[link]]
between = "all"
latency = "2ms"
[[node]]
datacenter = "dc1"
egress = "8Gbps"
ingress = "8Gbps"
internal = "100Gbps"
[[node]]
datacenter = "dc2"
egress = "8Gbps"
ingress = "8Gbps"
internal = "100Gbps"
[[node]]
datacenter = "dc3"
egress = "8Gbps"
ingress = "8Gbps"
internal = "100Gbps"
)";

}  // namespace longhaul::testing
