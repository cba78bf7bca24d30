// tt: the table of the small engine.
#ifndef TT_H_INCLUDED
#define TT_H_INCLUDED

#include "types.h"

namespace Stockfish
{

struct TTEntry {
    Key key;
    Value v, ev;
    Depth d;
    Bound b;
    Move m;

    Move move() const
    {
        return m;
    }
    Value eval() const
    {
        return ev;
    }
    Depth depth() const
    {
        return d;
    }
    bool is_pv() const
    {
        return false;
    }
    void save(Key k, Value value, bool, Bound bound, Depth depth, Move move, Value eval)
    {
        *this = {k, value, eval, depth, bound, move};
    }
};

struct TranspositionTable {
    static constexpr int SIZE = 1 << 18;
    TTEntry entry[SIZE];

    void new_search()
    {
    }
    TTEntry *probe(Key key, bool &found)
    {
        TTEntry *e = &entry[key % SIZE];
        found = e->key == key;
        return e;
    }
};

extern TranspositionTable TT;

} // namespace Stockfish

#endif
