#include "common/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const char *err_text(enum err code)
{
    static const char *const text[ERR_COUNT] = {[ERR_OK] = "success",
#define ERR_TEXT(name, words) [ERR_##name] = words,
                                                ERR_MAP(ERR_TEXT)
#undef ERR_TEXT
    };
    return (unsigned)code < ERR_COUNT ? text[code] : "unknown error";
}

enum err err_say(enum err code, char *why, size_t size, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(why, size, format, list);
    va_end(list);
    return code;
}

_Noreturn void err_bug(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: bug: %s\n", file, line, condition);
    abort();
}
