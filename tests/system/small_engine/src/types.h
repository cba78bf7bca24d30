// types: of a small engine that has the names which examples/stockfish/insert.py looks for. It
// searches a tree of random numbers: no game.
#ifndef TYPES_H_INCLUDED
#define TYPES_H_INCLUDED

#include <cstdint>

namespace Stockfish
{

using Key = uint64_t;
using Depth = int;
enum Value : int { VALUE_MATE = 32000, VALUE_INFINITE = 32001, VALUE_NONE = 32002 };
enum Bound { BOUND_NONE, BOUND_UPPER, BOUND_LOWER, BOUND_EXACT };
enum Move : int { MOVE_NONE };

} // namespace Stockfish

#endif
