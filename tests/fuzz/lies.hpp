#pragma once

#include "fuzz/input.hpp"
#include "trace/hdf5/hdf5_handle.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::fuzz {

/// Changes one thing that the rows of a timeline say: a value, a name, or the set of rows.
void lie_in_rows(Timeline& timeline, Input& input);

/// Changes one thing about how an open file is built: an attribute, a dataset's type, shape or
/// storage, a link, a group. HDF5 itself writes it, so the file stays well-formed; what HDF5
/// refuses to write is left out.
void lie_in_structure(trace::hdf5::Id file, Input& input);

}  // namespace longhaul::fuzz
