#!/usr/bin/python3
"""The UCI engine as chess programs use it: what it answers to whatever they say."""
import json
import os
import random
import subprocess
import sys
import time

from cluster import STARVED, SHORT, SANITIZED, Cluster, Shard, check, equal, main, path_of, run, scratch, stalled, wait_until
from uci import Uci, legal_moves

START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
ROOK_ENDING = "8/8/4k3/8/8/4K3/4R3/8 w - -"
MATE_IN_2 = "kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1"  # by a quiet move, after which any move of Black loses


def score(uci, depth):
    kind, value = uci.expect(rf"^info depth {depth} seldepth \d+ score (cp|mate) (-?\d+) nodes ").groups()
    return kind, int(value)


def verdict(uci, position, depth):
    uci.say(f"position {position}", f"go depth {depth}")
    found = score(uci, depth)
    uci.expect("^bestmove ")
    return found


def a_draw_by_count_is_forgotten(*arguments):
    """The table must not take the fifty-move rule's draw for the position's value, nor the other way."""
    late, early = f"fen {ROOK_ENDING} 96 100", f"fen {ROOK_ENDING} 0 1"
    uci = Uci(*arguments)
    for _ in range(2):
        equal(verdict(uci, late, 8), ("cp", 0))
        kind, value = verdict(uci, early, 8)
        check(kind == "mate" or value > 400, "the ending is won:", kind, value)
    uci.quit()


def a_draw_by_count_is_forgotten_by_shards():
    with Cluster(shards=2, workers=1) as cluster:
        a_draw_by_count_is_forgotten("--servers", cluster.servers)


def a_draw_by_repetition_is_forgotten(*arguments):
    """In the game Black can bring about a position a third time; where it was there once it is lost."""
    once = "e3d3 e6d6 d3e3"
    uci = Uci(*arguments)
    for _ in range(2):
        equal(verdict(uci, f"fen {ROOK_ENDING} 0 1 moves {once} d6e6 {once}", 8), ("cp", 0))
        for position in ("8/8/3k4/8/8/4K3/4R3/8 b - - 3 2", f"{ROOK_ENDING} 0 1 moves {once}"):
            kind, value = verdict(uci, f"fen {position}", 8)
            check(value < -400 or kind == "mate", "lost without the third time:", kind, value)
    uci.quit()


def a_draw_by_repetition_is_forgotten_by_shards():
    with Cluster(shards=2, workers=0) as cluster:
        a_draw_by_repetition_is_forgotten("--servers", cluster.servers)


def searchmoves_are_all_that_is_searched():
    uci = Uci("--threads", 2)
    for moves in (["a2a3", "h2h3"], ["h2h4"]):
        begin = len(uci.lines["out"])
        uci.say("position startpos", f"go depth 6 searchmoves {' '.join(moves)}")
        check(uci.expect(r"^bestmove (\S+)")[1] in moves)
        firsts = {line.split(" pv ")[1].split()[0] for line in uci.lines["out"][begin:] if " pv " in line}
        check(firsts and firsts <= set(moves), firsts)
    uci.say("go depth 5 searchmoves e2e5 g1f3")
    uci.expect("searchmoves: 'e2e5' is not a legal move here")
    equal(uci.expect(r"^bestmove (\S+)")[1], "g1f3")
    uci.say("go depth 5 searchmoves e2e5")
    uci.expect("none of these searchmoves is legal")
    uci.expect(r"^bestmove \(none\)")
    uci.say("go depth 7")  # the table has not taken h2h4 for the best move
    check(uci.expect(r"^bestmove (\S+)")[1] not in ("a2a3", "h2h3", "h2h4"))
    uci.quit()


def a_stop_at_once_leaves_a_searched_move():
    capture = "rnb1kbnr/ppp1pppp/8/3q4/4N3/8/PPPP1PPP/R1BQKBNR w KQkq - 0 1"  # a knight is attacked
    uci = Uci()
    for fen in (START, capture):
        uci.say("ucinewgame", f"position fen {fen}", "go depth 1")
        best = uci.expect(r"^bestmove (\S+)")[1]
        for limit in ("infinite", "movetime 1", "nodes 1"):
            uci.say("ucinewgame")
            begin = len(uci.lines["out"])
            uci.send(f"go {limit}\nstop")
            uci.expect(r"^bestmove \S+")
            lines = uci.lines["out"][begin:]
            check(any(line.startswith("info depth 1 ") for line in lines), limit, lines)
        check(best in legal_moves(fen), best)
    uci.quit()


def only_a_pondering_search_is_hit():
    uci = Uci()
    for limits in ("infinite", "ponder infinite"):
        begin = len(uci.lines["out"])
        uci.say("position startpos", f"go {limits} depth 2", "ponderhit", "ponderhit", "isready")
        uci.expect("^readyok$")
        time.sleep(0.3)
        check(not any(line.startswith("bestmove") for line in uci.lines["out"][begin:]), limits, uci.tail())
        uci.say("stop")
        uci.expect(r"^bestmove \S+")
    begin = len(uci.lines["out"])
    uci.say("go ponder movetime 500", "ponderhit")
    while not any(line.startswith("bestmove") for line in uci.lines["out"][begin:]):
        uci.say("ponderhit")  # the time runs from the first one, else it never ends
        time.sleep(0.1)
    uci.quit()


def a_hash_that_is_too_large_leaves_the_old_one():
    uci = Uci()
    uci.say("uci")
    most = int(uci.expect(r"^option name Hash type spin default \d+ min 1 max (\d+)$")[1])
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    check(64 <= most <= min(memory - 16, 1 << 20), "beside the program:", most, memory)
    uci.say("position startpos", "go depth 8")
    nodes = int(uci.expect(r"^info depth 8 .* nodes (\d+) ")[1])
    uci.expect("^bestmove ")
    uci.say(f"setoption name Hash value {most + 1}")
    uci.expect(f"^info string error: option 'Hash' is a number from 1 to {most}, not '{most + 1}'$")
    uci.say("go depth 8")
    again = int(uci.expect(r"^info depth 8 .* nodes (\d+) ")[1])
    check(again < nodes / 2, "the table stays:", nodes, again)
    uci.expect("^bestmove ")
    uci.quit()


def wrong_options_are_named():
    uci = Uci()
    for line, said in (("name Nonsense value 3", "there is no option 'Nonsense'"),
                       ("name Threads value x", "option 'Threads' is a number from 1 to 256, not 'x'"),
                       ("name Strict value yes", "option 'Strict' is true or false, not 'yes'"),
                       ("name Selection value all", "option 'Selection' is full or plain, not 'all'"),
                       ("name Algorithm value best", "option 'Algorithm' is one of abdada .*, not 'best'"),
                       ("name Algorithm value ybwc", "option 'Algorithm' is one of abdada .*, not 'ybwc'"),
                       ("name Servers value nonsense", "option 'Servers' is HOST:PORT,... or <empty>, not 'nonsense'"),
                       ("name Move Overhead value -1", "option 'Move Overhead' is a number from 0 to 5000, not '-1'")):
        uci.say(f"setoption {line}")
        uci.expect(f"^info string error: {said}$")
    for line in ("name Move Overhead value 100", "name Clear Hash", "name Ponder value true"):
        begin = len(uci.lines["out"])
        uci.say(f"setoption {line}")
        uci.ready()
        equal([said for said in uci.lines["out"][begin:] if "error" in said], [], line)
    uci.quit()


def a_wrong_position_is_not_played():
    uci = Uci()
    uci.say("position startpos", "go depth 3")
    uci.expect(r"^bestmove \S+")
    for wrong in ("position startpos moves e2e4 e2e4", "position fen 8/8/8/8/8/8/8/8 w - - 0 1", "position"):
        uci.say(wrong)
        uci.expect("^info string error: ")
        uci.say("go depth 3")
        uci.expect(r"^bestmove \(none\)$")
        uci.say("position startpos", "go depth 3")
        check(uci.expect(r"^bestmove (\S+)")[1] in legal_moves(START))
    uci.quit()


def castling_rights_are_of_king_and_rook_at_home():
    uci = Uci()
    uci.say("position fen r3k2r/8/8/8/8/8/8/1R2K2R w KQkq - 0 1 moves e1g1", "d")
    uci.expect("^info string left out castling right 'Q': no king and rook at home$")
    uci.expect("r3k2r/8/8/8/8/8/8/1R3RK1 b kq ")
    uci.say("position fen 1r2k2r/8/8/8/8/8/8/1R2K2R w HBhb - 0 1 moves e1b1", "d")  # Shredder-FEN
    uci.expect("1r2k2r/8/8/8/8/8/8/2KR3R b hb ")
    uci.say("setoption name UCI_Chess960 value true",
            "position fen 1r2k2r/8/8/8/8/8/8/1R2K2R w KQkq - 0 1 moves e1b1", "d")
    uci.expect("1r2k2r/8/8/8/8/8/8/2KR3R b hb ")
    uci.quit()
    check(not any("is not a legal move" in line for line in uci.lines["out"]), uci.tail())


def quiet_mates_are_found():
    uci = Uci()
    equal(verdict(uci, f"fen {MATE_IN_2}", 10), ("mate", 2))
    uci.quit()


def go_mate_proves_or_refutes():
    uci = Uci()
    uci.say(f"position fen {MATE_IN_2}", "go mate 2")
    uci.expect(r"^info depth \d+ seldepth \d+ score mate 2 ")
    equal(uci.expect(r"^bestmove (\S+)")[1], "a1a6")
    uci.say("go mate 1")
    uci.expect("^info string no mate in 1$")
    uci.expect(r"^bestmove \S+")
    uci.say("go mate 20")  # it ends when one is found
    uci.expect(r"^info depth [1-9] seldepth \d+ score mate 2 ")
    uci.expect(r"^bestmove a1a6")
    uci.say("position startpos", "go mate 2")
    uci.expect("^info string no mate in 2$")
    uci.expect(r"^bestmove \S+")
    begin = len(uci.lines["out"])
    uci.say("go mate 3 depth 2")  # too few plies to say so
    uci.expect(r"^bestmove \S+")
    check(not any("no mate" in line for line in uci.lines["out"][begin:]), uci.tail())
    uci.say(f"position fen {MATE_IN_2}", "go mate 60")  # deeper than a search goes
    uci.expect(r"^info depth [1-9] seldepth \d+ score mate 2 ")
    uci.expect(r"^bestmove a1a6")
    # The game has been where the mate leads through, once.
    uci.say("position fen 7k/5K2/8/8/8/8/8/6R1 b - - 0 1 moves h8h7 f7f6 h7h8", "go mate 2")
    uci.expect(r"^info depth \d+ seldepth \d+ score mate 2 ")
    uci.expect(r"^bestmove f6f7")
    uci.quit()


def divide_keeps_moves_apart():
    done = run("abdada", "perft", START, "--depth", 3, "--divide", "--json")
    found = json.loads(done.out())
    equal((found["nodes"], found["moves"]["e2e4"], len(found["moves"])), (8902, 600, 20))
    equal(sorted(found), ["depth", "moves", "nodes", "nps", "time_ms"])


def best_lines(uci, depth, lines):
    """[(first move, (kind, value)), ...] of the iteration of that depth, which is the last."""
    found = []
    for rank in range(1, lines + 1):
        kind, value, move = uci.expect(
            rf"^info depth {depth} seldepth \d+ multipv {rank} score (cp|mate) (-?\d+) nodes .* pv (\S+)").groups()
        found.append((move, (kind, int(value))))
    uci.expect("^bestmove " + found[0][0])
    return found


def worth(score):
    kind, value = score
    return value if kind == "cp" else (100000 - value if value > 0 else -100000 - value)


def lines_are_exact_for_their_depth(*arguments):
    """Strict: every line has the value that its move has when it is searched alone, and no other is better."""
    depth, lines = 4, 3
    uci = Uci(*arguments)
    uci.say("setoption name Strict value true")
    for fen in (START, "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1", MATE_IN_2):
        uci.say(f"setoption name MultiPV value {lines}", f"position fen {fen}", f"go depth {depth}")
        found = best_lines(uci, depth, lines)
        uci.say("setoption name MultiPV value 1")
        alone = {}
        for move in legal_moves(fen):
            uci.say(f"go depth {depth} searchmoves {move}")
            alone[move] = score(uci, depth)
            uci.expect(f"^bestmove {move}")
        equal([value for _, value in found], [alone[move] for move, _ in found], fen)
        equal([worth(value) for _, value in found], sorted((worth(v) for v in alone.values()), reverse=True)[:lines], fen)
        equal(len({move for move, _ in found}), lines)
    uci.quit()


def lines_of_threads_are_exact():
    lines_are_exact_for_their_depth("--threads", 3)


def lines_of_a_cluster_are_exact():
    with Cluster(shards=2, workers=1) as cluster:
        lines_are_exact_for_their_depth("--servers", cluster.servers)


def there_are_no_more_lines_than_moves():
    uci = Uci()
    uci.say("setoption name MultiPV value 500", "setoption name MultiPV value 256")
    uci.expect("option 'MultiPV' is a number from 1 to 256, not '500'")
    fen = "7k/8/8/8/8/8/6r1/7K w - - 0 1"
    uci.say(f"position fen {fen}", "go depth 3")
    equal([move for move, _ in best_lines(uci, 3, 1)], ["h1g2"])
    check(not any("multipv 2" in line for line in uci.lines["out"]))
    uci.say("position startpos", "go depth 2")
    equal({move for move, _ in best_lines(uci, 2, 20)}, legal_moves(START))
    uci.say("position fen 7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "go depth 3")
    uci.expect(r"^bestmove \(none\)")
    uci.quit()


def a_long_search_says_where_it_is():
    uci = Uci()
    uci.say("position startpos", "go infinite")
    first = uci.expect(r"^info depth \d+ currmove (\S+) currmovenumber (\d+)$")
    check(first[1] in legal_moves(START) and 1 <= int(first[2]) <= 20, first[0])
    uci.expect(r"^info depth \d+ currmove")
    uci.say("stop")
    uci.expect(r"^bestmove \S+")
    for line in uci.lines["out"]:
        if " seldepth " in line and "bound" not in line:
            words = line.split()
            check(int(words[words.index("seldepth") + 1]) >= len(words) - words.index("pv") - 1, line)
    uci.quit()


def a_console_has_a_board():
    uci = Uci()
    fen = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R b Kq - 3 7"
    uci.say(f"position fen {fen}", "d")
    uci.expect("^8  r . . . k . . r$")
    uci.expect(f"^fen {fen}$")
    uci.expect("^checkers$")
    uci.say("eval")
    value = uci.expect(r"^evaluation (\S+) for the side to move")[1]
    uci.say("flip", "eval")
    equal(uci.expect(r"^evaluation (\S+) for the side to move")[1], value)
    uci.say("d", "flip", "d")
    uci.expect("^fen r3k2r/pppbbppp/2n2q1P/1P2p3/3pn3/BN2PNP1/P1PPQPB1/R3K2R w Qk - 3 7$")
    uci.expect(f"^fen {fen}$")
    uci.say("position fen 4k3/8/8/8/8/8/4r3/4K3 w - - 0 1", "d")
    uci.expect("^checkers e2$")
    uci.say("position startpos", "go perft 3")
    uci.expect("^e2e4: 600$")
    uci.expect("^Nodes searched: 8902$")
    uci.say("go perft x")
    uci.expect("^info string error: go perft N: a depth from 1 to 9, not 'x'$")
    for command in ("d", "eval", "flip"):
        uci.say("position nonsense", command)
        uci.expect("^info string error: no position")
    uci.quit()


def analyse_writes_moves_as_players_do():
    fen = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
    found = json.loads(run("abdada", "analyse", "--depth", 5, "--json", fen).out())
    check((found["pv"][0], found["pv_san"][0]) in (("d5e6", "dxe6"), ("e2a6", "Bxa6")), found["pv_san"])
    equal(len(found["pv"]), len(found["pv_san"]))
    lines = run("abdada", "analyse", "--depth", 4, MATE_IN_2).lines["out"]
    equal([line for line in lines if line.startswith("san ")], ["san Ra6 bxa6 b7#"])


def less_strength_is_fewer_nodes():
    uci, most = Uci(), []
    for elo in (1500, 1760):
        uci.say("setoption name UCI_LimitStrength value true", f"setoption name UCI_Elo value {elo}", "ucinewgame",
                "position startpos", "go depth 20")
        uci.expect("^bestmove ")
        nodes = [int(line.split(" nodes ")[1].split()[0]) for line in uci.lines["out"] if " nodes " in line]
        most.append(nodes[-1])
    check(most[0] <= 257 and most[0] < most[1] <= 1025, most)  # the last line counts the node at which it stopped
    uci.say("setoption name UCI_LimitStrength value false", "go depth 8")
    check(int(uci.expect(r"^info depth 8 .* nodes (\d+)").group(1)) > 1024, "it is limited still")
    uci.say("setoption name UCI_Elo value 100")
    uci.expect("info string error: option 'UCI_Elo' is a number from 1500 to 2800, not '100'")
    uci.quit()


def endgame_tables_that_are_not_there_are_said():
    uci = Uci()
    uci.say("setoption name SyzygyPath value /nonexistent")
    uci.expect("^info string error: SyzygyPath: (no libfathom here|no Syzygy tables in /nonexistent)")
    uci.say("position fen 8/8/8/8/8/4k3/8/K2R4 w - - 0 1", "go depth 6")
    uci.expect("^bestmove ")
    check(not any("tbhits" in line for line in uci.lines["out"]), "hits in no table")
    uci.say("setoption name SyzygyPath value <empty>")
    uci.quit()


# In place of libfathom, whose tables are too large to be here: king and rook win, and of the root's moves it knows three.
FATHOM = r"""
#include <stdbool.h>
#include <stdint.h>
unsigned TB_LARGEST;
bool tb_init(const char *path) { TB_LARGEST = path[0] == '/' ? 3 : 0; return true; }
unsigned tb_probe_wdl_impl(uint64_t white, uint64_t black, uint64_t kings, uint64_t queens, uint64_t rooks,
                           uint64_t bishops, uint64_t knights, uint64_t pawns, unsigned ep, bool turn)
{ return rooks & (turn ? white : black) ? 4 : rooks ? 0 : 2; }
unsigned tb_probe_root_impl(uint64_t white, uint64_t black, uint64_t kings, uint64_t queens, uint64_t rooks,
                            uint64_t bishops, uint64_t knights, uint64_t pawns, unsigned halfmoves, unsigned ep,
                            bool turn, unsigned *results)
{
    const unsigned d1 = 3, a1 = 0;
    results[0] = 4 | 35 << 4 | d1 << 10 | 9u << 20; /* Rd5 wins in 9 */
    results[1] = 4 | 59 << 4 | d1 << 10 | 5u << 20; /* Rd8 in 5 */
    results[2] = 2 | 1 << 4 | a1 << 10 | 1u << 20;  /* Kb1 draws */
    results[3] = 0xffffffffu;
    return results[1];
}
"""


def endgame_tables_choose_the_moves():
    folder = scratch("fathom")
    source = os.path.join(folder, "fathom.c")
    with open(source, "w", encoding="ascii") as file:
        file.write(FATHOM)
    made = subprocess.run([os.environ.get("CC", "gcc"), "-shared", "-fPIC", "-o", os.path.join(folder, "libfathom.so.1"),
                           source], capture_output=True, text=True, check=False)
    equal(made.returncode, 0, made.stderr)
    os.environ["LD_LIBRARY_PATH"] = folder
    try:
        uci = Uci()
    finally:
        del os.environ["LD_LIBRARY_PATH"]
    uci.say("setoption name SyzygyPath value /tables", "position fen 8/8/8/8/8/4k3/8/K2R4 w - - 0 1", "go depth 5")
    uci.expect("^info string Syzygy tables of up to 3 pieces$")
    equal(uci.expect("^bestmove (\\S+)")[1], "d1d8")
    uci.say("setoption name SyzygyPath value nowhere", "go depth 5")
    uci.expect("^info string error: SyzygyPath: no Syzygy tables in nowhere; the tables before stay$")
    equal(uci.expect("^bestmove (\\S+)")[1], "d1d8")
    uci.say("setoption name Selection value plain", "go searchmoves d1d5 depth 3")
    equal(uci.expect("^bestmove (\\S+)")[1], "d1d5")
    uci.say("setoption name Selection value full", "position fen 8/8/8/4k3/8/8/3p4/K2R4 w - - 0 1", "go depth 4")
    kind, value, hits = uci.expect(r"^info depth 4 .* score (cp|mate) (-?\d+) .* tbhits (\d+)").groups()
    check(kind == "cp" and int(value) > 20000 and int(hits) > 0, "Rxd2 leads into a table:", kind, value, hits)
    uci.expect("^bestmove d1d2")
    uci.quit()


def storm(uci, rng, length):
    """Commands at random, each "go" answered by one "bestmove" however it ends."""
    goes, searching = 0, False
    for _ in range(length):
        word = rng.choice(("go", "stop", "position", "isready", "option", "ponderhit", "new", "nonsense",
                           "console"))
        if word == "go" and not searching:
            limit = rng.choice(("infinite", "depth 3", "movetime 2", "nodes 500", "mate 1", "ponder wtime 100 btime 100",
                                "wtime 50 btime 50 winc 1 binc 1", "searchmoves e2e4 e7e5 depth 2", ""))
            uci.send(f"go {limit}")
            goes, searching = goes + 1, True
        elif word == "stop":
            uci.send("stop")
            searching = False
        elif word == "position" and not searching:
            uci.send("position " + rng.choice(("startpos", "startpos moves e2e4", "startpos moves e2e5", f"fen {MATE_IN_2}",
                                               "fen 7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "fen nonsense")))
        elif word == "option" and not searching:
            uci.send("setoption " + rng.choice(("name Hash value 2", "name Threads value 2", "name Threads value 1",
                                                "name Selection value plain", "name Clear Hash", "name Hash value 0",
                                                "name MultiPV value 3", "name MultiPV value 1",
                                                "name UCI_Chess960 value true", "name UCI_Chess960 value false",
                                                "name UCI_LimitStrength value true", "name UCI_LimitStrength value false")))
        elif word == "new" and not searching:
            uci.send("ucinewgame")
        elif word == "console" and not searching:
            uci.send(rng.choice(("d", "eval", "flip", "go perft 2")))
        elif word in ("isready", "ponderhit", "nonsense"):
            uci.send(word)
    uci.send("stop\nisready")
    return goes


class Unread:
    """A program whose `stream` ("stdout" or "stderr") is a pipe that is full, and read by nobody until `read`."""

    def __init__(self, stream, *arguments):
        self.reader, writer = os.pipe()
        os.set_blocking(writer, False)
        self.filled = 0
        try:
            while True:
                self.filled += os.write(writer, b"x" * 512)
        except BlockingIOError:
            os.set_blocking(writer, True)
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: writer}
        self.popen = subprocess.Popen([path_of("abdada"), *map(str, arguments)], **streams)
        os.close(writer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.popen.kill()
        self.popen.wait()
        self.popen.stdin.close()

    def read(self):
        """Its lines, until it has ended."""
        with os.fdopen(self.reader, "rb") as pipe:
            return pipe.read()[self.filled:].decode().splitlines()


def shards_are_served_while_the_line_of_a_mate_is_sought():
    """After the last iteration, for seconds."""
    def searched():
        begin, shard = time.monotonic(), Shard(heartbeat_ms=600)
        uci = Uci("--servers", shard.address)
        uci.say("setoption name Hash value 16", "position fen 8/8/3k4/8/8/4KQ2/8/8 w - - 0 1", "go depth 13")
        uci.expect("^bestmove")
        expired = shard.stats()["sessions_expired"]
        uci.quit()
        shard.end()
        check(stalled(begin) > 0.5 or expired == 0, "sessions expired:", expired)
        return expired == 0
    wait_until(searched, "a search whose session lives")


def a_reader_that_does_not_read_stops_no_search():
    """The search begins, and ends when its time is over, while nobody reads what it prints."""
    shard = Shard(heartbeat_ms=3000)
    for stream, *arguments in (("stdout", "uci", "--servers", shard.address),
                               ("stderr", "analyse", "--servers", shard.address, "--time", 3000, START)):
        posts = shard.stats()["job_posts"]
        with Unread(stream, *arguments) as unread:
            if stream == "stdout":
                unread.popen.stdin.write(b"position startpos\ngo movetime 2000\n")
                unread.popen.stdin.flush()
            wait_until(lambda: (seen := shard.stats())["job_posts"] > posts and seen["jobs"] == 0, "the job, and its end")
            equal(shard.stats()["sessions_expired"], 0, "by a search that stood still")
            if stream == "stdout":
                unread.popen.stdin.write(b"quit\n")
            unread.popen.stdin.close()
            lines = unread.read()
            equal(unread.popen.wait(), 0, lines)
        if stream == "stdout":
            depths = [int(line.split()[2]) for line in lines if " seldepth " in line and "bound " not in line]
            if depths[-2:] == depths[-1:] * 2:
                depths.pop()  # with the best move of the iteration that was stopped
            equal(depths, list(range(1, depths[-1] + 1)))
            check(lines[-1].startswith("bestmove ") and depths[-1] > 1, lines[-3:])
        else:
            check(any("Mnodes/s" in line for line in lines), lines)


def each_go_has_one_answer():
    seed = int(os.environ.get("SEED", time.time_ns() % 1000000))
    print(f"# seed {seed}", flush=True)
    rng = random.Random(seed)
    uci = Uci()
    storms, length = (20, 40) if SHORT or SANITIZED else (int(os.environ.get("STORMS", "3000")), 6)
    for _ in range(storms):
        begin = len(uci.lines["out"])
        uci.say("position startpos")
        goes = storm(uci, rng, length)
        uci.say("xyzzy")
        uci.expect("unknown command 'xyzzy'")
        lines = uci.lines["out"][begin:]
        equal(sum(line.startswith("bestmove ") for line in lines), goes, "seed", seed, lines[-20:])
    uci.quit()


if __name__ == "__main__":
    check(os.access(path_of("abdada"), os.X_OK), "no programs: set BIN")
    sys.exit(main([
        a_draw_by_count_is_forgotten,
        a_draw_by_count_is_forgotten_by_shards,
        a_draw_by_repetition_is_forgotten,
        a_draw_by_repetition_is_forgotten_by_shards,
        searchmoves_are_all_that_is_searched,
        a_stop_at_once_leaves_a_searched_move,
        only_a_pondering_search_is_hit,
        a_hash_that_is_too_large_leaves_the_old_one,
        wrong_options_are_named,
        a_wrong_position_is_not_played,
        castling_rights_are_of_king_and_rook_at_home,
        quiet_mates_are_found,
        go_mate_proves_or_refutes,
        lines_are_exact_for_their_depth,
        lines_of_threads_are_exact,
        lines_of_a_cluster_are_exact,
        there_are_no_more_lines_than_moves,
        a_long_search_says_where_it_is,
        a_console_has_a_board,
        analyse_writes_moves_as_players_do,
        divide_keeps_moves_apart,
        less_strength_is_fewer_nodes,
        endgame_tables_that_are_not_there_are_said,
        endgame_tables_choose_the_moves,
        shards_are_served_while_the_line_of_a_mate_is_sought,
        a_reader_that_does_not_read_stops_no_search,
        each_go_has_one_answer,
    ], unstable=STARVED))
