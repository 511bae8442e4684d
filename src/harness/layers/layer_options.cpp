#include "harness/layers/layer_options.hpp"

#include "base/error.hpp"
#include "base/index.hpp"
#include "cuda/accelerator.hpp"
#include "nn/cpu/cpu_tensor_ops.hpp"
#include "nn/cuda/factory.hpp"

namespace longhaul::harness {

void declare_layer_options(Arguments& arguments, LayerOptions& options) {
  arguments.option("--model", options.model, "m8, m70, another preset, or tiny").shows_default();
  add_device_option(arguments, options.device, "cpu or cuda").one_of({"cpu", "cuda"});
  arguments.option("--index", options.index, "which GPU").shows_default();
  arguments.option("--tokens", options.tokens, "of the microbatch: one sequence")
      .shows_default()
      .within(1, 1'000'000);
  arguments.option("--samples", options.samples, "of each part").shows_default().within(1, 100'000);
  arguments.option("--reference", options.reference, "sides of the large product")
      .shows_default()
      .within(8, 65'536);
  arguments.option("--copied-mib", options.copied_mib, "MiB that the large copy reads and writes")
      .shows_default()
      .within(1, 65'536);
  arguments
      .option("--vocabulary", options.vocabulary, "of embedding and head, where --model names none")
      .shows_default()
      .within(1, 10'000'000);
  arguments
      .option("--parts", options.parts,
              "beside the references: all, blocks, kernels, or forward (F alone)")
      .one_of({"all", "blocks", "kernels", "forward"})
      .shows_default();
  const Argument products = arguments.option(
      "--products", options.products,
      "measure these products instead: a CSV with columns m, n, k; with --out also "
      "written as products.csv, beside the file's own median_ns");
  const Argument beside =
      arguments
          .option("--beside", options.beside,
                  "measure instead F, B, D and W of a layer beside a prompt's layer (prefill), "
                  "beside copies, or beside all of these")
          .one_of({"prefill", "copy", "all"})
          .excludes(products);
  arguments.option("--prompt", options.prompt, "tokens of that prompt")
      .shows_default()
      .within(1, 1'000'000);
  arguments
      .option("--load-parameters", options.load_parameters,
              "measure instead how long so many weights of 2 bytes take from the host (1e9)")
      .within(1.0, 1e11)
      .excludes(products)
      .excludes(beside);
  add_shared_options(arguments, options, {{Shared::out}, {Shared::json}, {Shared::check}});
}

void settle_layer_options(LayerOptions& options) {
  if (options.load_parameters > 0 && options.device == "cpu")
    fail(
        "--load-parameters is for a GPU (weights of a CPU lie in the host's memory). Use --device "
        "cuda.");
  if (options.beside == "copy" && options.device == "cpu")
    fail(
        "--beside copy is for a GPU (a CPU has no streams to copy on). Use --device cuda, or "
        "--beside prefill.");
  if (!options.check) return;
  options.model = "tiny";
  options.tokens = 48;
  options.samples = 2;
  options.reference = 64;
  options.copied_mib = 1;
  options.prompt = 16;
}

std::string gpu_name(int index) {
  const std::vector<cuda::AcceleratorInfo> known = cuda::accelerators();
  if (known.empty())
    fail("--device cuda finds no GPU ({}). Use --device cpu.", cuda::why_no_accelerator());
  if (index < 0 || to_size(index) >= known.size())
    fail("--index {} is no GPU (there are {}, counted from 0). Give another.", index, known.size());
  return known[to_size(index)].name;
}

std::unique_ptr<nn::TensorOps> math_of(const LayerOptions& options, cuda::Urgency urgency) {
  if (options.device == "cpu") return nn::make_cpu_math();
  static_cast<void>(gpu_name(options.index));
  return nn::make_cuda_tensor_ops(options.index, urgency);
}

std::string device_of(const LayerOptions& options) {
  if (options.device == "cpu") return "cpu, one core";
  return gpu_name(options.index);
}

BesideReport beside_report(const LayerOptions& options) {
  BesideReport report;
  report.options = {.shape = preset_shape(options.model, options.tokens, options.vocabulary),
                    .prompt = options.prompt,
                    .samples = options.samples,
                    .prefill = options.beside != "copy",
                    .traffic = options.beside != "prefill",
                    .streams = options.device != "cpu"};
  if (options.check) {
    report.options.traffic_bytes = 1U << 16U;
    report.options.turns = 1;
  }
  report.cases = measure_beside(
      [&](cuda::Urgency urgency) {
        auto math = math_of(options, urgency);
        report.notes = nn::accelerator_notes(*math);
        return math;
      },
      report.options);
  report.device = device_of(options);
  return report;
}

}  // namespace longhaul::harness
