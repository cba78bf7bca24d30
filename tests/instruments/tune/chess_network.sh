#!/bin/sh -e
# make chess-network: the chess evaluation of selection full anew, whatever the present one is. Each CPU plays
# POSITIONS positions, then the fit. Run from the top with JOBS and POSITIONS in the environment.
tools=build/release/tools
rm -rf build/network
mkdir -p build/network
pids=
for seed in $(seq "$JOBS"); do
    $tools/selfplay --seed "$seed" --positions "$POSITIONS" --nodes 400 >build/network/"$seed".samples &
    pids="$pids $!"
done
for pid in $pids; do
    wait "$pid"
done
$tools/fit --epochs 6 --threads "$JOBS" --out worker/games/chess/evaluation.net build/network/*.samples
