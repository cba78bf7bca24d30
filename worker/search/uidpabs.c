#include "worker/search/uidpabs.h"

const struct task_rules uidpabs_rules = {.plies = 1, .reports = true};
