#include "cli/parse/examples.hpp"

#include <array>

namespace longhaul {
namespace {

constexpr std::array kExamples{
    Example{"presets", "longhaul presets"},
    Example{"check", "longhaul check benchmarks/scenarios/m70-2dc.toml"},
    Example{"schedule",
            "longhaul schedule benchmarks/scenarios/m70-2dc.toml --schedule zbv --out zbv.csv"},
    Example{"check", "longhaul check zbv.csv --scenario benchmarks/scenarios/m70-2dc.toml"},
    Example{"simulate",
            "longhaul simulate benchmarks/scenarios/m70-2dc.toml --schedule static,zbv.csv "
            "--set link.latency_ratio=2"},
    Example{"simulate",
            "longhaul simulate benchmarks/scenarios/m70-2dc.toml --schedule 1f1b,zb-h1 --out "
            "first.h5"},
    Example{"ops", "longhaul ops benchmarks/scenarios/m70-2dc.toml --schedule 1f1b --rank 3"},
    Example{"layers", "longhaul layers benchmarks/scenarios/m70-2dc.toml"},
    Example{"plan", "longhaul plan benchmarks/scenarios/atlas-5dc.toml"},
    Example{"trace summary", "longhaul trace summary first.h5"},
    Example{"trace attribution", "longhaul trace attribution first.h5 --schedule zb-h1"},
    Example{"trace export", "longhaul trace export first.h5 --schedule zb-h1 --out first.json"},
    Example{"compare", "longhaul compare first.h5 first.h5 --schedule 1f1b,zb-h1"},
    Example{"trace merge", "longhaul trace merge runs/first --out merged.h5"},
    Example{"link import", "longhaul link import iperf3.json --between west,east"},
};

}  // namespace

std::span<const Example> examples() { return kExamples; }

}  // namespace longhaul
