"""Tables on the terminal, as CSV and as pictures."""
import csv
import os
import subprocess

from simulate import ROOT

# Of Okabe and Ito: told apart by colour-blind readers and in grey.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a6d3b", "#777777"]
OVERHEADS = [(2, "search", "#0072b2"), (3, "communication", "#e69f00"), (4, "synchronization", "#009e73")]


def published(name):
    """A published table's rows as dicts."""
    path = os.path.join(ROOT, "tests/data/paper-tables", name + ".csv")
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def text(value):
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.2f}" if abs(value) < 1000 else f"{value:.0f}"
    return str(value)


class Report:
    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)

    def table(self, name, title, notes, head, rows):
        """Prints the rows below `head` and writes NAME.csv."""
        print(f"\n== {title}")
        for note in notes:
            print(f"   {note}")
        cells = [head] + [[text(value) for value in row] for row in rows]
        width = [max(len(row[i]) for row in cells) for i in range(len(head))]
        for row in cells:
            print("   " + "  ".join(cell.rjust(w) for cell, w in zip(row, width)), flush=True)
        with open(os.path.join(self.folder, name + ".csv"), "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(head)
            writer.writerows(rows)

    def picture(self, name, title, note, points):
        """Writes NAME.svg with gnuplot. points: (series, published, workers, speedup[, overheads]).

        Series are lines, published values markers of the colour of the series with the same name.
        Overheads are (search, communication, synchronization); where any are given, a second panel
        stacks them. Without gnuplot the tables and CSV files are there all the same.
        """
        try:
            drawn = subprocess.run(["gnuplot"], input=script(title, note, points).encode(), stdout=subprocess.PIPE,
                                   check=True)
        except FileNotFoundError:
            print(f"   no picture of {name}: install gnuplot-nox", flush=True)
            return
        with open(os.path.join(self.folder, name + ".svg"), "wb") as file:
            file.write(drawn.stdout)


def quoted(words):
    """As a string of gnuplot's."""
    return "'" + words.replace("'", "''") + "'"


def script(title, note, points):
    """What gnuplot is to draw."""
    series = {}
    for label, printed, *values in points:
        series.setdefault((label, printed), []).append(values)
    labels = list(dict.fromkeys(label for label, _ in series))
    bars = [(n, overheads[0]) for _, _, n, _, *overheads in points if overheads]
    most = max([2] + [values[0] for rows in series.values() for values in rows])
    lines, curves = ["set encoding utf8"], ["x dashtype 2 linecolor '#333333' title 'ideal'"]
    for number, ((label, printed), rows) in enumerate(series.items()):
        lines += [f"$s{number} << END"] + [f"{row[0]} {row[1]}" for row in rows] + ["END"]
        style = ("points pointtype 4 pointsize 1.2 linewidth 2" if printed else
                 "linespoints pointtype 7 pointsize 0.6 linewidth 2")
        colour = COLOURS[labels.index(label) % len(COLOURS)]
        curves.append(f"$s{number} using 1:2 with {style} linecolor '{colour}' "
                      f"title {quoted(label + (' (published)' if printed else ''))}")
    lines += ["$bars << END"] + [" ".join(str(v) for v in (n, *parts)) for n, parts in bars] + ["END"]
    lines += [f"set terminal svg noenhanced size {1160 if bars else 580},486 background '#ffffff'",
              f"set multiplot layout 1,{2 if bars else 1} title {quoted(title)} . \"\\n\" . {quoted(note)}",
              "set grid linecolor '#dddddd' linetype 1", "set key left top reverse Left", "set xlabel 'workers'",
              "set ylabel 'speedup'", "set logscale xy 2", f"set xrange [1:{most}]", "set yrange [*<1:2<*]",
              "plot " + ", ".join(curves)]
    if bars:
        lines += ["unset logscale", "set autoscale", "set grid noxtics", "set format y '%.0f%%'",
                  "set ylabel 'overhead (100%: the work of one worker)'", "set style histogram rowstacked",
                  "set style fill solid", "set boxwidth 0.6", "set xzeroaxis linetype 1 linecolor '#333333'",
                  "plot " + ", ".join(f"$bars using (100*${column}){':xtic(1)' if column == 2 else ''} with histograms "
                                      f"linecolor '{colour}' title '{part}'" for column, part, colour in OVERHEADS)]
    return "\n".join(lines + ["unset multiplot"]) + "\n"
