#!/usr/bin/python3
"""docs/pictures/parts.svg is what parts.py makes. TAP."""
import os
import subprocess
import sys

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/pictures")

if __name__ == "__main__":
    made = subprocess.run([sys.executable, os.path.join(FOLDER, "parts.py")], stdout=subprocess.PIPE, text=True, check=True).stdout
    with open(os.path.join(FOLDER, "parts.svg"), encoding="utf-8") as file:
        is_same = file.read() == made
    print(f"1..1\n{'ok' if is_same else 'not ok'} 1 - the picture of the README is the one that its script makes")
    sys.exit(not is_same)
