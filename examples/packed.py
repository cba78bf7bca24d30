#!/usr/bin/env python3
"""Asks and stores by the batch from Python: how many pairs a second. examples/packed.py HOST:PORT [COUNT [SECONDS]]"""
import array
import random
import struct
import sys
import time

import abdada
from abdada import packed


def main():
    servers, count, seconds = (sys.argv[1:] + ["256", "3"][len(sys.argv) - 2:])[:3]
    count, seconds, pairs = int(count), float(seconds), 0
    # All but the keys stays the same: depth 5, window (-1, 1); a lower bound of 1.
    asks = bytearray(struct.pack(packed.ASK.format, 0, -1, 1, 5, 0, 0) * count)
    stores = bytearray(struct.pack(packed.STORE.format, 0, 1, 0, 0, 5, abdada.Bound.LOWER) * count)
    ask_keys, store_keys = (memoryview(buffer).cast("Q")[::2] for buffer in (asks, stores))
    answers = bytearray(struct.calcsize(packed.ANSWER.format) * count)
    with abdada.Table(servers, namespace="examples/packed.py") as table:
        table.wait_connected(5)
        begin = time.monotonic()
        while time.monotonic() - begin < seconds:
            keys = array.array("Q", random.randbytes(8 * count))
            ask_keys[:] = store_keys[:] = keys
            table.ask_packed(asks, answers)  # a search looks at the verdicts: struct.iter_unpack(packed.ANSWER.format, answers)
            table.store_packed(stores)
            pairs += count
        print(f"{pairs / (time.monotonic() - begin):.0f} pairs/s, {count} a call")


if __name__ == "__main__":
    main()
