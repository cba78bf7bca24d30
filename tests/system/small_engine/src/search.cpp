// search: alpha-beta of the small engine, with the lines between which insert.py puts its own. It speaks as
// much UCI as tests need: `go depth N`, which nothing stops, and `bench`.
#include "types.h"

#include <algorithm>
#include <iostream>
#include <sstream>
#include <string>

#include "tt.h"

namespace Stockfish {

TranspositionTable TT;

namespace {

enum { WIDTH = 12 };
struct Stack { int ply; bool ttPv; };
struct { long nodes; } Limits;
long nodes;
int callsCnt;
Key order; // another one in each process

Key mix(Key k)
{
    k = (k ^ k >> 30) * 0xbf58476d1ce4e5b9;
    k = (k ^ k >> 27) * 0x94d049bb133111eb;
    return k ^ k >> 31;
}

Value value_to_tt(int value, int) { return Value(value); }

void check_time()
{
  if (--callsCnt > 0)
      return;

  callsCnt = Limits.nodes ? std::min(1024, int(Limits.nodes / 1024)) : 1024;
}

int search(Key posKey, int alpha, int beta, Depth depth, Stack *ss)
{
    const bool rootNode = ss->ply == 0, PvNode = beta - alpha > 1, excludedMove = false;
    const int given = alpha, pvIdx = 0;
    bool found;
    TTEntry *tte = TT.probe(posKey, found);
    if (found && !rootNode && tte->depth() == depth && (tte->b & (tte->v >= beta ? BOUND_LOWER : BOUND_UPPER))
        && (tte->b == BOUND_EXACT || tte->v >= beta || tte->v <= alpha))
        return tte->v;
    nodes++;
    check_time();
    if (depth == 0)
        return int(mix(posKey) % 201) - 100;
    Move bestMove = MOVE_NONE;
    int bestValue = -VALUE_INFINITE;
    for (int i = 0; i < WIDTH && bestValue < beta; i++) {
        int n = i == 0 ? 0 : 1 + int((i - 1 + mix(posKey ^ order) % (WIDTH - 1)) % (WIDTH - 1));
        Stack below = {ss->ply + 1, false};
        int value = -search(mix(posKey * WIDTH + n), -beta, -std::max(alpha, bestValue), depth - 1, &below);
        if (value > bestValue) {
            bestValue = value;
            bestMove = value > given ? Move(n + 1) : bestMove;
        }
    }
    tte = TT.probe(posKey, found);

    if (!excludedMove && !(rootNode && pvIdx))
        tte->save(posKey, value_to_tt(bestValue, ss->ply), ss->ttPv,
                  bestValue >= beta ? BOUND_LOWER :
                  PvNode && bestMove ? BOUND_EXACT : BOUND_UPPER,
                  depth, bestMove, VALUE_NONE);

    return bestValue;
}

int think(Key root, Depth depth)
{
  TT.new_search();
    Stack ss = {0, true};
    return search(root, -VALUE_INFINITE, VALUE_INFINITE, depth, &ss);
}

} // namespace
} // namespace Stockfish

int main()
{
    using namespace Stockfish;
    for (std::string line; std::getline(std::cin, line) && line != "quit";) {
        std::istringstream words(line);
        std::string word;
        int depth = 5;
        words >> word;
        if (word == "uci") {
            std::cout << "id name small engine\nuciok" << std::endl;
        } else if (word == "isready") {
            std::cout << "readyok" << std::endl;
        } else if (word == "order") {
            words >> order;
        } else if (word == "go") {
            words >> word >> depth;
            nodes = 0;
            const int value = think(1, depth);
            bool found;
            const int move = TT.probe(1, found)->move();
            std::cout << "info depth " << depth << " score cp " << value << " nodes " << nodes << " nps 1 pv m" << move
                      << "\nvalue " << value << " nodes " << nodes << "\nbestmove m" << move << std::endl;
        } else if (word == "bench") {
            nodes = 0;
            for (Key root = 1; root <= 8; root++)
                think(root, depth);
            std::cerr << "Nodes searched  : " << nodes << std::endl;
        }
    }
}
