"""CrossPipe's claim that its model predicts run times (section 7.1)."""

from longhaul.papers import claims

NEAR_PERCENT = 2


def judge(table, column):
    """A list of one verdict from the measured rows of a table, none where nothing was measured.
    `column`: the difference of measured medians from the prediction in percent. Ranks that sleep
    for the model's own times over links that keep its delays cannot judge the model."""
    rows = table[table[column].notna()]
    if rows.empty:
        return []
    rows = rows.reindex(columns=[*rows.columns.union(["blocks", "network"])])  # old files lack them
    true = (rows["blocks"] == "real") | (rows["network"] == "as it is")
    if not true.any():
        return [claims.judge(
            "model-accurate", claims.NOT_JUDGED, f"{words(rows[column])}, of sleeping blocks over "
            "emulated links", "Ranks take the model's times for blocks and messages from it: the "
            "difference says how well the runtime keeps them, not whether they are true.")]
    off = rows.loc[true, column]
    near = int((off.abs() <= NEAR_PERCENT).sum())
    return [claims.judge("model-accurate", claims.mostly(near, len(off)), words(off),
                         "Medians of runs with real layers, or over a network as it is.")]


def words(off):
    near = int((off.abs() <= NEAR_PERCENT).sum())
    return f"{near} of {len(off)} within {NEAR_PERCENT}%, largest {off[off.abs().idxmax()]:+.1f}%"
