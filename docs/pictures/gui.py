#!/usr/bin/python3
"""Takes the pictures of chess programs that play with abdada: `BIN=bin docs/pictures/gui.py FOLDER` makes xboard.png and
gnome-chess.png there. Needs Debian's xvfb, xboard, polyglot and gnome-chess; FOLDER=docs/pictures is what docs/guides/gui.md
shows. Each program plays under a screen of its own that nobody sees, with a home directory of its own.
"""
import os
import struct
import subprocess
import sys
import tempfile
import time
import zlib

SIZE = (980, 700)
SECONDS = 25  # until a program has started and made some moves


def png(path, xwd):
    """Writes the window at the upper left of a black screen, a file of Xvfb in the form of xwd, as PNG."""
    header = struct.unpack(">25I", xwd[:100])
    size, width, height, per_line, colours = header[0], header[4], header[5], header[12], header[19]
    begin = size + 12 * colours
    lines = []
    for y in range(height):
        row = xwd[begin + y * per_line:begin + y * per_line + 4 * width]
        rgb = bytearray(3 * width)
        rgb[0::3], rgb[1::3], rgb[2::3] = row[2::4], row[1::4], row[0::4]
        lines.append(bytes(rgb.rstrip(b"\0")))
    height = max(y for y, line in enumerate(lines) if line) + 1
    width = -(-max(map(len, lines)) // 3)
    rows = [b"\0" + line.ljust(3 * width, b"\0") for line in lines[:height]]

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
                   chunk(b"IDAT", zlib.compress(b"".join(rows), 9)) + chunk(b"IEND", b""))


def take(path, home, number, *command):
    """A picture of the screen on which the command has run for a while."""
    screen = os.path.join(home, f"screen{number}")
    os.mkdir(screen)
    display = f":{90 + number}"
    server = subprocess.Popen(["Xvfb", display, "-screen", "0", f"{SIZE[0]}x{SIZE[1]}x24", "-fbdir", screen],
                              stderr=subprocess.DEVNULL)
    try:
        time.sleep(2)
        program = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={
            **os.environ, "DISPLAY": display, "HOME": home, "XDG_CONFIG_HOME": os.path.join(home, ".config"),
            "PATH": f"{os.environ['PATH']}:/usr/games", "GSETTINGS_BACKEND": "keyfile", "LIBGL_ALWAYS_SOFTWARE": "1", "LANG": "C.UTF-8"})
        time.sleep(SECONDS)
        with open(os.path.join(screen, "Xvfb_screen0"), "rb") as file:
            png(path, file.read())
        program.kill()
        program.wait()
    finally:
        server.terminate()
        server.wait()


def main(folder):
    engine = os.path.join(os.path.abspath(os.environ.get("BIN", "bin")), "abdada")
    with tempfile.TemporaryDirectory() as home:
        os.makedirs(os.path.join(home, ".config/gnome-chess"))
        with open(os.path.join(home, ".config/gnome-chess/engines.conf"), "w", encoding="utf-8") as file:
            file.write(f"[abdada]\nprotocol=uci\nbinary={engine}\narg-easy-0=uci\nuci-go-option-easy-0=movetime 1000\n")
        os.makedirs(os.path.join(home, ".config/glib-2.0/settings"))
        with open(os.path.join(home, ".config/glib-2.0/settings/keyfile"), "w", encoding="utf-8") as file:
            file.write("[org/gnome/Chess]\nplay-as='black'\n")
        take(os.path.join(folder, "xboard.png"), home, 1, "xboard", "-fcp", f"{engine} uci", "-fUCI", "-scp", f"{engine} uci", "-sUCI",
             "-mode", "TwoMachines", "-tc", "1", "-boardSize", "middling", "-showThinking", "true")
        take(os.path.join(folder, "gnome-chess.png"), home, 2, "dbus-run-session", "gnome-chess")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
