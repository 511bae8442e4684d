#include "base/program/arguments.hpp"
#include "cli/command/commands.hpp"

namespace longhaul::cli {

void add_rule_options(Arguments& command, RuleArguments::Operation& arguments) {
  command.option("--comp", arguments.comp, "computation that needs the collective, as in 8ms");
  command.option("--comm", arguments.comm, "the collective");
  command.option("--inter-cost", arguments.inter_cost, "its part between nodes");
  command.option("--intra-cost", arguments.intra_cost, "its part inside nodes");
  command.option("--in-cost", arguments.in_cost, "computation that needs nothing of it");
  command.option("--inter-size", arguments.inter_size, "members of a group between nodes");
  command.option("--intra-size", arguments.intra_size, "members of a group inside a node");
  command.option("--max-chunks", arguments.max_chunks, "default 4");
  command.flag("--grouped", arguments.grouped, "it is partitioned into these groups")
      .takes_no_value();
}

void add_rule_options(Arguments& command, RuleArguments::Layer& arguments) {
  command.option("--w-ag", arguments.w_ag, "gather of weights, as in 3ms");
  command.option("--g-act", arguments.g_act, "gradients of activations");
  command.option("--act-ag", arguments.act_ag, "gather of activations");
  command.option("--g-w", arguments.g_w, "gradients of weights");
  command.option("--act-rs", arguments.act_rs, "scatter of activations");
  command.option("--g-w-rs", arguments.g_w_rs, "scatter of gradients of weights");
  command.option("--others", arguments.others, "all other computation of the layer");
}

void add_rule_options(Arguments& command, RuleArguments::Model& arguments) {
  command.option("--c-ag", arguments.c_ag, "gather of a stage's weights, as in 16ms");
  command.option("--c-rs", arguments.c_rs, "scatter of its gradients");
  command.option("--c-fw", arguments.c_fw, "forward of a microbatch");
  command.option("--c-bw", arguments.c_bw, "backward of a microbatch");
  command.option("--activation", arguments.activation, "that a microbatch keeps, as in 1GiB");
  command.option("--memory", arguments.memory, "that is left for activations");
  command.option("--microbatches", arguments.microbatches, "of a batch");
}

}  // namespace longhaul::cli
