# Instruments: what measures, plays, trains and draws, and is no test.

# ---- benches ----

BENCHES := $(wildcard tests/instruments/bench/*.c)
BENCH_BIN := $(BENCHES:tests/instruments/bench/%.c=$(O)/bench/%)
$(foreach c,$(BENCHES),$(eval $(call program,bench,$(c))))
# As the programs of others are, with what is installed alone.
$(O)/bench/library_pairs: $(O)/lib/libabdada.a
$(BENCH_BIN):
	$(LINK)
benches: $(BENCH_BIN)

# ---- games and training ----

OPPONENT ?= /usr/games/toga2
match-ready:
	@$(DEPS) --optional $(DEPS_MATCH)
	@$(AGAIN) -j$(JOBS) MODE=release all
	@test -x build/venv/bin/python || $(PYTHON) -m venv build/venv
	@build/venv/bin/python -c 'import chess' 2>/dev/null || build/venv/bin/python -m pip install --quiet 'chess>=1.9,<2'
match: match-ready ## games against another engine, Elo with its error by pairs of games (OPPONENT="/usr/games/gnuchess -u" MATCH="--games 40 --clock game:1+0.01")
	@build/venv/bin/python tests/instruments/match/match.py --a "build/release/bin/abdada uci" --b "$(OPPONENT)" $(MATCH)

# Othello against an opponent that speaks GTP; MATCH="--games 40 --a 'build/release/bin/abdada gtp --time 50 -j 2'".
OTHELLO_OPPONENT ?= /usr/games/gtp-rhino --level 3 --book 0
match-othello: ## Othello against another program (OTHELLO_OPPONENT="/usr/games/gtp-rhino --level 4")
	@$(DEPS) --optional $(DEPS_MATCH)
	@$(AGAIN) -j$(JOBS) MODE=release all
	@$(PYTHON) tests/instruments/match/othello_match.py --a "build/release/bin/abdada gtp --time 50" --b "$(OTHELLO_OPPONENT)" $(MATCH)

tune-search: match-ready ## what each rule of the selective search is worth (TUNE="--rule null-move", "--change .null_margin=150")
	@build/venv/bin/python tests/instruments/tune/search_rules.py $(TUNE)

# Games of one second each side over a cluster of which workers and shards are killed in every tenth; KILLS="--lanes 2 --seed 7".
GAMES ?= 1000
match-kills: deps-test ## fast games while shards and workers are killed (GAMES=1000 KILLS="--lanes 2 --seed 7")
	@$(AGAIN) -j$(JOBS) MODE=release all
	@BIN=build/release/bin $(PYTHON) tests/instruments/match/kills.py --games $(GAMES) $(KILLS)

NETWORK_POSITIONS ?= 6000000
chess-network: deps ## the evaluation for play anew, from own games (NETWORK_POSITIONS=N for each CPU)
	@$(AGAIN) -j$(JOBS) MODE=release tools
	@JOBS=$(JOBS) POSITIONS=$(NETWORK_POSITIONS) tests/instruments/tune/chess_network.sh

OTHELLO_GAMES ?= 60000
othello-weights: deps ## the Othello evaluation anew, from own games (OTHELLO_GAMES=N in each of three rounds)
	@JOBS=$(JOBS) GAMES=$(OTHELLO_GAMES) REBUILD="$(AGAIN) -j$(JOBS) MODE=release tools" tests/instruments/tune/othello_weights.sh

# ---- measurements ----

bench: deps-bench ## node signature and measurements
	@$(AGAIN) -j$(JOBS) MODE=release all
	@bin/abdada bench
	@for b in $(wildcard tests/instruments/bench/bench_*.py); do $(PYTHON) $$b || exit 1; done

# For the measurements that follow.
release-tools: deps-test
	@$(AGAIN) -j$(JOBS) MODE=release all tools
MEASURE = @BIN=build/release/bin $(PYTHON) tests/instruments/bench

readme-figures: deps-bench ## the figures of README.md again, and whether they are in their ranges (FIGURES="--quick --only worker", --list)
	@$(AGAIN) -j$(JOBS) MODE=release all benches
	@$(PYTHON) tests/instruments/bench/readme_figures.py $(FIGURES)

bench-badpeers: release-tools ## what bad peers cost a good client
	@$(PYTHON) tests/instruments/bench/bad_peers.py $(BENCH)

attacks: release-tools ## what bad peers can do to a cluster that searches (ATTACKS="--only deaf --seconds 30", --insecure, --seed N)
	@$(PYTHON) tests/attacks/attacks.py $(ATTACKS)

bench-failure: release-tools ## what a dead or a slow shard costs a search
	$(MEASURE)/failure_cost.py $(BENCH)

bench-distance: release-tools ## time to depth with the shards 0 to 1,000 us away (BENCH="--every 3 --distances 0,200")
	$(MEASURE)/distance.py $(BENCH)

bench-library: release-tools ## what two processes of examples/connect4.c reach through libabdada (BENCH="--runs 9 --position 4")
	$(MEASURE)/library.py $(BENCH)

bench-survive: release-tools ## what it costs a client that results are kept in a file or a Redis
	$(MEASURE)/survive.py $(BENCH)

bench-web: release-tools ## what 100 open pages of abdada top --web cost a cluster (BENCH="--runs 9 --pages 100")
	$(MEASURE)/web.py $(BENCH)

bench-watching: release-tools ## what metrics, top and its page together cost a search (BENCH="--runs 9 --depth 8")
	$(MEASURE)/watching.py $(BENCH)

peers-die: release-tools ## a search in which processes die
	$(MEASURE)/peers_die.py $(BENCH)

bench-service: deps-bench ## a shard beside Redis, memcached and bare sockets (BENCH="--repeats 9 --batch 64")
	@$(AGAIN) -j$(JOBS) MODE=release all benches
	@BIN=build/release $(PYTHON) tests/instruments/bench/service.py $(BENCH)

strict: deps ## one strict score per position, by every way to search
	@$(AGAIN) -j$(JOBS) MODE=release all
	@$(PYTHON) tests/instruments/bench/strict.py

lab lab-quick lab-calibrate compare compare-quick: all
LAB_RUN = @BIN=$(O)/bin $(PYTHON) tests/instruments/lab
lab: ## a network of today, and the published tables, on the virtual cluster; CSV and SVG in build/lab (LAB="weill ura"; LAB="play --time 200 --positions 50": what users buy)
	$(LAB_RUN)/lab.py $(LAB)

lab-quick: ## the same in 5 minutes
	$(LAB_RUN)/lab.py --quick $(LAB)

lab-calibrate: ## real runs beside virtual ones
	$(LAB_RUN)/calibrate.py $(LAB)

compare: ## the algorithms beside each other
	$(LAB_RUN)/lab.py compare

compare-quick: ## the same in some minutes
	$(LAB_RUN)/lab.py --quick compare

-include $(BENCHES:%.c=$(O)/%.d)
