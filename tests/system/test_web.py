#!/usr/bin/python3
"""The page of `abdada top --web`: what is served and to whom, and the page itself in a browser without a screen. TAP.

    BIN=build/release/bin tests/system/test_web.py      SHOTS=DIR: pictures of the page, into that folder

The page is the same in all builds, so the browser is left out with QUICK=1 and where the programs have sanitizers.
"""
import contextlib
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time

import browser
import client
from cluster import (STARVED, PATIENCE, PATIENT, QUICK, SANITIZED, Process, Shard, Worker, answers, check, equal, free_port,
                     main, needs, promised, run, stalled, start, wait_until)

ITALIAN = "r1bqk1nr/pppp1ppp/2n5/2b1p3/2B1P3/5N2/PPPP1PPP/RNBQK2R w KQkq - 4 4"
SEARCHED = "r4k2/pb2bp1r/1p1qp2p/3pNp2/3P1P2/2N3P1/PPP1Q2P/2KRR3 w - - 0 21"
AFTER_LINE = "r1bqk2r/pppp1ppp/2n2n2/2b5/2BpP3/5N2/PPP2PPP/RNBQ1RK1 w kq - 0 6"  # 4. O-O Nf6 5. d4 exd4
LONG_MS = 20000  # between heartbeats
NASTY = "<img src=x onerror=bad()>"

needs_browser = needs(browser.why_not)


class Web(Process):
    """`abdada top --web`; .address, .url (with the token), .token ("" without keys)."""

    def __init__(self, servers, at="0", *options):
        super().__init__("abdada", "top", "--servers", servers, "--web", at, *options)
        self.url = self.wait_line(r"^abdada top: the page is at (\S+)$", "err")[0][1]
        self.address = re.fullmatch(r"http://(\S+?)/(#\S+)?", self.url)[1]
        self.token = self.url.partition("#token=")[2]

    def get(self, path, method="GET", **headers):
        """(status, headers, body)"""
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()

    def view(self, newer_than=0):
        """The next view: the first one whose time_ms is more."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}

        def newer():
            status, answered, body = self.get("/view", **headers)
            check(status in (200, 204) and (status == 200) == bool(body), status, body)
            view = status == 200 and json.loads(body)
            if view and view["time_ms"] > newer_than:
                equal(answered["Content-Type"], "application/json")
                return view
            return None
        return wait_until(newer, "a view")


@contextlib.contextmanager
def keys_made():
    """A ring of keys, which all programs use meanwhile."""
    with tempfile.TemporaryDirectory(prefix="abdada-web-") as folder:
        keys = os.path.join(folder, "keys")
        equal(run("abdada", "keygen", keys).status, 0)
        os.environ["ABDADA_KEYS"] = keys
        try:
            yield keys
        finally:
            del os.environ["ABDADA_KEYS"]


class Front(client.Client):
    """A front-end that posts one job and says of it what it likes. It sends no heartbeats: its shard should wait LONG_MS
    for them."""

    def __init__(self, address, name, game, position, depth=20):
        super().__init__(address)
        self.instance = random.getrandbits(63)
        self.hello(role=client.FRONT, instance=self.instance, name=name)
        self.job = random.getrandbits(63) | 1
        self.send(client.JOB_POST, self.job, 0, game, position, 1, 1, "abdada", 0, depth, 5, 0, 0)

    def report(self, depth, score, line, nodes=1000):
        """Of the nodes a tenth is duplicated, and as many are abandoned."""
        self.send(client.JOB_REPORT, self.job, 0, client.SEARCHING, depth, score, 0, nodes, 1, 1, 1, nodes // 10,
                  nodes // 10, 1, 1, nodes, 2 * nodes, line, "", "")
        self.heartbeat()  # so it has been taken

    def leave(self):
        self.bye()
        self.close()


# ---- what is served ----

def wrong_use_is_said():
    for words, status, why in (
            (["--web", "nonsense"], 2, "nonsense"),
            (["--web", "127.0.0.1:99999"], 2, "99999"),
            (["--web", "0", "--json"], 2, "--web excludes --once and --json"),
            (["--web", "0", "--web-host", "https://a.example/"], 2, "https://a.example/"),
            (["--web-host", "a"], 2, "--web-host needs --web"),
            (["--web", "0"] + 17 * ["--web-host", "a"], 2, "a"),
            (["--web", "0.0.0.0:0"], 1, "can be reached from other machines"),
            (["--web", "no-such-host.invalid:80"], 1, "unknown host")):
        done = run("abdada", "top", "--servers", "127.0.0.1:1", *words)
        equal((done.status, len(done.lines["err"]), done.out()), (status, 1, ""), words, done.err())
        check(why in done.err(), done.err())
    taken = Web("127.0.0.1:1")
    done = run("abdada", "top", "--servers", "127.0.0.1:1", "--web", taken.address)
    equal(done.status, 1)
    check("cannot listen: Address already in use" in done.err(), done.err())


def it_serves_loopback_unless_another_host_is_named():
    port = free_port()
    for at, address in ((str(port), f"127.0.0.1:{port}"), (f":{port}", f"127.0.0.1:{port}")):
        web = Web("127.0.0.1:1", at)
        equal(web.address, address)
        equal(web.get("/", Host="example.com")[0], 421, "a page of a foreign name")
        equal(web.get("/", Host="localhost:9")[0], 200, "a forwarded port")
        equal(web.end(), 0, web.err())
    web = Web("127.0.0.1:1", "0", "--web-host", "board.example.com", "--web-host=other")  # what a proxy passes on
    for host, status in (("board.example.com", 200), ("Board.example.com:443", 200), ("other", 200), ("localhost", 200),
                         ("example.com", 421), ("board.example.com.evil.example", 421)):
        equal(web.get("/", Host=host)[0], status, host)
    equal(web.end(), 0, web.err())
    for words, status in ((), 200), (("--web-host", "board.example.com"), 421):
        web = Web("127.0.0.1:1", "0.0.0.0:0", "--insecure", *words)
        web.address = web.address.replace("0.0.0.0", "127.0.0.1")
        equal(web.get("/", Host="example.com")[0], status, words)
        equal(web.get("/", Host="board.example.com")[0], 200, words)
        equal(web.end(), 0, web.err())


def the_page_loads_nothing_else():
    web = Web("127.0.0.1:1")
    status, headers, page = web.get("/")
    equal((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
    policy = headers["Content-Security-Policy"]
    check("default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy, policy)
    found = set(re.findall(r"""(?:src|href|action)\s*=\s*["']?([^"'\s>]+)|url\(([^)]*)\)|https?://([^\s"'%]+)""", page))
    found = {next(filter(None, parts)) for parts in found}
    check(all(part.startswith(("data:image/svg+xml", "www.w3.org/2000/svg")) for part in found), found)
    check(not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", page), "text goes in as text")
    equal(web.get("/healthz")[::2], (200, "ok\n"))
    equal(web.get("/nothing")[0], 404)
    equal(web.get("/view", "POST")[0], 405)


def without_the_token_nothing_is_said():
    with keys_made() as keys:
        shard = Shard(keys=keys)
        web = Web(shard.address)
        check(re.fullmatch(r"[0-9a-f]{32}", web.token), web.url)
        wrong = ("0" if web.token[0] != "0" else "1") + web.token[1:]
        for headers in ({}, {"Authorization": f"Bearer {wrong}"}, {"Authorization": "Bearer"},
                        {"Authorization": f"Basic {web.token}"}, {"Cookie": f"token={web.token}"}):
            status, _, body = web.get("/view", **headers)
            equal((status, shard.address in body), (401, False), headers)
        equal(web.get(f"/view?token={web.token}")[0], 401, "a token in the address would be in logs")
        equal(web.view()["shards"][0]["address"], shard.address)
        again = Web(shard.address)
        check(re.fullmatch(r"[0-9a-f]{32}", again.token) and again.token != web.token, "another at each start", again.url)
        equal(again.get("/view", Authorization=f"Bearer {web.token}")[0], 401, "that of the one before")
        monitor, = [line for line in open(os.path.join(keys, "monitor.secret"), encoding="ascii") if line.startswith("secret")]
        check(monitor.split()[1] not in web.err(), "the key itself is not said")


def views_have_the_fields_of_top():
    shard = Shard(heartbeat_ms=LONG_MS)
    worker = Worker(shard.address, name="w0")
    web = Web(shard.address)
    front = Front(shard.address, "someone", "chess", ITALIAN)
    front.report(3, 25, "e1g1 g8f6")

    def kinds(rows):
        return {row["kind"]: set(row) for row in rows}
    view = wait_until(lambda: next((v for v in [web.view()] if len(v["members"]) == 2 and v["jobs"]), None), "the members")
    check(view["time_ms"] > 1.6e12)
    done = run("abdada", "top", "--servers", shard.address, "--once", "--json", *PATIENT)
    lines = kinds(json.loads(line) for line in done.lines["out"])
    rows = kinds(view["shards"] + view["jobs"] + view["members"] + [view["total"]])
    lines.pop("monitor", None)  # the page's own
    equal(rows, lines)
    equal(set(rows), {"shard", "job", "worker", "front", "total"})
    job, = view["jobs"]
    equal([job[name] for name in ("owner", "position", "reached", "score", "score_kind", "line")],
          ["someone", ITALIAN, 3, 25, "cp", "e1g1 g8f6"])
    equal([job[name] for name in ("nodes", "duplicated", "overhead_estimate", "bytes")], [1000, .1, .25, 3000])
    begin, count = view["time_ms"], 0
    while view["time_ms"] - begin < 1500:
        view, count = web.view(view["time_ms"]), count + 1
    check(count <= 7, count, "views in 1.5 s, more than 4 a second")
    front.leave()
    equal(worker.end(), 0)


def a_cluster_is_asked_once_for_all_pages_and_not_while_nobody_watches():
    shard = Shard(heartbeat_ms=LONG_MS)  # so that hardly any message comes by itself
    web = Web(shard.address)
    watch = client.Client(shard.address).hello()

    def messages(seconds=0):
        """That the shard gets, in these seconds if any are given."""
        before = watch.stats()["messages"] if seconds else 0
        time.sleep(seconds)
        return watch.stats()["messages"] - before
    pages, stop = [], threading.Event()

    def follow():
        times, at = [], 0
        while not stop.is_set():
            at = web.view(at)["time_ms"]
            times.append(at)
        pages.append(times)
    following = [threading.Thread(target=follow) for _ in range(20)]
    for each in following:
        each.start()
    begin = web.view()["time_ms"]
    start_s, before, view = time.monotonic(), messages(), begin
    while view - begin < 2000:
        view = web.view(view)["time_ms"]
    asked = messages() - before
    elapsed_s = time.monotonic() - start_s
    stop.set()
    for each in following:
        each.join()
    check(asked <= 3 * 4 * elapsed_s + 10, asked, "messages in", elapsed_s, "s for 20 pages")
    check(asked >= 3, asked, "messages, so that views are new")
    equal((len(pages), [times for times in pages if times[-1] < begin]), (20, []))

    def is_spared():
        tag = web.get("/view")[1]["ETag"]
        return tag and web.get("/view", **{"If-None-Match": tag})[::2] == (304, "")
    wait_until(is_spared, "a view that is known already is not sent again")
    # Who went away is missed after some seconds; then it is quiet for as long as anybody cares to wait.
    wait_until(lambda: messages(seconds=1) <= 3, "silence")
    watch.bye()
    watch.close()


def deaf_and_slow_visitors_keep_nobody_waiting():
    """More of them than there are places, from the good one's own address; and they come again."""
    web, stop, faults = Web(Shard(heartbeat_ms=LONG_MS).address), threading.Event(), []
    address = web.address.rsplit(":", 1)

    def crowd(request, count=190):
        held = []
        try:
            while not stop.is_set():
                while len(held) < count:
                    held.append(socket.create_connection(address, PATIENCE))
                    with contextlib.suppress(OSError):
                        held[-1].sendall(request)
                stop.wait(0.1)
                for one in held[:]:  # who was turned away comes again
                    with contextlib.suppress(OSError):
                        one.setblocking(False)
                        if one.send(b"a") == 1:
                            continue
                    one.close()
                    held.remove(one)
        except OSError as error:
            faults.append(error)
        for one in held:
            one.close()
    crowds = [threading.Thread(target=crowd, args=(request,)) for request in
              (b"GET /view HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /view HTTP/1.1\r\nA: ")]
    for each in crowds:
        each.start()
    view, count, begin = {"time_ms": 0}, 0, time.monotonic()
    while time.monotonic() - begin < 5:
        try:
            view, count = web.view(view["time_ms"]), count + 1
        except (ConnectionError, http.client.HTTPException):  # turned away by the crowd: a page asks again
            pass
    stop.set()
    for each in crowds:
        each.join()
    equal(faults, [])
    promised(f"a view beside 380 visitors that read or say nothing ({count} in 5 s)", 5 / max(count, 1), 1)


def it_ends_with_a_signal_while_pages_are_open():
    shard = Shard()
    for number in (signal.SIGTERM, signal.SIGINT):
        web = Web(shard.address)
        web.view()
        reading = socket.create_connection(web.address.rsplit(":", 1))
        reading.sendall(b"GET /view HTTP/1.1\r\n")
        equal(web.end(number), 0, web.err())
        reading.close()


# ---- the page ----

def tile(page, name):
    """(class, text) of the tile of that name; None: there is none."""
    return page.js("const tile = [...document.querySelectorAll('.tile')].find(t => t.querySelector('b').textContent === arguments[0]);"
                   "return tile ? [tile.className, tile.textContent] : null", name)


def is_dead(page, name):
    return "dead" in tile(page, name)[0].split()


def facts(page, name):
    return dict(page.js("return [...document.querySelectorAll(arguments[0] + ' > div')].map("
                        "row => [row.firstChild.textContent, row.lastChild.textContent])", name))


def pieces(page):
    """{square: class} as drawn."""
    found = page.js("return [...document.querySelectorAll('#board .piece')].map(p => [p.className.baseVal, p.transform.baseVal[0].matrix.e,"
                    " p.transform.baseVal[0].matrix.f])")
    return {"abcdefgh"[round(x / 45)] + str(8 - round(y / 45)): kind.split()[1] for kind, x, y in found}


def depth(page):
    return int(facts(page, "#facts")["Depth"].split()[0])


@needs_browser
def a_search_is_followed_and_deaths_are_seen():
    with keys_made() as keys:
        shards = [Shard(keys=keys, heartbeat_ms=1000) for _ in range(2)]
        servers = ",".join(shard.address for shard in shards)
        workers = [Worker(servers, name="w0"), Worker(servers, name="big", threads=2)]
        web = Web(servers)
        names = [shard.address for shard in shards] + ["w0", "big"]
        with browser.Page(web.url) as page:
            wait_until(lambda: all(tile(page, name) and not is_dead(page, name) for name in names), "all tiles")
            check("token" not in page.js("return location.href"), "the token does not stay in the address")
            equal(page.text("#state"), "live")
            gone = []
            for _ in range(10):  # until the machine runs for four seconds: else nobody can say who was late
                begin = time.monotonic()
                wait_until(lambda: time.monotonic() > begin + 4, "four quiet seconds")
                before, gone = gone, sorted(line for line in page.texts("#log span") if "is gone" in line)
                if stalled(begin) < 0.2:
                    equal(gone, before, "nothing idle is taken for dead")
                    break
            else:
                print("# not judged: the machine stood still in each four seconds")
            front = start("--servers", servers, "--time", "600000", "--fresh", SEARCHED)
            wait_until(lambda: page.text("#which") and "running" in page.text("#which") and depth(page) > 0, "the search on the page")
            equal(len(pieces(page)), 26)
            wait_until(lambda: len(page.texts("#line button")) >= 3, "its line")
            wait_until(lambda: page.js("return document.querySelectorAll('#board .arrow').length") >= 3, "arrows")
            before = depth(page)
            wait_until(lambda: depth(page) > before, "the depth grows")

            def has_speed(name):
                text = (tile(page, name) or ("", ""))[1]
                return "searches" in text and not re.search(r"\D0 nodes/s", text)
            wait_until(lambda: re.search(r"[1-9]", facts(page, "#facts")["By front-end"]), "the front-end's own nodes/s")
            wait_until(lambda: all(map(has_speed, ("w0", "big", f"abdada:{front.popen.pid}"))), "nodes/s of each that searches")
            check(page.js("return document.querySelectorAll('#scores .curve, #depths .curve, #rate .curve').length") == 3, "charts")
            if os.environ.get("SHOTS"):
                wait_until(lambda: page.text("#which") == "running for 8 s", "enough to be seen in the pictures")
            page.shoot("page")
            page.prefer("dark")
            page.shoot("page-dark")
            page.resize(360, 740)
            page.shoot("phone-dark")
            page.prefer("light")
            page.shoot("phone")
            page.resize(1280, 900)
            kills_begin = time.monotonic()
            for process, name in ((workers[0], "w0"), (shards[1], shards[1].address)):
                begin = time.monotonic()
                process.kill()
                wait_until(lambda: is_dead(page, name), f"{name} grey")
                promised(f"{name} killed, its tile is grey", time.monotonic() - begin, 2)
            if stalled(kills_begin) >= 0.2:  # they may have been late
                wait_until(lambda: not is_dead(page, "big") and not is_dead(page, shards[0].address), "the others live")
            check(not is_dead(page, "big") and not is_dead(page, shards[0].address), "the others live")
            page.shoot("after-kill")
            begin = time.monotonic()
            workers[1].stop()
            wait_until(lambda: is_dead(page, "big"), "big grey")
            promised("a worker stands still, its tile is grey", time.monotonic() - begin, 3)
            workers[1].send_signal(signal.SIGCONT)
            wait_until(lambda: not is_dead(page, "big"), "big is back")
            begin = time.monotonic()
            workers[0] = Worker(servers, name="w0")
            shards[1] = Shard(shards[1].port, keys=keys, heartbeat_ms=1000)
            wait_until(lambda: not is_dead(page, "w0") and not is_dead(page, shards[1].address), "both are back")
            promised("both started again, their tiles live", time.monotonic() - begin, 4)
            check([line for line in page.texts("#log span") if line == "worker w0 is back"], "it is said, too")
            best = facts(page, "#facts")["Best move"]
            front.send_signal(signal.SIGINT)
            answer, = answers(front)
            wait_until(lambda: page.text("#which") == "ended", "the end of the search")
            said = facts(page, "#facts")["Best move"]  # the end of a search may find another, of which no shard hears
            check(said in (best, f"{answer['pv_san'][0]} ({answer['bestmove']})"), said, best, answer["bestmove"])
            equal(page.faults(), [])


@needs_browser
def the_line_can_be_stepped_through():
    """Castling, en passant, promotion; what is no move ends the line, what is no chess is text."""
    shard = Shard(heartbeat_ms=LONG_MS)
    web = Web(shard.address)
    front = Front(shard.address, "castler", "chess", ITALIAN)
    front.report(7, 31, "e1g1 g8f6 d2d4 e5d4 e1e9 f1e1")
    with browser.Page(web.url) as page:
        wait_until(lambda: page.texts("#line button") == ["4. O-O", "Nf6", "5. d4", "exd4"], "the line, as far as it goes")
        equal(page.js("return [...document.querySelectorAll('#line button')].map(b => b.title)"), ["e1g1", "g8f6", "d2d4", "e5d4"])
        equal(facts(page, "#facts")["Best move"], "O-O (e1g1)")
        equal(page.js("return document.querySelector('#shown').value"), ITALIAN, "the position that is searched")
        equal(len(pieces(page)), 32)
        page.js("document.querySelector('#stage').focus()")
        page.press("ARROW_RIGHT")
        castled = pieces(page)
        check(castled["g1"] == "w" and castled["f1"] == "w" and "e1" not in castled and "h1" not in castled, castled)
        equal(page.text("#line [aria-current]"), "4. O-O")
        page.press("END")
        taken = pieces(page)
        check(len(taken) == 31 and taken["d4"] == "b", taken)
        page.js("document.querySelector('#copy').click()")
        equal(page.text("#copy"), "Copied")
        equal(page.js("return document.querySelector('#shown').value"), AFTER_LINE, "the position that is shown")
        page.js("document.querySelector('#stage').focus()")
        page.press("HOME")
        equal(len(pieces(page)), 32)
        page.js("document.querySelectorAll('#line button')[2].click()")
        equal(page.text("#line [aria-current]"), "5. d4")
        front.report(8, -31000 + 6, "e1g1 g8f6 d2d3")
        wait_until(lambda: page.texts("#line button")[-1:] == ["5. d3"], "another line")
        check(page.text("#line [aria-current]") is None, "the line changed before where we were")
        equal(facts(page, "#facts")["Score for White"], "mate in 3, lost")
        for where in ("#facts", "#figures"):
            equal([facts(page, where)[name].replace("\u202f", " ") for name in ("Overhead", "Duplicated")], ["\u2265 25 %", "10 %"])
        front.leave()
        front = Front(shard.address, "passer", "chess", "8/1P2k3/8/8/3p4/8/4P2K/8 w - - 0 40")
        front.report(9, 31000 - 5, "e2e4 d4e3 b7b8n")
        wait_until(lambda: page.texts("#line button") == ["40. e4", "dxe3", "41. b8=N"], "the next search is shown by itself")
        page.press("ARROW_RIGHT")
        equal(page.js("return document.querySelector('#shown').value"), "8/1P2k3/8/8/3pP3/8/7K/8 b - e3 0 40")
        page.press("ARROW_RIGHT")
        equal(pieces(page), {"b7": "w", "e7": "b", "e3": "b", "h2": "w"})
        page.press("ARROW_RIGHT")
        check("knight b8" in page.js("return document.querySelector('#board').getAttribute('aria-label')"))
        front.leave()
        front = Front(shard.address, "shuffler", "chess", "1k1r4/1p3p2/8/8/8/8/8/1R2K1R1 w GBd - 0 1")
        front.report(9, 17, "e1g1 b8d8")
        wait_until(lambda: page.texts("#line button") == ["1. O-O", "O-O"], "castling of Chess960")
        page.press("ARROW_RIGHT", "ARROW_RIGHT")
        equal(page.js("return document.querySelector('#shown').value"), "5rk1/1p3p2/8/8/8/8/8/1R3RK1 w - - 2 2")
        front.leave()
        front = Front(shard.address, "grower", "tree", "tree:b=20,d=20,seed=1")
        front.report(4, 17, "12 1 14")
        wait_until(lambda: "The line: 12 1 14" in (page.text("#text") or ""), "a game without a board is text")
        front.leave()
        equal(page.faults(), [])


@needs_browser
def shards_in_one_place_say_so():
    with tempfile.TemporaryDirectory(prefix="abdada-web-") as folder:
        paths = [os.path.join(folder, name) for name in ("results", "copy")]
        equal(Shard(0, "--snapshot", paths[0]).end(), 0)
        shutil.copy(*paths)
        one, other = [Shard(0, "--snapshot", path) for path in paths]
        with browser.Page(Web(f"{one.address},{other.address}").url) as page:
            for shard, twin in (one, other), (other, one):
                wait_until(lambda: f"the same place in the ring as {twin.address}" in (tile(page, shard.address) or ["", ""])[1], "both say so")
                wait_until(lambda: "partly" in tile(page, shard.address)[0].split(), "its tile")
            other.kill()
            wait_until(lambda: tile(page, one.address)[0] == "tile alive", "it has its place alone")
            equal(page.faults(), [])


@needs_browser
def a_clock_that_is_set_back_keeps_nobody_alive():
    shard = Shard()
    worker = Worker(shard.address, name="w0")
    web = Web(shard.address)
    with browser.Page(web.url) as page:
        wait_until(lambda: tile(page, "w0") and not is_dead(page, "w0"), "its tile")
        page.js("now += 36e5; for (const each of [...members.values(), ...shards.values()]) { each.seen += 36e5; }")
        worker.kill()
        wait_until(lambda: (tile(page, "w0") or ["dead"])[0].endswith("dead"), "it is seen to be dead")
        wait_until(lambda: not is_dead(page, shard.address), "the shard lives")
        equal(page.faults(), [])


def show_views(page, count, view):
    """Makes the page take so many views, a second from each to the next; `view` is JavaScript for that of number i. All of
    them at once: the next one of the cluster comes from the past, and all is forgotten. Returns facts of the page then."""
    return page.js(f"""forgetAll();
        for (let i = 0, begin = now + 1000; i < {count}; i++) {{
            take(Object.assign({{time_ms: begin + 1000 * i, shards: [], members: [], jobs: [], total: {{}}}}, {view}));
        }}
        const waiting = [...document.querySelectorAll('#figures > div')].find(row => row.firstChild.textContent === 'Waiting');
        return [waiting.lastChild.textContent, document.querySelectorAll('#members .tile').length,
                document.querySelectorAll('#jobs button').length]""")


@needs_browser
def waiting_is_the_mean_of_workers_however_seldom_they_report():
    """Two workers: each second view brings a report of one that waited all the time, the other waits for nothing. What a
    front-end does is its own."""
    with browser.Page(Web(Shard().address).url) as page:
        wait_until(lambda: page.text("#shards-count") == "1 of 1 up", "a view")
        found = show_views(page, 21, "{members: ['worker', 'worker', 'front'].map((kind, k) => ({kind, user: '', name: 'm' + k, "
                           "instance_id: '' + k, job: '1', silent_ms: 0, nodes: i, waiting: k === 0 ? i % 2 : k === 2 ? 1 : 0, "
                           "waited_us: k === 0 ? 2e6 * Math.floor(i / 2) : k === 2 ? 1e6 * i : 0}))}")
        check(found[0] in ("40\u202f%", "50\u202f%", "60\u202f%"), found)
        equal(page.faults(), [])


@needs_browser
def of_what_is_gone_the_newest_stay():
    """In each view there is another worker of two threads, and another job."""
    with browser.Page(Web(Shard().address).url) as page:
        wait_until(lambda: page.text("#shards-count") == "1 of 1 up", "a view")
        _, tiles, jobs = show_views(
            page, 150, "{members: [0, 1].map(k => ({kind: 'worker', user: '', name: `w${i}.${k}`, instance_id: `${i} ${k}`, job: '', "
            "silent_ms: 0})), shards: [{address: 'a:1', state: 'up', boot: '1'}], jobs: [{job: '' + i, owner: 'o' + i, reached: 0, "
            "game: 'chess', position: ''}]}")
        equal((tiles, jobs in (51, 52)), (51, True), jobs, "50 that are gone, and the present one")
        equal(page.faults(), [])


@needs_browser
def what_a_shard_does_not_report_is_a_dash():
    with browser.Page(Web(Shard().address).url) as page:
        wait_until(lambda: re.search(r"full 0\.0\u202f%, 0 in flight", page.text("#shards") or ""), "an empty shard")
        equal(facts(page, "#figures")["In flight"], "0")
        text, total = page.js(
            "forgetAll(); take({time_ms: now + 1000, shards: [{address: 'a:1', state: 'up', boot: '1'}], members: [], jobs: [], "
            "total: {inflight_entries: 0}});"
            "return [document.querySelector('#shards').textContent, document.querySelector('#figures > :last-child').textContent]")
        check("full \u2013, \u2013 in flight" in text, text)
        equal(total, "In flight\u2013")
        equal(page.faults(), [])


@needs_browser
def the_keyboard_is_enough():
    shard = Shard(heartbeat_ms=LONG_MS)
    web = Web(shard.address)
    fronts = [Front(shard.address, name, "chess", ITALIAN) for name in ("first", "second")]
    with browser.Page(web.url) as page:
        wait_until(lambda: len(page.texts("#jobs button")) == 2, "two jobs")
        owner = page.text("#jobs button[aria-pressed=true] b")
        other = {"first": "second", "second": "first"}[owner]
        for _ in range(40):
            page.press("TAB")
            focused = page.js("const e = document.activeElement, s = getComputedStyle(e);"
                              "return [e.closest('#jobs') ? e.querySelector('b').textContent : '', s.outlineStyle, s.outlineWidth, e.tagName]")
            check(focused[3] == "BODY" or (focused[1], focused[2]) == ("solid", "3px"), "the focus is seen:", focused)
            if focused[0] == other:
                break
        equal(focused[0], other, "TAB comes to the jobs")
        page.press("ENTER")
        wait_until(lambda: page.text("#jobs button[aria-pressed=true] b") == other, "ENTER chooses")
        check(other in page.text("#whose"), page.text("#whose"))
        web.view(web.view()["time_ms"])
        equal(page.js("return document.activeElement.querySelector('b').textContent"), other, "views do not move the focus")
        for front in fronts:
            front.leave()
        equal(page.faults(), [])


@needs_browser
def what_peers_say_is_text():
    shard = Shard(heartbeat_ms=LONG_MS)
    worker = Worker(shard.address, name=NASTY)
    web = Web(shard.address)
    fronts = [Front(shard.address, NASTY, game, position) for game, position in (
        (NASTY, "<script>bad()</script>"), ("chess", "<svg onload=bad()>"), ("chess", ""), ("chess", "8/8 w"),
        ("chess", "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w"), ("__proto__", "constructor"))]
    for front in fronts:
        front.report(3, 17, "e2e4 e7e5" if front is fronts[4] else "</button><img src=x onerror=bad()>")
    with browser.Page(web.url, 360, 740) as page:
        page.js("window.bad = () => { window.isBad = true; }")
        wait_until(lambda: len(page.texts("#jobs button")) == len(fronts) and tile(page, NASTY), "the names as text")
        for i in range(len(fronts)):
            page.js("document.querySelectorAll('#jobs button')[arguments[0]].click()", i)
            check(page.js("return document.querySelector('#jobs button[aria-pressed=true]') !== null"))
            check(page.js("return document.documentElement.scrollWidth") <= 360, "it fits a phone")
        equal(page.js("return [window.isBad || false, document.querySelectorAll('main img, main script').length]"), [False, 0])
        equal(page.faults(), [])
        for front in fronts:
            front.leave()
    equal(worker.end(), 0)


@needs_browser
def the_token_is_asked_for_and_kept_for_the_session():
    with keys_made() as keys:
        shard = Shard(keys=keys)
        web = Web(shard.address)
        with browser.Page(f"http://{web.address}/") as page:
            wait_until(lambda: page.text("#login"), "the form")
            for token in ("wrong", "0" * 32):
                page.press(token, "ENTER")
                wait_until(lambda: "not the token" in (page.text("#login-why") or "") and
                           page.js("return document.querySelector('#token').value") == "", "it is refused")
                check(page.text("main") is None and shard.address not in page.js("return document.body.textContent"), "nothing is shown")
            page.press(web.token, "ENTER")
            wait_until(lambda: tile(page, shard.address), "the cluster")
            page.go(f"http://{web.address}/")
            wait_until(lambda: page.text("main") and tile(page, shard.address), "the cluster after a reload")
            check(all("401" in fault for fault in page.faults()), "no other fault")


@needs_browser
def it_comes_back_by_itself():
    shard = Shard(heartbeat_ms=1000)
    web = Web(shard.address)
    with browser.Page(web.url) as page:
        wait_until(lambda: page.text("#state") == "live" and tile(page, shard.address), "the page")
        equal(page.faults(), [])
        shard.kill()
        wait_until(lambda: is_dead(page, shard.address), "no shard is up")
        equal(page.text("#shards-count"), "0 of 1 up")
        equal(page.faults(), [])
        web.stop()
        wait_until(lambda: page.text("#state") == "abdada top says nothing", "its silence is said")
        web.send_signal(signal.SIGCONT)
        wait_until(lambda: page.text("#state") == "live", "live again")
        web.kill()
        wait_until(lambda: "no connection to abdada top" in page.text("#state"), "its end is said")
        page.shoot("lost")
        shard = Shard(shard.port, heartbeat_ms=1000)
        web = Web(shard.address, web.address)
        wait_until(lambda: page.text("#state") == "live" and not is_dead(page, shard.address), "live again, with the shard")


@needs_browser
def seven_tabs_are_all_live():
    """A tab that nobody sees pauses, and asks nothing."""
    shard = Shard(heartbeat_ms=LONG_MS)
    web = Web(shard.address)
    with browser.Page(web.url) as page:
        tabs = [page.tab()] + [page.open_tab(web.url) for _ in range(6)]
        for tab in tabs + tabs[:1]:
            page.go_to_tab(tab)
            wait_until(lambda: page.text("#state") == "live" and tile(page, shard.address), "live again")
            equal(page.faults(), [])
        equal(len([line for line in page.texts("#log span") if "gone" in line]), 0, "who lived on was not gone")
        for tab in tabs[1:]:
            page.close_tab(tab)
        page.go_to_tab(tabs[0])


@needs_browser
def it_is_dark_or_light_as_one_likes():
    web = Web("127.0.0.1:1")

    def brightness():
        return sum(map(int, re.findall(r"\d+", page.js("return getComputedStyle(document.body).backgroundColor"))[:3]))
    with browser.Page(web.url, scheme="dark") as page:
        check(brightness() < 150, brightness())
        page.prefer("light")
        wait_until(lambda: brightness() > 600, "it follows the system")
        for wanted, is_dark in (("dark", True), ("light", False), ("auto", False)):
            page.js("document.querySelector('#theme').click()")
            equal((page.text("#theme"), brightness() < 150), (f"Theme: {wanted}", is_dark))
        page.js("document.querySelector('#theme').click()")
        page.go(web.url)
        equal(page.text("#theme"), "Theme: dark", "it is kept")
        equal(page.faults(), [])


SERVED = [
    wrong_use_is_said,
    it_serves_loopback_unless_another_host_is_named,
    the_page_loads_nothing_else,
    without_the_token_nothing_is_said,
    views_have_the_fields_of_top,
    a_cluster_is_asked_once_for_all_pages_and_not_while_nobody_watches,
    deaf_and_slow_visitors_keep_nobody_waiting,
    it_ends_with_a_signal_while_pages_are_open,
]
SHOWN = [
    a_search_is_followed_and_deaths_are_seen,
    the_line_can_be_stepped_through,
    shards_in_one_place_say_so,
    a_clock_that_is_set_back_keeps_nobody_alive,
    waiting_is_the_mean_of_workers_however_seldom_they_report,
    of_what_is_gone_the_newest_stay,
    what_a_shard_does_not_report_is_a_dash,
    the_keyboard_is_enough,
    what_peers_say_is_text,
    the_token_is_asked_for_and_kept_for_the_session,
    it_comes_back_by_itself,
    seven_tabs_are_all_live,
    it_is_dark_or_light_as_one_likes,
]

if __name__ == "__main__":
    sys.exit(main(SERVED + ([] if QUICK or SANITIZED else SHOWN), unstable=STARVED))
