# Instruments: what measures, plays, trains and draws, and is no test.

# ---- benches ----

BENCHES := $(wildcard tests/instruments/bench/*.c)
BENCH_BIN := $(BENCHES:tests/instruments/bench/%.c=$(O)/bench/%)
$(foreach c,$(BENCHES),$(eval $(call program,bench,$(c))))
# As the programs of others are, with what is installed alone.
$(O)/bench/library_pairs: $(O)/lib/libabdada.a
# As ttserver is.
$(O)/bench/core_alone $(O)/bench/table_alone: private LDFLAGS_MODE += $(LTO)
$(BENCH_BIN):
	$(LINK)
benches: $(BENCH_BIN)
# That they compile, for `make test`: to link them takes longer.
bench-objects: $(BENCHES:%.c=$(O)/%.o)

# ---- games and training ----

match-programs:
	@$(DEPS) --optional match
	@$(AGAIN) -j$(JOBS) MODE=release all

OPPONENT ?= /usr/games/toga2
match-ready: match-programs
	@test -x build/venv/bin/python || $(PYTHON) -m venv build/venv
	@build/venv/bin/python -c 'import chess' 2>/dev/null || build/venv/bin/python -m pip install --quiet 'chess>=1.9,<2'
match: match-ready ## games against another engine, Elo with its error by pairs of games (OPPONENT="/usr/games/gnuchess -u" MATCH="--games 40 --clock game:1+0.01")
	@build/venv/bin/python tests/instruments/match/match.py --a "build/release/bin/abdada uci" --b "$(OPPONENT)" $(MATCH)

# Between two virtual clusters on a network of today, by their virtual clocks.
VIRTUAL = build/release/bin/abdada sim --uci --rtt-us 100 --message-us 10 --operation-us 0.05 --service-us 2 --service-operation-us 0.1
A ?= --hosts 2
B ?= --hosts 1
match-virtual: match-ready ## games between virtual clusters (A="--hosts 4 --threads 8" B="--hosts 1 --threads 8" MATCH="--clock move:1 --log build/games.log")
	@build/venv/bin/python tests/instruments/match/match.py --virtual --adjudicate --clock move:0.1 --error 30 \
	    --a "$(VIRTUAL) $(A)" --b "$(VIRTUAL) $(B)" $(MATCH)

# Othello against an opponent that speaks GTP; MATCH="--games 40 --a 'build/release/bin/abdada gtp --time 50 -j 2'".
OTHELLO_OPPONENT ?= /usr/games/gtp-rhino --level 3 --book 0
match-othello: match-programs ## Othello against another program (OTHELLO_OPPONENT="/usr/games/gtp-rhino --level 4")
	@$(PYTHON) tests/instruments/match/othello_match.py --a "build/release/bin/abdada gtp --time 50" --b "$(OTHELLO_OPPONENT)" $(MATCH)

tune-search: match-ready ## what each rule of the selective search is worth (TUNE="--rule null-move", "--change .null_margin=150")
	@build/venv/bin/python tests/instruments/tune/search_rules.py $(TUNE)

GAMES ?= 1000
match-kills: deps-test ## fast games while shards and workers are killed (GAMES=1000 KILLS="--lanes 2 --seed 7", "--engine stockfish")
	@$(AGAIN) -j$(JOBS) MODE=release all tools
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

release-tools: deps-test
	@$(AGAIN) -j$(JOBS) MODE=release all tools

release-benches: deps-bench
	@$(AGAIN) -j$(JOBS) MODE=release benches

# Each runs its script of that name, with the options of BENCH; bad-peers is bad_peers.py.
MEASURES := readme-figures bench-bad-peers bench-failure-cost bench-distance bench-library bench-survive bench-web bench-watching \
            bench-service peers-die strict
readme-figures:     ## the figures of README.md again, and whether they are in their ranges (BENCH="--quick --only worker", --list)
bench-bad-peers:    ## what bad peers cost a good client
bench-failure-cost: ## what a dead or a slow shard costs a search
bench-distance:     ## time to depth with the shards 0 to 1,000 us away (BENCH="--every 3 --distances 0,200")
bench-library:      ## what two processes of examples/connect4.c reach through libabdada (BENCH="--runs 9 --position 4")
bench-survive:      ## what it costs a client that results are kept in a file or a Redis
bench-web:          ## what 100 open pages of abdada top --web cost a cluster (BENCH="--runs 9 --pages 100")
bench-watching:     ## what metrics, top and its page together cost a search (BENCH="--runs 9 --depth 8")
bench-service:      ## a shard beside Redis, memcached and bare sockets (BENCH="--repeats 9 --batch 64")
peers-die:          ## a search in which processes die
strict:             ## one strict score per position, by every way to search
readme-figures bench-service: release-benches
$(MEASURES): release-tools
	@BIN=build/release/bin $(PYTHON) tests/instruments/bench/$(subst -,_,$(@:bench-%=%)).py $(BENCH)

attacks: release-tools ## what bad peers can do to a cluster that searches (ATTACKS="--only deaf --seconds 30", --insecure, --seed N)
	@$(PYTHON) tests/attacks/attacks.py $(ATTACKS)

lab:           ## a network of today, and the published tables, on the virtual cluster; CSV and SVG in build/lab (LAB="weill ura")
lab-quick:     ## the same in 5 minutes
lab-calibrate: ## real runs beside virtual ones
compare:       ## the algorithms beside each other
compare-quick: ## the same in some minutes
lab lab-quick lab-calibrate compare compare-quick: all
	@BIN=$(O)/bin $(PYTHON) tests/instruments/lab/$(if $(filter %calibrate,$@),calibrate,lab).py \
	    $(if $(filter %-quick,$@),--quick) $(or $(filter compare,$(@:-quick=)),$(LAB))

-include $(BENCHES:%.c=$(O)/%.d)
