"""Tables on the terminal, as CSV and as pictures."""
import csv
import os
import subprocess

from simulate import ABDADA, ROOT


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
        """points: (series, published, workers, speedup[, overheads]), drawn by `abdada plot`."""
        lines = ["series,kind,workers,speedup,search,communication,synchronization"]
        for series, printed, workers, speedup, *overheads in points:
            row = [series.replace(",", ""), "published" if printed else "ours", workers, speedup]
            lines.append(",".join(str(v) for v in row + list(overheads[0] if overheads else ())))
        done = subprocess.run([ABDADA, "plot", "--title", title, "--note", note], check=True,
                              input="\n".join(lines) + "\n", capture_output=True, text=True)
        with open(os.path.join(self.folder, name + ".svg"), "w", encoding="utf-8") as file:
            file.write(done.stdout)
