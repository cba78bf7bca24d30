#include "tests/support/test_chess_sliders.h"
