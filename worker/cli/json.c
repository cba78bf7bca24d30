#include "worker/cli/json.h"

#include <inttypes.h>

static void comma(struct json *j)
{
    if (j->more) {
        fputc(',', j->out);
    }
    j->more = true;
}

static void quoted(struct json *j, const char *text)
{
    fputc('"', j->out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            fprintf(j->out, "\\%c", c);
        } else if (c < 0x20) {
            fprintf(j->out, "\\u%04x", c);
        } else {
            fputc(c, j->out);
        }
    }
    fputc('"', j->out);
}

static void name_of(struct json *j, const char *name)
{
    comma(j);
    quoted(j, name);
    fputc(':', j->out);
}

void json_begin(struct json *j, FILE *out)
{
    *j = (struct json){.out = out};
    fputc('{', out);
}

void json_text(struct json *j, const char *name, const char *value)
{
    name_of(j, name);
    quoted(j, value);
}

void json_number(struct json *j, const char *name, int64_t value)
{
    name_of(j, name);
    fprintf(j->out, "%" PRId64, value);
}

void json_real(struct json *j, const char *name, double value)
{
    name_of(j, name);
    fprintf(j->out, "%.10g", value);
}

void json_flag(struct json *j, const char *name, bool value)
{
    name_of(j, name);
    fputs(value ? "true" : "false", j->out);
}

void json_array_begin(struct json *j, const char *name)
{
    name_of(j, name);
    fputc('[', j->out);
    j->more = false;
}

void json_element(struct json *j, const char *value)
{
    comma(j);
    quoted(j, value);
}

void json_array_end(struct json *j)
{
    fputc(']', j->out);
    j->more = true;
}

void json_object_begin(struct json *j, const char *name)
{
    if (name != NULL) {
        name_of(j, name);
    } else {
        comma(j);
    }
    fputc('{', j->out);
    j->more = false;
}

void json_object_end(struct json *j)
{
    fputc('}', j->out);
    j->more = true;
}

void json_end(struct json *j)
{
    fputs("}\n", j->out);
    fflush(j->out);
}
