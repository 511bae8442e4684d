#pragma once

#include <string_view>

namespace longhaul::scenario {

// Measured facts of skyplane-project/skyplane (profiles/latency.csv and profiles/throughput.csv,
// January 2022; Apache-2.0): round-trip time, and what 64 TCP connections between two virtual
// machines received; the median of the premium-tier rows of each ordered pair.
inline constexpr std::string_view kBuiltInRegions =
    R"(src_region,dst_region,rtt_avg_ms,throughput_received_bps
aws:us-east-1,aws:eu-central-1,89.818,4120299148
aws:us-east-1,aws:ap-southeast-1,236.613,3025997787
aws:us-east-1,azure:eastus,1.899,4781672711
aws:us-east-1,azure:westus,66.718,4335487142
aws:us-east-1,azure:westeurope,80.432,4196958882
aws:us-east-1,gcp:us-central1-a,28.539,4652430753
aws:us-east-1,gcp:asia-northeast1-a,153.576,3744968293
aws:eu-central-1,aws:us-east-1,89.784,4111545896
aws:eu-central-1,aws:ap-southeast-1,155.082,3498932201
aws:eu-central-1,azure:eastus,88.663,4163164885
aws:eu-central-1,azure:westus,158.795,3552883110
aws:eu-central-1,azure:westeurope,7.291,4753798372
aws:eu-central-1,gcp:us-central1-a,107.142,4093210708
aws:eu-central-1,gcp:asia-northeast1-a,229.79,3061279449
aws:ap-southeast-1,aws:us-east-1,236.565,3045165954
aws:ap-southeast-1,aws:eu-central-1,155.179,3501831431
aws:ap-southeast-1,azure:eastus,220.614,2974879571
aws:ap-southeast-1,azure:westus,170.349,3415334230
aws:ap-southeast-1,azure:westeurope,157.634,3536377879
aws:ap-southeast-1,gcp:us-central1-a,193.928,3415328459
aws:ap-southeast-1,gcp:asia-northeast1-a,71.27,4363699443
azure:eastus,aws:us-east-1,1.865,9555737469
azure:eastus,aws:eu-central-1,88.656,3984731269
azure:eastus,aws:ap-southeast-1,220.738,3087416305
azure:eastus,azure:westus,61.711,14147502908
azure:eastus,azure:westeurope,80.327,13468328653
azure:eastus,gcp:us-central1-a,35.54,13256901245
azure:eastus,gcp:asia-northeast1-a,157.078,7608344541
azure:westus,aws:us-east-1,67.31,6051636004
azure:westus,aws:eu-central-1,156.226,2084987192
azure:westus,aws:ap-southeast-1,170.567,813464774
azure:westus,azure:eastus,61.602,22034804416
azure:westus,azure:westeurope,138.92,15663441183
azure:westus,gcp:us-central1-a,51.587,8418448839
azure:westus,gcp:asia-northeast1-a,105.96,7571031625
azure:westeurope,aws:us-east-1,80.478,3324555430
azure:westeurope,aws:eu-central-1,7.368,9469387776
azure:westeurope,aws:ap-southeast-1,157.832,2978295384
azure:westeurope,azure:eastus,80.326,13459580870
azure:westeurope,azure:westus,140.844,11562349781
azure:westeurope,gcp:us-central1-a,106.363,4870426739
azure:westeurope,gcp:asia-northeast1-a,226.426,5228555215
)";

}  // namespace longhaul::scenario
