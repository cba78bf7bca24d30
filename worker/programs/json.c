#include "worker/programs/json.h"

#include <inttypes.h>

static void comma(struct json *j)
{
    if (j->more) {
        fputc(',', j->out);
    }
    j->more = true;
}

/* Bytes of the UTF-8 character there: 0 where it is none, which the standard's table 3-7 says. */
static unsigned utf8_length(const unsigned char *c)
{
    const unsigned length = c[0] < 0x80                    ? 1
                            : c[0] >= 0xc2 && c[0] <= 0xdf ? 2
                            : c[0] >= 0xe0 && c[0] <= 0xef ? 3
                            : c[0] >= 0xf0 && c[0] <= 0xf4 ? 4
                                                           : 0;
    const unsigned least = c[0] == 0xe0 ? 0xa0 : c[0] == 0xf0 ? 0x90 : 0x80;
    const unsigned most = c[0] == 0xed ? 0x9f : c[0] == 0xf4 ? 0x8f : 0xbf;
    for (unsigned i = 1; i < length; i++) {
        if (c[i] < (i == 1 ? least : 0x80) || c[i] > (i == 1 ? most : 0xbf)) {
            return 0;
        }
    }
    return length;
}

/* JSON is UTF-8. Other bytes are most likely Latin-1, as in names of old files: of these bytes each
 * is a character. */
static void quoted(struct json *j, const char *text)
{
    fputc('"', j->out);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        const unsigned length = utf8_length((const unsigned char *)text);
        if (c == '"' || c == '\\') {
            fprintf(j->out, "\\%c", c);
        } else if (c < 0x20 || length == 0) {
            fprintf(j->out, "\\u%04x", c);
        } else {
            fwrite(text, 1, length, j->out);
            text += length - 1;
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
