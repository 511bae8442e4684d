"""Where the rows of a timeline lie: a row for each rank, thin lanes for its messages to other
datacenters, a band for each datacenter. Heights are in rows; y grows downwards."""

from dataclasses import dataclass, field

import numpy as np

from longhaul.trace import BLOCK_KINDS, are_steps, collective_parts

ROW = 1.0
LANE = 0.36
SUBLANE = 0.15
GAP = 0.22
BAND_GAP = 0.30
HAIRLINE = 0.001  # of the time shown
MAX_SUBLANES = 4  # messages that are under way at once on one lane lie side by side, up to here


@dataclass
class Row:
    rank: int
    label: str
    top: float
    lanes: dict = field(default_factory=dict)  # (kind, peer) -> (top of the lane, its height)

    @property
    def bottom(self):
        return self.top + ROW


@dataclass
class Band:
    datacenter: str
    top: float
    bottom: float


@dataclass
class Layout:
    rows: dict  # rank -> Row
    bands: list
    height: float


def home_of(rows):
    """Datacenter of each rank."""
    first = rows.drop_duplicates("rank").sort_values("rank")
    return dict(zip(first["rank"], first["datacenter"].astype(str)))


def wide_area(rows):
    """Sends and receives of blocks that cross datacenters, as long as they last at all."""
    home = home_of(rows)
    messages = rows[rows["kind"].isin(("send", "recv")) & (rows["end_ns"] > rows["start_ns"]) &
                    ~are_steps(rows)]
    crosses = messages["rank"].map(home) != messages["peer"].map(home)
    return messages[crosses.to_numpy(bool)]


def lane_heights(rows):
    """rank -> {(kind, peer): height} of its thin lanes; a collective's peer is -1."""
    heights = {}
    for (rank, kind, peer), group in wide_area(rows).groupby(["rank", "kind", "peer"],
                                                             observed=True):
        count = sublanes(*_sorted_times(group))[1]
        heights.setdefault(rank, {})[kind, peer] = max(LANE, SUBLANE * count)
    for rank in collective_parts(rows)["rank"].unique():
        heights.setdefault(rank, {})["collective", -1] = LANE
    return heights


def visible_ns(rows):
    """The shortest bar that can be seen."""
    return HAIRLINE * (rows["end_ns"].max() - rows["start_ns"].min())


def thin_lanes(rows):
    """{(rank, kind, peer): the longest, ns} of lanes to other datacenters whose bars are all too thin to
    see."""
    messages = wide_area(rows)
    longest = (messages["end_ns"] - messages["start_ns"]).groupby(
        [messages["rank"], messages["kind"].astype(str), messages["peer"]]).max()
    return longest[longest < visible_ns(rows)].to_dict()


def joined(several):
    """The lanes of several panels, each as high as the panel that needs most."""
    result = {}
    for heights in several:
        for rank, lanes in heights.items():
            mine = result.setdefault(rank, {})
            for key, height in lanes.items():
                mine[key] = max(height, mine.get(key, 0))
    return result


def arrange(rows, heights=None):
    """`heights`: lanes to leave room for; by default the rows' own. Lanes to lower ranks lie
    above a rank's row, the others below, so that both ends of a neighbours' message face."""
    heights = lane_heights(rows) if heights is None else heights
    home = home_of(rows)
    places = rows.drop_duplicates("rank").set_index("rank")
    several = places["replica"].nunique() > 1
    laid, bands, y = {}, [], 0.0
    for rank in sorted(home):
        if not bands or bands[-1].datacenter != home[rank]:
            y += BAND_GAP if bands else 0.0
            bands.append(Band(home[rank], y, y))
            y += GAP / 2
        lanes = heights.get(rank, {})
        above = {key: lanes[key] for key in sorted(lanes) if 0 <= key[1] < rank}
        below = {key: lanes[key] for key in sorted(lanes) if key not in above}
        device, replica = places.loc[rank, "device"], places.loc[rank, "replica"]
        row = Row(rank, f"{replica}.{device}" if several else f"{device}", 0.0)
        y = _stack(row, above, y)
        row.top = y
        y = _stack(row, below, row.bottom + (GAP / 4 if below else 0))
        laid[rank] = row
        y += GAP
        bands[-1].bottom = y - GAP / 2
    return Layout(laid, bands, y)


def _stack(row, lanes, y):
    for key, height in lanes.items():
        row.lanes[key] = (y, height)
        y += height + GAP / 4
    return y


def _sorted_times(rows):
    rows = rows.sort_values("start_ns")
    return rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy()


def sublanes(starts, ends):
    """First-fit packing of intervals (ascending by start): sub-lane of each, and their number."""
    free = []
    places = np.zeros(len(starts), int)
    for index, (start, end) in enumerate(zip(starts, ends)):
        lane = next((k for k, until in enumerate(free) if until <= start), len(free))
        if lane == MAX_SUBLANES:
            lane = int(np.argmin(free))
        free[lane:lane + 1] = [end]
        places[index] = lane
    return places, max(len(free), 1)


def local_chunks(rows):
    """Position of each block's chunk among those of its device; -1 for other rows."""
    blocks = rows[rows["kind"].isin(BLOCK_KINDS)]
    order = {}
    for rank, chunk in blocks[["rank", "chunk"]].drop_duplicates().sort_values("chunk").to_numpy():
        order[rank, chunk] = sum(1 for key in order if key[0] == rank)
    return np.array([order.get(key, -1) for key in zip(rows["rank"], rows["chunk"])])
