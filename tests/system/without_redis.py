#!/usr/bin/python3
"""Programs as a machine without hiredis and OpenSSL builds them: they search, and say what they lack. TAP.

    make MODE=dev without-redis run-without-redis

OF_REDIS: the sources that such a build leaves out.
"""
import glob
import os
import re
import sys

from cluster import ROOT, Cluster, check, equal, free_port, main, path_of, run


def no_library_of_redis_is_linked():
    for program in "ttserver", "ttworker", "abdada":
        with open(path_of(program), "rb") as file:
            found = re.findall(rb"lib(?:hiredis|ssl|crypto)\.so[.0-9]*", file.read())
        equal(found, [], program)
        equal(run(program, "--version").lines["out"][-1], "with keys")


def nothing_else_includes_its_headers():
    of_redis, found = os.environ["OF_REDIS"].split(), []
    for path in glob.glob("**/*.[ch]", root_dir=ROOT, recursive=True):
        if path.startswith(("common/", "proto/", "ttserver/", "worker/")) and path not in of_redis:
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                found += [path] if re.search(r"#include <(hiredis|openssl)/", file.read()) else []
    equal(found, [])


def a_redis_is_refused_in_one_line():
    redis = "redis://127.0.0.1:1"
    for words in (("ttserver", "--listen", f"127.0.0.1:{free_port()}", "--memory", "16M", "--backing", redis),
                  ("ttworker", "--table", redis),
                  ("abdada", "analyse", "--table", redis, "--depth", "3", "startpos")):
        done = run(*words)
        check(done.status != 0, words)
        check("this build has no Redis" in done.err(), words, done.tail())


def a_cluster_searches():
    with Cluster(shards=1, workers=1) as cluster:
        found, = cluster.ask("startpos", "--strict", "--select", "plain", "--depth", 5)
        equal(found["depth"], 5)


if __name__ == "__main__":
    sys.exit(main([no_library_of_redis_is_linked, nothing_else_includes_its_headers, a_redis_is_refused_in_one_line,
                   a_cluster_searches], ("ttserver", "ttworker", "abdada")))
