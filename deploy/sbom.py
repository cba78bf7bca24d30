#!/usr/bin/python3
"""What the programs are made of and need, as a CycloneDX list: sbom.py --version V --commit C --time T PACKAGE=PROBE...

The packages are rows of deploy/deps.sh, with the versions that this
machine has, for purl's sake as packages of Debian. Nothing else of the machine is in it: the same sources, packages and
time make the same bytes. A package that is not installed here is listed without a version.
"""
import argparse
import datetime
import json
import shutil
import subprocess
import sys
import urllib.parse

TOOLS = {"gcc", "make", "pkg-config"}  # build, and are no part of the programs


def installed(names):
    """(name, version) of the first of these packages that is installed; without a version if none is."""
    for name in names if shutil.which("dpkg-query") else ():
        done = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", name],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        state, _, version = done.stdout.partition(" ")
        if state == "installed":
            return name, version
    return names[0], None


def component(row):
    name, version = installed(row.partition("=")[0].split("|"))
    purl = f"pkg:deb/debian/{name}" + (f"@{urllib.parse.quote(version)}" if version else "")
    return {"type": "application" if name in TOOLS else "library", "bom-ref": purl, "name": name,
            **({"version": version} if version else {}), "scope": "excluded" if name in TOOLS else "required", "purl": purl}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    for name in "version", "commit", "time":
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("packages", nargs="+", metavar="PACKAGE=PROBE")
    a = parser.parse_args()
    parts = sorted((component(row) for row in a.packages), key=lambda part: part["name"])
    ours = {"type": "application", "bom-ref": f"abdada@{a.version}", "name": "abdada", "version": a.version,
            "licenses": [{"license": {"id": "MIT"}}], "properties": [{"name": "commit", "value": a.commit}]}
    when = datetime.datetime.fromtimestamp(int(a.time), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    json.dump({"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
               "metadata": {"timestamp": when, "component": ours}, "components": parts,
               "dependencies": [{"ref": ours["bom-ref"], "dependsOn": [part["bom-ref"] for part in parts]}]},
              sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
