#include "worker/search/ybwc.h"

const struct steal_rules ybwc_rules = {0};
