#include "nn/cuda/gemm.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.hpp"
#include "nn/cuda/gemm_plan.hpp"

namespace longhaul::nn {
namespace {

/// The workspace that cuBLAS asks for on these chips (its manual, "workspace").
constexpr std::size_t kHopperWorkspace = 32U << 20U;
constexpr std::size_t kWorkspace = 8U << 20U;
constexpr int kProposals = 8;
constexpr int kTimedRuns = 3;

std::size_t workspace_of(int device) {
  int generation = 0;
  cuda::check(cudaDeviceGetAttribute(&generation, cudaDevAttrComputeCapabilityMajor, device));
  return generation >= 9 ? kHopperWorkspace : kWorkspace;
}

cublasLtHandle_t make_handle() {
  cublasLtHandle_t handle = nullptr;
  cuda::check(cublasLtCreate(&handle));
  return handle;
}

/// Choices of this process, so that threads that are ranks on one device compute equal results.
class Choices {
public:
  using Key = std::pair<int, GemmKey>;
  [[nodiscard]] const cublasLtMatmulAlgo_t* find(const Key& key) {
    const std::scoped_lock lock{mutex_};
    const auto at = chosen_.find(key);
    return at == chosen_.end() ? nullptr : &at->second;
  }
  /// The first choice stays.
  const cublasLtMatmulAlgo_t& keep(const Key& key, const cublasLtMatmulAlgo_t& algorithm) {
    const std::scoped_lock lock{mutex_};
    return chosen_.try_emplace(key, algorithm).first->second;
  }

private:
  std::mutex mutex_;
  std::map<Key, cublasLtMatmulAlgo_t> chosen_;  // nodes stay where they are
};

Choices& choices() {
  static Choices all;
  return all;
}

}  // namespace

struct Gemms::Parts {
  int device;
  cudaStream_t stream;
  StreamMemoryPool& pool;
  GemmChoice choice;
  CublasOwner<cublasLtHandle_t, cublasLtDestroy> handle{make_handle()};
  cuda::DeviceBuffer workspace{workspace_of(device)};
  cuda::Event begin{cuda::Timing::on}, end{cuda::Timing::on};
  std::map<GemmKey, GemmPlan> plans{};

  GemmPlan& plan_of(const Product& product, ArrayView a, ArrayView b, ArrayView c);
  [[nodiscard]] cublasLtMatmulAlgo_t choose(const GemmPlan& plan, ArrayView a, ArrayView b,
                                            ArrayView c);
  [[nodiscard]] float time(const GemmPlan& plan, const cublasLtMatmulAlgo_t& algorithm,
                           const GemmPlan::Operands& operands);
};

GemmPlan& Gemms::Parts::plan_of(const Product& product, ArrayView a, ArrayView b, ArrayView c) {
  const GemmKey key = GemmKey::of(product, a, b, c);
  const auto [at, is_new] = plans.try_emplace(key, key);
  GemmPlan& plan = at->second;
  if (!is_new) return plan;
  const Choices::Key mine{device, key};
  // Timed without the lock: what this stream waits for may be another rank that waits for the lock.
  if (const auto* known = choice == GemmChoice::timed ? choices().find(mine) : nullptr)
    plan.algorithm = *known;
  else if (choice == GemmChoice::timed)
    plan.algorithm = choices().keep(mine, choose(plan, a, b, c));
  else
    plan.algorithm = plan.proposals(handle.get(), workspace.bytes(), 1).front();
  return plan;
}

/// Where c is added to, candidates write elsewhere; where there is no memory for that, the first
/// proposal is taken.
cublasLtMatmulAlgo_t Gemms::Parts::choose(const GemmPlan& plan, ArrayView a, ArrayView b,
                                          ArrayView c) {
  const auto candidates = plan.proposals(handle.get(), workspace.bytes(), kProposals);
  if (candidates.size() == 1) return candidates.front();
  std::byte* elsewhere = nullptr;
  if (plan.key().accumulate) {
    elsewhere = pool.allocate(plan.output_bytes());
    if (elsewhere == nullptr) return candidates.front();
  }
  const GemmPlan::Operands operands{a.data, b.data, c.data,
                                    elsewhere != nullptr ? elsewhere : c.data};
  const cublasLtMatmulAlgo_t* best = &candidates.front();
  float least = std::numeric_limits<float>::infinity();
  for (const cublasLtMatmulAlgo_t& candidate : candidates) {
    const float took = time(plan, candidate, operands);
    if (took < least) least = took, best = &candidate;
  }
  pool.release(elsewhere);
  return *best;
}

/// Milliseconds, the least of a few runs; infinite where the algorithm refuses.
float Gemms::Parts::time(const GemmPlan& plan, const cublasLtMatmulAlgo_t& algorithm,
                         const GemmPlan::Operands& operands) {
  float least = std::numeric_limits<float>::infinity();
  for (int run = 0; run <= kTimedRuns; ++run) {
    begin.record(stream);
    if (plan.run(handle.get(), algorithm, operands, workspace, stream) != CUBLAS_STATUS_SUCCESS)
      return std::numeric_limits<float>::infinity();
    end.record(stream);
    end.wait_on_host();
    float took = 0;
    cuda::check(cudaEventElapsedTime(&took, begin.get(), end.get()));
    if (run > 0) least = std::min(least, took);  // the first one warms up
  }
  return least;
}

Gemms::Gemms(int device, cudaStream_t stream, StreamMemoryPool& pool, GemmChoice choice)
    : parts_{new Parts{device, stream, pool, choice}} {}

Gemms::~Gemms() = default;

void Gemms::multiply(const Gemm& shape, ArrayView a, ArrayView b, ArrayView c) {
  Product product{.shape = shape};
  product.a.row_length = shape.transpose_a ? shape.m : shape.k;
  product.b.row_length = shape.transpose_b ? shape.k : shape.n;
  product.c.row_length = shape.n;
  multiply(product, a, b, c);
}

void Gemms::multiply(const Product& product, ArrayView a, ArrayView b, ArrayView c) {
  const GemmPlan& plan = parts_->plan_of(product, a, b, c);
  cuda::check(plan.run(parts_->handle.get(), plan.algorithm, {a.data, b.data, c.data, c.data},
                       parts_->workspace, parts_->stream));
}

}  // namespace longhaul::nn
