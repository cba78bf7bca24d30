#include "worker/search/aphid.h"

const struct task_rules aphid_rules = {.reports = true};
