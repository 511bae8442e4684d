#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "base/error.hpp"
#include "compress/select/sparsifier.hpp"
#include "device/cuda/factories.hpp"
#include "harness/compress_device/compress_device.hpp"
#include "harness/layers/layer_options.hpp"
#include "harness/layers/layer_parts.hpp"
#include "nn/cuda/factory.hpp"

namespace longhaul::harness {
namespace {

using device::DeviceGradient;

constexpr double kBatchSeconds = 0.06;  ///< of F, a sample: several copies of a gradient
constexpr int kRoomFactor = 2;          ///< room for so many times the numbers that are wanted

/// Compression on threads of the host, a stretch of the gradient for each, with error feedback.
class HostCompression {
public:
  HostCompression(const CompressDeviceOptions& options, int threads) {
    constexpr std::int64_t kLine = 16;
    const compress::Settings settings{.method = compress::Method::threshold,
                                      .keep = compress::parse_keep("--keep", options.keep)};
    const std::int64_t lines = (options.count + kLine - 1) / kLine;
    for (std::int64_t i = 0; i < threads; ++i) {
      const std::int64_t begin = std::min(lines * i / threads * kLine, options.count);
      const std::int64_t end = std::min(lines * (i + 1) / threads * kLine, options.count);
      if (begin < end) stretches_.push_back(std::make_unique<Stretch>(settings, begin, end));
    }
  }

  void compress(std::span<const float> gradient) {
    std::vector<std::future<void>> running;
    for (const auto& stretch : stretches_)
      running.push_back(std::async(std::launch::async, [&gradient, &of = *stretch] {
        of.taken = of.sparsifier.take(gradient.subspan(of.begin, of.residual.all().size()),
                                      of.residual.all());
      }));
    for (std::future<void>& one : running) one.get();
  }

private:
  struct Stretch {
    Stretch(const compress::Settings& settings, std::int64_t first, std::int64_t end)
        : begin{static_cast<std::size_t>(first)},
          residual{end - first},
          sparsifier{settings, end - first} {}
    std::size_t begin;
    LargeNumbers residual;
    compress::Sparsifier sparsifier;
    compress::SparseSet taken{};
  };
  std::vector<std::unique_ptr<Stretch>> stretches_;
};

/// Sets it at its end, however that comes.
struct SetAtEnd {
  std::atomic<bool>& what;
  ~SetAtEnd() { what = true; }
};

/// Work that counts the gradients that it has got through.
using CountedWork = std::function<void(std::atomic<int>& done)>;

/// Repeats `work` on a thread of its own, from its first gradient on beside what is measured. It
/// takes gradients by twos, a gradient and its negative, which leave each residual as it was.
Beside repeated(BesideLayer& account, DeviceGradient& gradient, CountedWork work) {
  return [&account, &gradient, work = std::move(work)](const std::function<void()>& measured) {
    std::atomic<int> done{0};
    std::atomic<bool> ends{false};
    gradient.restart();
    auto worker = std::async(std::launch::async, [&] {
      try {
        while (!ends) {
          work(done);
          done.notify_one();
        }
      } catch (...) {
        done = -1;
        done.notify_one();
        throw;
      }
    });
    {
      const SetAtEnd end{ends};
      done.wait(0);
      const int before = done;
      const auto begin = std::chrono::steady_clock::now();
      measured();
      account.elapsed +=
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      account.gradients += std::max(done - before, 0);
    }
    worker.get();
  };
}

void copy_both_ways(DeviceGradient& gradient, std::atomic<int>& done) {
  gradient.copy_out();
  gradient.copy_in();
  gradient.finish();
  ++done;
}

void compress_on_device(DeviceGradient& gradient, float threshold, std::atomic<int>& done) {
  constexpr int kAtOnce = 4;  // so that the device does not wait for the host
  for (int i = 0; i < kAtOnce; ++i) gradient.select({16, threshold});
  gradient.finish();
  done += kAtOnce;
}

/// What is taken goes out, and as much as a gradient comes in: the weights of a host's optimizer.
void compress_and_copy(DeviceGradient& gradient, float threshold, std::atomic<int>& done) {
  gradient.select({16, threshold});
  static_cast<void>(gradient.taken());
  gradient.copy_in();
  gradient.finish();
  ++done;
}

void compress_on_host(DeviceGradient& gradient, HostCompression& host, std::atomic<int>& done) {
  for (int i = 0; i < 2; ++i) {
    gradient.copy_out();
    gradient.finish();
    host.compress(gradient.pinned());
    gradient.copy_in();
    gradient.finish();
    ++done;
  }
}

int host_threads(const CompressDeviceOptions& options) {
  if (options.host_threads > 0) return options.host_threads;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) - 2);
}

std::int64_t room_of(const CompressDeviceOptions& options) {
  const double kept =
      static_cast<double>(options.count) * compress::parse_keep("--keep", options.keep);
  constexpr std::int64_t kSpare = 4096;
  return std::min(options.count, static_cast<std::int64_t>(kRoomFactor * kept) + kSpare);
}

}  // namespace

void time_beside_layer(const CompressDeviceOptions& options, const DeviceThresholds& thresholds,
                       DeviceGradient& gradient, CompressDeviceReport& report) {
  const std::unique_ptr<nn::TensorOps> math =
      nn::make_cuda_tensor_ops(options.index, cuda::Urgency::high);
  report.notes = nn::accelerator_notes(*math);
  report.host_threads = host_threads(options);
  nn::DeviceMemory memory{*math, 0};
  HostCompression host{options, report.host_threads};
  report.beside = {{kAlone, {}},
                   {"beside copies to and from pinned memory", {}},
                   {"beside compression on the device", {}},
                   {"beside compression on the device, with copies", {}},
                   {"beside compression on the host, with copies", {}}};
  using Done = std::atomic<int>;
  const std::vector<Beside> beside{
      [](const std::function<void()>& measured) { measured(); },
      repeated(report.beside[1], gradient, [&](Done& done) { copy_both_ways(gradient, done); }),
      repeated(report.beside[2], gradient,
               [&](Done& done) { compress_on_device(gradient, thresholds.blocks, done); }),
      repeated(report.beside[3], gradient,
               [&](Done& done) { compress_and_copy(gradient, thresholds.blocks, done); }),
      repeated(report.beside[4], gradient,
               [&](Done& done) { compress_on_host(gradient, host, done); })};
  const auto seconds =
      time_forward_beside(*math, memory, preset_shape(options.model, options.tokens, 32'000),
                          {options.samples, options.check ? 1e-5 : kBatchSeconds}, beside);
  for (std::size_t i = 0; i < seconds.size(); ++i) report.beside[i].seconds = seconds[i];
}

CompressDeviceReport measure_device(const CompressDeviceOptions& options,
                                    const std::function<void(const std::string&)>& say) {
  CompressDeviceReport report;
  report.device = gpu_name(options.index);
  const auto gradient = device::make_cuda_gradient(options.index, options.count, room_of(options));
  LargeNumbers numbers{options.count};
  const DeviceThresholds thresholds = device_thresholds(options, numbers);
  report.costs = time_device_kernels(options, thresholds, numbers, *gradient);
  say(device_cost_table(report, options));
  time_beside_layer(options, thresholds, *gradient, report);
  say("\n" + beside_table(report, options));
  return report;
}

}  // namespace longhaul::harness
