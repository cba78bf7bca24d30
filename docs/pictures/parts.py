#!/usr/bin/python3
"""Makes parts.svg, the picture of the README: `parts.py > parts.svg`. It can be read on a light and on a dark background."""

WIDTH, HEIGHT = 480, 290  # narrow, so that its words can be read on a telephone
BOXES = [  # x, y, width, height, kind, title, lines
    (2, 2, 150, 110, "program", "front-end", ("abdada uci,", "analyse, solve: posts", "the job, searches it,", "answers")),
    (165, 2, 150, 110, "program", "worker", ("ttworker: searches", "the same tree", "from the root")),
    (328, 2, 150, 110, "program", "worker", ("on another machine:", "joins and leaves", "at any time")),
    (82, 196, 150, 92, "shard", "shard", ("ttserver: results,", "and who is in", "which node now")),
    (248, 196, 150, 92, "shard", "shard", ("has another part", "of the keys,", "and every job")),
]
FILL = {"program": ("#dbeafe", "#2563eb"), "shard": ("#fef3c7", "#d97706")}
LINKS = [(0, 3), (0, 4), (1, 3), (1, 4), (2, 3), (2, 4)]


def middle(box, is_top):
    x, y, width, height = box[:4]
    return x + width / 2, y if is_top else y + height


def svg():
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
           'font-family="sans-serif" font-size="14" text-anchor="middle" role="img" '
           'aria-label="A front-end and two workers ask and store at two shards">')
    for low, high in LINKS:
        (x, y), (to_x, to_y) = middle(BOXES[low], False), middle(BOXES[high], True)
        yield f'<path d="M{x:g} {y:g} C{x:g} {y + 40:g} {to_x:g} {to_y - 40:g} {to_x:g} {to_y:g}" fill="none" stroke="#7d8590" stroke-width="2"/>'
    for x, y, text in ((36, 160, "ask, store"), (438, 151, "result,"), (438, 169, "open, busy")):
        yield f'<text x="{x}" y="{y}" fill="#7d8590">{text}</text>'
    for x, y, width, height, kind, title, lines in BOXES:
        fill, stroke = FILL[kind]
        yield f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{fill}" stroke="{stroke}" stroke-width="2"/>'
        yield f'<text x="{x + width / 2:g}" y="{y + 23}" font-weight="bold" fill="#111827">{title}</text>'
        for number, line in enumerate(lines):
            yield f'<text x="{x + width / 2:g}" y="{y + 43 + 18 * number}" fill="#374151" font-size="13">{line}</text>'
    yield "</svg>"


if __name__ == "__main__":
    print("\n".join(svg()))
