"""Colours, names and sizes that all figures share."""

import warnings

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend comes first)

# The zero-bubble papers' colours. Their luminance falls in steps of 20 or more from W over D to F,
# second chunks between them, so that a print in grey still tells them apart.
FORWARD = (57, 122, 242)
INPUT_GRADIENT = (68, 211, 218)
WEIGHT_GRADIENT = (224, 240, 231)
COLLECTIVE = (172, 64, 0)
WIRE = (255, 188, 16)

BLOCK_COLOURS = {"F": FORWARD, "B": INPUT_GRADIENT, "D": INPUT_GRADIENT, "W": WEIGHT_GRADIENT,
                 "R": (170, 198, 250)}
# Second and later chunks of a device: the same hue, darker.
LATER_CHUNK = {"F": 0.55, "B": 0.80, "D": 0.80, "W": 0.84, "R": 0.80}
PATH_COLOUR = "#c4161c"
MEMORY_FILL = "#c9bfe0"
MEMORY_LINE = "#4b3a7c"
BAND_COLOURS = ("#f4f4f4", "#e6e6e6")
EDGE_COLOUR = "#303030"

BLOCK_NAMES = {"F": "forward (F)", "B": "backward (B = D + W)", "D": "input gradient (D)",
               "W": "weight gradient (W)", "R": "recompute (R)"}

SCHEDULE_NAMES = {"gpipe": "GPipe", "1f1b": "1F1B", "interleaved-1f1b": "Interleaved 1F1B",
                  "zb-h1": "ZB-H1", "zb-h2": "ZB-H2", "zbv": "ZBV",
                  "zbv-auto": "ZBV, cost-aware", "cross-ud": "CrossUD",
                  "cross-ud-sub": "CrossUDSub", "cross-wave": "CrossWave",
                  "cross-loop": "CrossLoop", "cross-bd": "CrossBD",
                  "cross-ud-opt": "CrossUD, solver", "cross-wave-opt": "CrossWave, solver",
                  "best": "best (search)"}
# The static ones are ordered dark to light, steps of 30 and more in luminance (but zbv-auto, a
# darker zbv). Delay-aware ones are
# purple (one stage a device), green (wave) or red (whichever is best).
SCHEDULE_COLOURS = {"gpipe": "#1f1f1f", "1f1b": "#0b5394", "interleaved-1f1b": "#c9561a",
                    "zb-h1": "#3fa7d6", "zb-h2": "#9fcf8f", "zbv": "#f0e442",
                    "zbv-auto": "#b8a500",
                    "cross-ud": "#4a148c", "cross-ud-sub": "#bf8fe0", "cross-wave": "#2aa552",
                    "cross-loop": "#8c6d5a", "cross-bd": "#8a8a2a", "cross-ud-opt": "#a000c8",
                    "cross-wave-opt": "#00601f", "best": "#c2185b"}
LEGEND_COLUMN = 1.9  # inches that an entry needs
OTHER_COLOUR = "#b08fc7"


def schedule_name(name):
    return SCHEDULE_NAMES.get(name, name)


def plain(text):
    """A name as it stands: no formula between two $, no character that cannot be printed."""
    return "".join(char if char.isprintable() else "?" for char in str(text)).replace("$", r"\$")


def rgb(colour, factor=1.0):
    """0..255 to matplotlib's 0..1, darkened by `factor`."""
    return tuple(part / 255 * factor for part in colour)


def block_colour(kind, local_chunk=0):
    """`local_chunk`: position of the chunk among those of its device."""
    return rgb(BLOCK_COLOURS[kind], LATER_CHUNK[kind] if local_chunk else 1.0)


def wire_colour(saturation=0.6):
    """Send and receive: 0.6 for the transfer, 0.2 for a message on its way."""
    return tuple(1 - saturation * (1 - part / 255) for part in WIRE)


def luminance(colour):
    """Of matplotlib's 0..1 components, as a grey print shows them (ITU-R BT.601), 0..255."""
    red, green, blue = colour[:3]
    return 255 * (0.299 * red + 0.587 * green + 0.114 * blue)


def text_colour(background):
    return "white" if luminance(background) < 125 else "black"


def legend_grid(entries, width_inches):
    """Columns and rows of a legend below a figure, the rows evenly filled."""
    rows = -(-entries // max(1, int(width_inches / LEGEND_COLUMN)))
    return -(-entries // rows), rows


def apply():
    warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a name's; a box is drawn
    plt.rcParams.update({
        "font.family": "DejaVu Sans", "font.size": 9, "axes.titlesize": 10, "axes.labelsize": 9,
        "xtick.labelsize": 8, "ytick.labelsize": 8, "legend.fontsize": 8, "hatch.linewidth": 0.5,
        "axes.spines.top": False, "axes.spines.right": False, "figure.dpi": 150,
        "savefig.dpi": "figure", "figure.constrained_layout.use": False,
        "svg.hashsalt": "longhaul"})
    return plt
