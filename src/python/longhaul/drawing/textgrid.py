"""A table as a picture: texts in coloured cells under one or two rows of headings."""

from dataclasses import dataclass, field

from matplotlib.patches import Rectangle

from longhaul.drawing import style

LINE = 0.155     # inches that a line of text takes
PADDING = 0.10   # of a cell, above and below together
MARGIN = 0.15
HEADING_COLOUR = "#e6e6e6"
ROW_COLOUR = "#f4f4f4"


@dataclass
class Grid:
    title: str
    columns: list                   # headings
    rows: list                      # headings
    cells: list                     # of rows: texts, with line breaks
    colours: list = None            # of rows: matplotlib colours, None for white
    bold: set = field(default_factory=set)   # (row, column)
    groups: list = field(default_factory=list)  # [(text, columns it spans)] above the headings
    corner: str = ""
    note: str = ""                  # below the table
    column_inches: float = 1.0
    row_heading_inches: float = 1.2
    font: float = 7.5


def draw(grid):
    plt = style.apply()
    heights = [_height([row, *cells]) for row, cells in zip(grid.rows, grid.cells)]
    head = _height([grid.corner, *grid.columns])
    group = LINE + PADDING if grid.groups else 0
    note = (grid.note.count("\n") + 1) * LINE + 0.1 if grid.note else 0
    width = grid.row_heading_inches + grid.column_inches * len(grid.columns)
    title = 0.42
    inches = (width + 2 * MARGIN, title + group + head + sum(heights) + note + MARGIN)
    figure = plt.figure(figsize=inches)
    axes = figure.add_axes([0, 0, 1, 1])
    axes.set_xlim(0, inches[0])
    axes.set_ylim(inches[1], 0)
    axes.axis("off")
    axes.text(MARGIN, 0.1, grid.title, fontsize=11, fontweight="bold", va="top")
    y = title
    _groups(axes, grid, y, group)
    y += group
    _row(axes, grid, y, head, grid.corner, grid.columns, heading=True)
    y += head
    for index, (row, cells, height) in enumerate(zip(grid.rows, grid.cells, heights)):
        _row(axes, grid, y, height, row, cells, index)
        y += height
    axes.text(MARGIN, y + 0.08, grid.note, fontsize=7.5, va="top", linespacing=1.35)
    return figure


def _height(texts):
    return max(str(text).count("\n") + 1 for text in texts) * LINE + PADDING


def _groups(axes, grid, y, height):
    x = MARGIN + grid.row_heading_inches
    for text, columns in grid.groups:
        width = columns * grid.column_inches
        _cell(axes, (x, y, width, height), text, HEADING_COLOUR, grid.font, True)
        x += width


def _row(axes, grid, y, height, name, cells, index=-1, heading=False):
    _cell(axes, (MARGIN, y, grid.row_heading_inches, height), name,
          HEADING_COLOUR if heading else ROW_COLOUR, grid.font, True)
    for column, text in enumerate(cells):
        x = MARGIN + grid.row_heading_inches + column * grid.column_inches
        colour = HEADING_COLOUR if heading else "white"
        if not heading and grid.colours and grid.colours[index][column] is not None:
            colour = grid.colours[index][column]
        _cell(axes, (x, y, grid.column_inches, height), text, colour, grid.font,
              heading or (index, column) in grid.bold)


def _cell(axes, box, text, colour, size, bold):
    x, y, width, height = box
    axes.add_patch(Rectangle((x, y), width, height, facecolor=colour, edgecolor="#b0b0b0",
                             linewidth=0.5))
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=size,
              fontweight="bold" if bold else "normal", linespacing=1.3)
