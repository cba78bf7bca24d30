#!/usr/bin/python3
"""deploy/kubernetes: what `kubectl apply -k` would apply, without a cluster. TAP.

    BIN=build/release/bin tests/system/test_kubernetes.py

The kustomization is rendered by kubectl with keys of its own; each object is held against Kubernetes' published
schemas; what refers to something finds it; and the programs are run as the manifests say, with the keys that their
Secrets have. Where kubectl, PyYAML or PyPI cannot be had, what needs them is skipped with the reason.
"""
import base64
import contextlib
import functools
import glob
import importlib.util
import ipaddress
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

from cluster import ROOT, Process, answers, check, equal, free_port, main, needs, run, scratch, start, wait_until
from test_keys import environment

SOURCE = os.path.join(ROOT, "deploy/kubernetes")
PATIENCE_S = 600  # for pip on a busy machine
KUSTOMIZE_2_0 = {"apiVersion", "kind", "namespace", "resources", "images", "configMapGenerator", "secretGenerator"}
PROGRAMS = ("ttserver", "ttworker")
NEEDED = {  # the keys that each has: no more
    "ttserver": {"server.secret", "server.public", "monitor.secret", "allowed/worker.public", "allowed/front-end.public",
                 "allowed/monitor.public", "allowed/administrator.public"},
    "ttworker": {"server.public", "worker.secret"},
    "front-end": {"server.public", "front-end.secret"},
}
KUBE_SYSTEM, MONITORING, ELSEWHERE = "kube-system", "monitoring", "default"


@functools.lru_cache(None)
def why_not():
    if not shutil.which("kubectl"):
        return "no kubectl here (Debian: kubernetes-client)"
    if not importlib.util.find_spec("yaml"):
        return "no Python module yaml here (Debian: python3-yaml)"
    return None


needs_kubectl = needs(why_not)


def load(text):
    import yaml
    return [each for each in yaml.safe_load_all(text) if each]


@functools.lru_cache(None)
def folder():
    return scratch("kubernetes")


@functools.lru_cache(None)
def rendered():
    """The text that would be applied."""
    copy = os.path.join(folder(), "kubernetes")
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("keys"))
    equal(run("abdada", "keygen", os.path.join(copy, "keys")).status, 0)
    done = subprocess.run(["kubectl", "kustomize", copy], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False)
    equal((done.returncode, done.stderr), (0, ""), "kubectl kustomize")
    return done.stdout


@functools.lru_cache(None)
def parsed():
    return json.dumps(load(rendered()))


def objects(kind=None):
    """Copies: a test may change them."""
    return [each for each in json.loads(parsed()) if kind in (None, each["kind"])]


def named(kind, name):
    found, = [each for each in objects(kind) if each["metadata"]["name"] == name]
    return found


def source(name):
    with open(os.path.join(SOURCE, name), encoding="utf-8") as file:
        found, = load(file.read())
    return found


def parts():
    return named("StatefulSet", "ttserver"), named("Deployment", "ttworker"), named("Deployment", "front-end")


def workloads():
    return objects("StatefulSet") + objects("Deployment")


def workload_of(program):
    found, = [each for each in workloads() if name_of(each) == program]
    return found


def pod_of(workload):
    return workload["spec"]["template"]["spec"]


def containers(workload):
    return pod_of(workload).get("initContainers", []) + pod_of(workload)["containers"]


def name_of(each):
    return each["metadata"]["name"]


def ports(workload):
    """{name: number}"""
    return {port["name"]: port["containerPort"] for each in containers(workload) for port in each.get("ports", [])}


def arguments(workload):
    """{option: value} of the program."""
    container, = pod_of(workload)["containers"]
    return dict((option[2:] + "=").split("=")[:2] for option in container.get("args", []))


def selects(selector, labels):
    """As Kubernetes says of a label selector."""
    wanted = selector.get("matchLabels", {})
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        {"In": labels.get(each["key"]) in each.get("values", [])}[each["operator"]]
        for each in selector.get("matchExpressions", []))


def labels_of(workload):
    return workload["spec"]["template"]["metadata"]["labels"]


# ---- the objects ----

@needs_kubectl
def every_object_lies_in_the_namespace():
    kinds = sorted(each["kind"] for each in objects())
    equal(kinds, sorted(["Namespace", "ConfigMap", *["Secret"] * 4, "Service", "StatefulSet", "Deployment", "Deployment",
                         "PodDisruptionBudget", "HorizontalPodAutoscaler", *["NetworkPolicy"] * 4]))
    home = name_of(objects("Namespace")[0])
    for each in objects():
        equal(each["metadata"].get("namespace", home), home, each["kind"], name_of(each))
        equal("namespace" in each["metadata"], each["kind"] != "Namespace", each["kind"], name_of(each))
    fields = set(source("kustomization.yaml"))
    check(fields <= KUSTOMIZE_2_0, "kubectl 1.20 does not know", fields - KUSTOMIZE_2_0)


@functools.lru_cache(None)
def validator():
    """(Python of an environment that has kubernetes-validate, None), or (None, why not)."""
    path = os.path.join(folder(), "venv")
    for words in ([sys.executable, "-m", "venv", path],
                  [path + "/bin/python", "-m", "pip", "install", "--quiet", "kubernetes-validate"]):
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=PATIENCE_S, check=False)
        if done.returncode != 0:
            return None, "kubernetes-validate cannot be installed from PyPI: " + " ".join(done.stdout.split()[-12:])
    return path + "/bin/python", None


VALIDATE = """
import glob, json, os, sys
import kubernetes_validate as k
here = os.path.join(os.path.dirname(k.__file__), "kubernetes-json-schema")
versions = sorted({tuple(map(int, os.path.basename(path)[1:].split("-")[0].split(".")[:2])) for path in glob.glob(here + "/v*")})
versions = [f"{major}.{minor}" for major, minor in (versions[0], versions[-1])]
wrong = []
for each in json.load(sys.stdin):
    for version in versions:
        try:
            k.validate(each, version, strict=True)
        except k.ValidationError as error:
            wrong.append(f"{version} {each['kind']} {each['metadata']['name']}: {error.message}"[:300])
print(json.dumps([versions, wrong]))
"""


def validate(what):
    """(versions of Kubernetes, what their schemas refuse)"""
    done = subprocess.run([validator()[0], "-c", VALIDATE], input=json.dumps(what), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False)
    equal(done.returncode, 0, done.stderr[-2000:])
    return json.loads(done.stdout)


@needs_kubectl
def every_object_is_one_of_the_published_schemas():
    if validator()[1]:
        return validator()[1]
    versions, wrong = validate(objects())
    equal(wrong, [])
    print("# schemas of Kubernetes", " and ".join(versions))
    changed = named("StatefulSet", "ttserver")
    pod_of(changed)["containers"][0]["livenessProbe"]["exec"]["prot"] = 1  # what is not in a schema is refused
    other = named("Deployment", "ttworker")
    pod_of(other)["terminationGracePeriodSeconds"] = "soon"
    equal(len(validate([changed, other])[1]), 2 * len(versions))
    return None


@needs_kubectl
def what_refers_to_something_finds_it():
    stateful, worker, front = parts()
    for each in workloads():
        check(selects(each["spec"]["selector"], labels_of(each)), name_of(each), "does not select its own pods")
        for rule in pod_of(each).get("topologySpreadConstraints", []):
            check(selects(rule["labelSelector"], labels_of(each)), name_of(each), "is not kept apart by its rule")
        for other in workloads():
            equal(selects(each["spec"]["selector"], labels_of(other)), each is other or name_of(each) == name_of(other))
        volumes = {volume["name"]: volume for volume in pod_of(each)["volumes"]}
        mounted = {mount["name"] for one in containers(each) for mount in one["volumeMounts"]}
        equal(mounted, set(volumes), name_of(each))
        for volume in volumes.values():
            if "secret" in volume:
                named("Secret", volume["secret"]["secretName"])
        for one in containers(each):
            for reference in one.get("envFrom", []):
                named("ConfigMap", reference["configMapRef"]["name"])
            equal(one["image"], "abdada:0.2")
    service, = objects("Service")
    equal((service["spec"]["clusterIP"], stateful["spec"]["serviceName"]), ("None", name_of(service)))
    for each in workloads():
        equal(selects({"matchLabels": service["spec"]["selector"]}, labels_of(each)), name_of(each) == "ttserver")
    for port in service["spec"]["ports"]:
        equal(ports(stateful)[port["targetPort"]], port["port"], "a headless Service changes no port")
    budget, = objects("PodDisruptionBudget")
    check(selects(budget["spec"]["selector"], labels_of(stateful)) and not selects(budget["spec"]["selector"], labels_of(worker)))
    check("replicas" not in worker["spec"] and "replicas" in front["spec"], "the autoscaler has the workers alone")


@needs_kubectl
def clients_know_every_shard_by_its_name():
    stateful, (settings,) = named("StatefulSet", "ttserver"), objects("ConfigMap")
    expected = [f"ttserver-{number}.{stateful['spec']['serviceName']}:{ports(stateful)['table']}"
                for number in range(stateful["spec"]["replicas"])]
    equal(settings["data"], {"ABDADA_SERVERS": ",".join(expected)})
    equal(arguments(stateful)["listen"], f"0.0.0.0:{ports(stateful)['table']}")


@needs_kubectl
def metrics_are_where_they_are_sought():
    for name in PROGRAMS:
        workload = workload_of(name)
        port = ports(workload)["metrics"]
        equal(arguments(workload)["metrics"], f"0.0.0.0:{port}")
        notes = workload["spec"]["template"]["metadata"]["annotations"]
        equal((notes["prometheus.io/scrape"], notes["prometheus.io/port"]), ("true", str(port)))
    # What anybody reaches must not end a program: a shard is asked at its own port, a worker is not asked.
    shard, worker = (pod_of(workload_of(name))["containers"][0] for name in PROGRAMS)
    at = f"127.0.0.1:{ports(workload_of('ttserver'))['table']}"
    for probe in "startupProbe", "readinessProbe", "livenessProbe":
        equal(shard[probe]["exec"], {"command": ["ttserver", "--check", at]}, probe)
    equal(worker["readinessProbe"]["httpGet"], {"path": "/healthz", "port": "metrics"})
    check("livenessProbe" not in worker, worker)
    scaler, (rule,) = named("HorizontalPodAutoscaler", "ttworker"), source("prometheus-adapter.yaml")["rules"]["external"]
    wanted, = scaler["spec"]["metrics"]
    equal(wanted["external"]["metric"]["name"], rule["name"]["as"])
    target = scaler["spec"]["scaleTargetRef"]
    named(target["kind"], target["name"])
    check(re.match(r"ttserver_jobs\{", rule["seriesQuery"]), rule)
    check(scaler["spec"]["minReplicas"] >= 1, "without a worker nobody would help the first job at once")


# ---- who reaches whom ----

def admits(peers, port_rules, pod, other, protocol, number, named_ports):
    """Whether one rule of a policy lets `other` (a pod, or an address) and the port through."""
    def is_peer(peer):
        if "ipBlock" in peer:
            return "address" in other and ipaddress.ip_address(other["address"]) in ipaddress.ip_network(peer["ipBlock"]["cidr"])
        if "address" in other:
            return False
        place = {"kubernetes.io/metadata.name": other["namespace"]}
        in_place = selects(peer["namespaceSelector"], place) if "namespaceSelector" in peer else other["namespace"] == pod["namespace"]
        return in_place and selects(peer.get("podSelector", {}), other["labels"])
    return any(is_peer(peer) for peer in peers) and any(
        rule["protocol"] == protocol and named_ports.get(rule["port"], rule["port"]) == number for rule in port_rules)


def passes(pod, other, protocol, number, way):
    """Whether the policies of the pod's namespace let it through: way "ingress" or "egress"."""
    key, target = ("from", pod) if way == "ingress" else ("to", other)
    policies = [each["spec"] for each in objects("NetworkPolicy")
                if way.capitalize() in each["spec"]["policyTypes"] and each["metadata"]["namespace"] == pod.get("namespace")
                and selects(each["spec"]["podSelector"], pod["labels"])]
    return not policies or any(
        admits(rule[key], rule["ports"], pod, other, protocol, number, target.get("ports", {}))
        for policy in policies for rule in policy.get(way, []))


def reaches(left, right, protocol, number):
    return ("address" in left or passes(left, right, protocol, number, "egress")) and (
        "address" in right or passes(right, left, protocol, number, "ingress"))


@needs_kubectl
def the_network_lets_through_what_is_needed_and_no_more():
    home = name_of(objects("Namespace")[0])
    pods = {name_of(each): {"namespace": home, "labels": labels_of(each), "ports": ports(each)} for each in workloads()}
    shard, worker, front = (pods[name] for name in ("ttserver", "ttworker", "front-end"))
    stray = {"namespace": home, "labels": {"app": "else"}}
    elsewhere, prometheus, resolver = ({"namespace": name, "labels": {}} for name in (ELSEWHERE, MONITORING, KUBE_SYSTEM))
    disguised = {"namespace": ELSEWHERE, "labels": labels_of(named("Deployment", "ttworker"))}
    outside, node_cache = {"address": "198.51.100.7"}, {"address": "169.254.20.10"}
    table, shard_metrics, worker_metrics = shard["ports"]["table"], shard["ports"]["metrics"], worker["ports"]["metrics"]
    allowed = [(worker, shard, "TCP", table), (front, shard, "TCP", table), (prometheus, shard, "TCP", shard_metrics),
               (prometheus, worker, "TCP", worker_metrics)]
    for client in worker, front:
        allowed += [(client, server, protocol, 53) for server in (resolver, node_cache) for protocol in ("UDP", "TCP")]
    everybody = [shard, worker, front, stray, elsewhere, prometheus, resolver, disguised, outside, node_cache]
    ours = [shard, worker, front, stray]
    count = 0
    for left in everybody:
        for right in everybody:
            for port in ("TCP", table), ("TCP", shard_metrics), ("TCP", worker_metrics), ("TCP", 53), ("UDP", 53), ("TCP", 443):
                if any(each is pod for each in (left, right) for pod in ours):
                    count += 1
                    equal(reaches(left, right, *port), any(case[0] is left and case[1] is right and case[2:] == port
                                                           for case in allowed), left, right, port)
    print("#", count, "pairs")


# ---- the pods ----

@needs_kubectl
def no_pod_has_more_rights_than_it_needs():
    for workload in workloads():
        pod = pod_of(workload)
        context = pod["securityContext"]
        equal((context["runAsNonRoot"], context["seccompProfile"], pod["automountServiceAccountToken"]),
              (True, {"type": "RuntimeDefault"}, False))
        check(context["runAsUser"] > 0 and context["fsGroup"] > 0)
        check(not {"hostNetwork", "hostPID", "hostIPC"} & set(pod))
        for each in containers(workload):
            rights = each["securityContext"]
            equal((rights["allowPrivilegeEscalation"], rights["readOnlyRootFilesystem"], rights["capabilities"]),
                  (False, True, {"drop": ["ALL"]}), each["name"])
            equal(set(each["resources"]["requests"]), {"cpu", "memory"})
            equal(set(each["resources"]["limits"]), {"cpu", "memory"})
        program, = pod["containers"]
        check(not any("secret" in volume for mount in program["volumeMounts"] for volume in pod["volumes"]
                      if volume["name"] == mount["name"]), "the program sees its own copy alone")
        check(pod["terminationGracePeriodSeconds"] >= 1)


def mebibytes(text):
    number, unit = re.fullmatch(r"(\d+)([KMG])i?", text).groups()
    return int(number) * {"K": 1 / 1024, "M": 1, "G": 1024}[unit]


@needs_kubectl
def a_shard_fits_its_memory():
    shard = named("StatefulSet", "ttserver")
    given, (program,) = arguments(shard), pod_of(shard)["containers"]
    most = mebibytes(given["memory"]) + 6 + 17 + 49 * int(given["sessions"]) / 1024 + 10
    check(mebibytes(program["resources"]["limits"]["memory"]) >= most + 16, "a shard may have", most, "MiB")
    equal(program["resources"]["requests"]["memory"], program["resources"]["limits"]["memory"])
    worker = named("Deployment", "ttworker")
    given, (program,) = arguments(worker), pod_of(worker)["containers"]
    check(mebibytes(program["resources"]["requests"]["memory"]) >= int(given["hash"]) + 64 + 16 + int(given["threads"]) / 2)
    check(float(program["resources"]["requests"]["cpu"]) >= int(given["threads"]))


# ---- the programs, as the manifests start them ----

def options(workload, **replaced):
    """The container's arguments, with some replaced."""
    return [f"--{option}={value}" if value else f"--{option}"
            for option, value in {**arguments(workload), **replaced}.items()]


@needs_kubectl
def the_programs_accept_their_arguments():
    for name in PROGRAMS:
        workload = workload_of(name)
        container, = pod_of(workload)["containers"]
        equal(container["command"], [name])
        done = run(name, *options(workload), "--help")  # read from left to right: what is wrong ends it first
        equal(done.status, 0, done.err())
        equal(run(name, *options(workload), "--unheard-of", "--help").status, 2)


def mount(workload):
    """Does what a node does, and then the pod's first container: the folder that ABDADA_KEYS names."""
    top = tempfile.mkdtemp(dir=folder())
    (first,), (program,) = pod_of(workload)["initContainers"], pod_of(workload)["containers"]
    volumes, places = {each["name"]: each for each in pod_of(workload)["volumes"]}, {}
    for each in first["volumeMounts"]:
        place = places[each["mountPath"]] = os.path.join(top, each["name"])
        os.mkdir(place)
        if "secret" in volumes[each["name"]]:  # files are links into a hidden folder
            os.mkdir(os.path.join(place, "..1"))
            os.symlink("..1", os.path.join(place, "..data"))
            for name, text in named("Secret", volumes[each["name"]]["secret"]["secretName"])["data"].items():
                with open(os.path.join(place, "..1", name), "wb") as file:
                    file.write(base64.b64decode(text))
                os.symlink(os.path.join("..data", name), os.path.join(place, name))
        else:
            os.chmod(place, 0o2777)  # an emptyDir
    def here(text):
        for path in sorted(places, key=len, reverse=True):
            text = text.replace(path, places[path])
        return text
    for _ in range(2):  # it may be started again
        done = subprocess.run([*first["command"], *map(here, first["args"])], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S, check=False)
        equal(done.returncode, 0, done.stdout)
    keys, = [variable["value"] for variable in program["env"] if variable["name"] == "ABDADA_KEYS"]
    at, = [each for each in program["volumeMounts"] if each["mountPath"] == keys]
    ring = shutil.copytree(os.path.join(top, at["name"], at["subPath"]), os.path.join(top, "mounted"))
    os.chmod(ring, os.stat(os.path.join(top, at["name"], at["subPath"])).st_mode)
    return ring


@needs_kubectl
def each_has_the_keys_of_its_role_alone():
    for workload in workloads():
        keys = mount(workload)
        found = {os.path.relpath(path, keys) for path in glob.glob(keys + "/**", recursive=True) if os.path.isfile(path)}
        equal(found, NEEDED[name_of(workload)], name_of(workload))
        for name in found:
            equal(os.stat(os.path.join(keys, name)).st_mode & 0o777, 0o600, name)


def fetch(port, path):
    """(status, text) of a page of this machine."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""
    except OSError:
        return 0, ""


@contextlib.contextmanager
def cluster_of_manifests():
    """(ports of the metrics, starter of the front-end, the shard's probe) of a shard and a worker that have what their
    pods have."""
    shard, worker, front = parts()
    metrics = {name: free_port() for name in PROGRAMS}
    shard_keys = mount(shard)

    def probe(words):
        with environment(ABDADA_KEYS=shard_keys):
            return run(*words[:-1], address)
    with environment(ABDADA_KEYS=shard_keys):
        server = Process("ttserver", *options(shard, listen="127.0.0.1:0", memory="32M", metrics=f"127.0.0.1:{metrics['ttserver']}"))
        address = server.wait_line(r"^ready (\S+)$")[0][1]
    with environment(ABDADA_KEYS=mount(worker), ABDADA_SERVERS=address):
        helper = Process("ttworker", *options(worker, hash="8", metrics=f"127.0.0.1:{metrics['ttworker']}"))
        helper.wait_line("^ready$")
    with environment(ABDADA_KEYS=mount(front), ABDADA_SERVERS=address):
        yield metrics, lambda *words: start("--servers", address, *words), probe
    for process in helper, server:
        equal(process.end(), 0, process.tail())


@needs_kubectl
def the_cluster_of_the_manifests_answers():
    with cluster_of_manifests() as (_, ask, _):
        front = ask("--time", 600000, "startpos")
        front.wait_line("workers 1  shards 1/1", "err")
        equal(front.end(), 0, front.tail())
        found, = answers(front)
        equal((found["shards_up"], found["shards"], found["workers_refused"]), (1, 1, 0))
        check(found["depth"] >= 1 and found["workers"] == 1, found)


@needs_kubectl
def probes_and_the_autoscaler_get_their_answers():
    shard, worker = (pod_of(workload_of(name))["containers"][0] for name in PROGRAMS)
    with cluster_of_manifests() as (metrics, ask, probe):
        for name in "startupProbe", "readinessProbe", "livenessProbe":
            equal(probe(shard[name]["exec"]["command"]).status, 0, name)
        path = worker["readinessProbe"]["httpGet"]["path"]
        for name in PROGRAMS:
            wait_until(lambda: fetch(metrics[name], path)[0] == 200, f"{name} {path}")
        front = ask("--time", 60000, "startpos")
        wait_until(lambda: re.search(r"^ttserver_jobs(\{.*\})? 1$", fetch(metrics["ttserver"], "/metrics")[1], re.MULTILINE),
                   "an open job")
        front.end()
        wait_until(lambda: re.search(r"^ttserver_jobs(\{.*\})? 0$", fetch(metrics["ttserver"], "/metrics")[1], re.MULTILINE),
                   "no job")


def keys_are_never_committed():
    def git(*words):
        return subprocess.run(["git", *words], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=False)
    if not shutil.which("git") or git("rev-parse", "--is-inside-work-tree").returncode != 0:
        return "no git here"
    equal(git("check-ignore", "deploy/kubernetes/keys/server.secret").returncode, 0)
    equal(git("ls-files", "deploy/kubernetes/keys").stdout, "")
    return None


if __name__ == "__main__":
    sys.exit(main([every_object_lies_in_the_namespace, every_object_is_one_of_the_published_schemas,
                   what_refers_to_something_finds_it, clients_know_every_shard_by_its_name,
                   metrics_are_where_they_are_sought, the_network_lets_through_what_is_needed_and_no_more,
                   no_pod_has_more_rights_than_it_needs, a_shard_fits_its_memory, the_programs_accept_their_arguments,
                   each_has_the_keys_of_its_role_alone, the_cluster_of_the_manifests_answers,
                   probes_and_the_autoscaler_get_their_answers, keys_are_never_committed]))
