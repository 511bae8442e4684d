#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace longhaul::profile {

/// A kernel of one run of an operator.
struct KernelRun {
  std::string name;
  Duration start{}, length{};
};

/// One run of an operator on a GPU: its kernels in the order of their starts.
struct OperatorRun {
  std::string part, block, operation, shape, type;
  std::vector<KernelRun> kernels;
  /// From the first kernel's start to the last one's end.
  [[nodiscard]] Duration length() const;
};

/// An operator of a profile that another program took: runs of one (part, block, operator, shape,
/// type). Runs with another number of kernels than most have count for the operator, not for its
/// tasks.
struct ImportedOperator {
  std::string part, block, operation, shape, type;
  std::size_t runs = 0;
  std::size_t calls = 0;  ///< in an iteration, where runs tell; 1 otherwise
  Duration median{}, least{};
};
struct ImportedTask {
  std::string operation;  ///< with its shape: "gemm m=3 n=8 k=4"
  std::string kernel;
  std::size_t position = 0;
  Duration median{}, gap{};
};
struct ImportedProfile {
  std::vector<ImportedOperator> operators;
  std::vector<ImportedTask> tasks;
};

/// Medians of the runs, operators in the order in which they come first. `iterations` that the runs
/// are of divide their number: calls.
[[nodiscard]] ImportedProfile imported(const std::vector<OperatorRun>& runs,
                                       std::size_t iterations);

/// Throws Error "source: ..." for what operators_csv() and tasks_csv() would write and
/// scenario::read_profile_table() refuse: more calls of an operator, longer ones, or more rows.
void require_readable(const ImportedProfile& profile, const std::string& source);

/// "part,block,operator,shape,type,calls,n,median_ns,min_ns" and its lines.
[[nodiscard]] std::string operators_csv(const ImportedProfile& profile);
/// "operator,kernel,position,median_ns,gap_ns" and its lines.
[[nodiscard]] std::string tasks_csv(const ImportedProfile& profile);

/// A cell of a CSV: no comma, quote or control character, at most 200 characters.
[[nodiscard]] std::string cell_of(std::string_view text);

/// A log of CUPTI's activities as vTrain's profiler writes it: lines "start,duration,KIND,...", of
/// which TIMESTAMP ("forward start transformer", "backward end ...", "WU start ...") says which
/// operator runs, RUNTIME and DRIVER which launch belongs to it, and KERNEL what ran by the
/// launch's last number. Layers are its operators: embeddings, transformer, logit and loss become
/// the parts embedding, layer and head. `name` as vTrain's, "trace_1024_2_8", gives the shape
/// hidden, tensor, batch. Throws Error "source:line: ..." for a line that is none.
[[nodiscard]] ImportedProfile read_cupti_log(std::string_view text, const std::string& source,
                                             std::string_view name);

/// Does the text look like such a log?
[[nodiscard]] bool is_cupti_log(std::string_view text);

/// A trace of PyTorch's profiler (Kineto's JSON), operator by operator, in the order of the
/// kernels' starts. Each kernel belongs to the operator (`cpu_op`) that launched it, by the
/// launch's correlation and the operator's external id. Of matrix products the shape is that of
/// gemm
/// ("m=3 n=8 k=4"), of others the sizes of their inputs ("3x4 4x8"). The block is B for operators
/// that the backward engine ran, "update" below "Optimizer.step", otherwise F; the part is an
/// enclosing annotation named embedding, layer or head, otherwise "layer".
struct KinetoTrace {
  std::vector<OperatorRun> runs;
  std::size_t iterations = 1;  ///< by the annotations "ProfilerStep#N"
  std::size_t orphans = 0;     ///< kernels that no operator launched
  Duration begin{}, end{};     ///< of the first kernel and the last
};
/// Throws Error "source: ..." for a text that is no such trace.
[[nodiscard]] KinetoTrace read_kineto(std::string_view json, const std::string& source);

/// "m=3 n=8 k=4" of a product's name and its inputs' sizes; nullopt: it is none.
[[nodiscard]] std::optional<std::string> product_shape(
    std::string_view operation, const std::vector<std::vector<std::int64_t>>& sizes);

}  // namespace longhaul::profile
