#include "tests/unit/test_chess_sliders.h"
