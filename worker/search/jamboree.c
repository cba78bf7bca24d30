#include "worker/search/jamboree.h"

const struct steal_rules jamboree_rules = {.gives_tests = true};
