/* json: JSON objects on a stream, one a line: {"name":value,...}. Output only.
 * Threads: one at a time per stream. Memory: none. */
#ifndef WORKER_PROGRAMS_JSON_H
#define WORKER_PROGRAMS_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *out;
    bool more; /* a comma is due */
};

void json_begin(struct json *json, FILE *out);
/* Text is written as UTF-8 with control characters, quotes and backslashes escaped. */
void json_text(struct json *json, const char *name, const char *value);
void json_number(struct json *json, const char *name, int64_t value);
void json_real(struct json *json, const char *name, double value);
void json_flag(struct json *json, const char *name, bool value);
/* An array of texts: element by element between begin and end. */
void json_array_begin(struct json *json, const char *name);
void json_element(struct json *json, const char *value);
void json_array_end(struct json *json);
/* An object inside: of that name, or, with NULL, the next element of an array. */
void json_object_begin(struct json *json, const char *name);
void json_object_end(struct json *json);
/* Ends the line and flushes. */
void json_end(struct json *json);

#endif
