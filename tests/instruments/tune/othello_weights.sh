#!/bin/sh -e
# make othello-weights: the Othello evaluation anew, whatever the present one is: games with the evaluation by hand,
# then twice with what the games of before gave. The file depends on nothing but the sources and these options.
# Run from the top with JOBS, GAMES and, for the tools with each new evaluation, REBUILD in the environment.
samples=build/othello-weights
play() {
    build/release/tools/othello_selfplay --threads "$JOBS" --depth 4 "$@"
}
fit() {
    build/release/tools/othello_fit --threads "$JOBS" --out worker/games/othello/evaluation.weights "$@"
    $REBUILD
}
rm -rf $samples
mkdir -p $samples
$REBUILD
play --seed 1 --exact 12 --games "$GAMES" --start >$samples/1.samples
fit $samples/1.samples
play --seed 2 --exact 12 --games "$GAMES" >$samples/2.samples
fit $samples/2.samples
play --seed 3 --exact 14 --games "$GAMES" >$samples/3.samples
fit $samples/2.samples $samples/3.samples
play --seed 4 --exact 10 --games 200 --against-start
