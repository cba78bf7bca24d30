#include "worker/games/tree/params.h"

#include "common/rng.h"
#include "worker/games/game.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const shapes[] = {
    [TREE_UNIFORM] = "uniform", [TREE_RANKED] = "ranked", [TREE_VARIED] = "varied", NULL};
static const char *const edges[] = {
    [TREE_EVEN] = "uniform",  [TREE_BELL] = "bell",   [TREE_TAILED] = "tailed",
    [TREE_LOSSES] = "losses", [TREE_SHARP] = "sharp", NULL};

struct field {
    const char *name;
    size_t offset;
    uint64_t least, most, usual;
};

static const struct field fields[] = {
#define FIELD(name, least, most, usual) \
    {#name, offsetof(struct tree_params, name), least, most, usual},
    TREE_FIELDS(FIELD)
#undef FIELD
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

#define NAME(name, least, most, usual) " " #name
static const char field_names[] = TREE_FIELDS(NAME);
#undef NAME

static uint64_t *value_of(struct tree_params *p, const struct field *f)
{
    return (uint64_t *)((char *)p + f->offset);
}

static uint64_t value_in(const struct tree_params *p, const struct field *f)
{
    return *(const uint64_t *)((const char *)p + f->offset);
}

static const char *const *words_of(const struct field *f)
{
    return f->offset == offsetof(struct tree_params, shape)   ? shapes
           : f->offset == offsetof(struct tree_params, edges) ? edges
                                                              : NULL;
}

__attribute__((format(printf, 4, 5))) static enum err refuse(enum err code, char *why, size_t size,
                                                             const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, size, format, args);
    va_end(args);
    return code;
}

static bool spells(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

static const struct field *field_named(const char *text, size_t length)
{
    for (unsigned i = 0; i < FIELDS; i++) {
        if (spells(text, length, fields[i].name)) {
            return &fields[i];
        }
    }
    return NULL;
}

static bool read_word(const char *const *words, const char *text, size_t length, uint64_t *out)
{
    for (unsigned i = 0; words[i] != NULL; i++) {
        if (spells(text, length, words[i])) {
            *out = i;
            return true;
        }
    }
    return false;
}

static bool read_number(const struct field *f, const char *text, size_t length, uint64_t *out)
{
    char *end = NULL;
    if (length == 0 || length > 20 || strspn(text, "0123456789") < length) {
        return false;
    }
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    *out = n;
    return errno == 0 && end == text + length && n >= f->least && n <= f->most;
}

static enum err read_value(struct tree_params *p, const struct field *f, const char *text,
                           size_t length, char *why, size_t size)
{
    const char *const *words = words_of(f);
    if (words != NULL && !read_word(words, text, length, value_of(p, f))) {
        char list[64] = "";
        for (unsigned i = 0, at = 0; words[i] != NULL; i++) {
            at += (unsigned)snprintf(list + at, sizeof list - at, " %s", words[i]);
        }
        return refuse(ERR_SYNTAX, why, size, "tree: %s is one of%s", f->name, list);
    }
    if (words == NULL && !read_number(f, text, length, value_of(p, f))) {
        return refuse(ERR_SYNTAX, why, size, "tree: %s is a number from %llu to %llu", f->name,
                      (unsigned long long)f->least, (unsigned long long)f->most);
    }
    return ERR_OK;
}

static enum err read_fields(struct tree_params *p, const char *text, char *why, size_t size)
{
    unsigned seen = 0;
    while (*text != '\0') {
        size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz");
        const struct field *f = field_named(text, length);
        if (f == NULL || text[length] != '=') {
            return refuse(ERR_SYNTAX, why, size, "tree: '%.*s' is no field=value; fields:%s",
                          length < 16 ? (int)length : 16, text, field_names);
        }
        unsigned bit = 1u << (f - fields);
        if (seen & bit) {
            return refuse(ERR_SYNTAX, why, size, "tree: %s is given twice", f->name);
        }
        seen |= bit;
        text += length + 1;
        length = strcspn(text, ",");
        enum err err = read_value(p, f, text, length, why, size);
        if (err != ERR_OK) {
            return err;
        }
        text += length + (text[length] == ',');
    }
    return ERR_OK;
}

static enum err agree(const struct tree_params *p, char *why, size_t size)
{
    if (p->range * p->d > TREE_SCORE_MAX) {
        return refuse(ERR_ILLEGAL, why, size, "tree: range is at most %u with d=%u",
                      TREE_SCORE_MAX / (unsigned)p->d, (unsigned)p->d);
    }
    if (p->t > 1 && p->shape != TREE_UNIFORM) {
        return refuse(ERR_ILLEGAL, why, size, "tree: t is 1 unless shape=uniform");
    }
    if (p->t > 1 && p->edges == TREE_SHARP) {
        return refuse(ERR_ILLEGAL, why, size, "tree: t is 1 with edges=sharp");
    }
    return ERR_OK;
}

enum err tree_params_parse(struct tree_params *out, const char *text, char *why, size_t why_size)
{
    struct tree_params p;
    for (unsigned i = 0; i < FIELDS; i++) {
        *value_of(&p, &fields[i]) = fields[i].usual;
    }
    if (strncmp(text, "tree:", 5) == 0) {
        text += 5;
    } else if (strcmp(text, "tree") == 0 || strcmp(text, "startpos") == 0) {
        text = "";
    } else {
        return refuse(ERR_SYNTAX, why, why_size, "a tree is written tree:b=20,d=12,seed=1,...");
    }
    enum err err = read_fields(&p, text, why, why_size);
    if (err != ERR_OK) {
        return err;
    }
    p.replies = p.replies != 0 ? p.replies : p.b;
    err = agree(&p, why, why_size);
    if (err == ERR_OK) {
        *out = p;
    }
    return err;
}

void tree_params_format(const struct tree_params *p, char *text)
{
    size_t at = (size_t)snprintf(text, GAME_TEXT_MAX, "tree:");
    for (unsigned i = 0; i < FIELDS; i++) {
        const struct field *f = &fields[i];
        const char *const *words = words_of(f);
        uint64_t value = value_in(p, f);
        uint64_t usual = f->offset == offsetof(struct tree_params, replies) ? p->b : f->usual;
        bool always = f->offset <= offsetof(struct tree_params, seed);
        if (!always && value == usual) {
            continue;
        }
        const char *comma = i > 0 ? "," : "";
        at += (size_t)(words != NULL ? snprintf(text + at, GAME_TEXT_MAX - at, "%s%s=%s", comma,
                                                f->name, words[value])
                                     : snprintf(text + at, GAME_TEXT_MAX - at, "%s%s=%llu", comma,
                                                f->name, (unsigned long long)value));
        CHECK(at < GAME_TEXT_MAX);
    }
}

uint64_t tree_params_hash(const struct tree_params *params)
{
    uint64_t h = rng_hash_text("tree parameters");
    for (unsigned i = 0; i < FIELDS; i++) {
        h = rng_mix(h + value_in(params, &fields[i]));
    }
    return h;
}
