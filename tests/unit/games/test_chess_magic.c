/* The library was built for this machine, so the other slider tables are compiled in here. Every
 * name of bitboard.o is defined by this file, so the linker does not fetch that member. Only the
 * functions of bitboard.h are used: the rest of chess has the library's layout in mind. */
#ifndef CHESS_MAGIC
#define CHESS_MAGIC
#endif

#include "worker/games/chess/bitboard.c"

#include "tests/support/test_chess_sliders.h"
