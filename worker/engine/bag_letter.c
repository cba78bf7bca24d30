#include "worker/engine/bag_letter.h"

#include <stdlib.h>
#include <string.h>

/* ---- writing ---- */

struct writer {
    uint8_t *at, *end;
    bool is_full;
};

static void put(struct writer *w, uint64_t value, size_t bytes)
{
    if ((size_t)(w->end - w->at) < bytes) {
        w->is_full = true;
        return;
    }
    for (size_t i = 0; i < bytes; i++) {
        *w->at++ = (uint8_t)(value >> 8 * i);
    }
}

static void put_found(struct writer *w, const struct bag_found *f)
{
    put(w, f->item, 4);
    put(w, f->is_refused, 1);
    put(w, f->result.depth, 1);
    put(w, f->result.deepest, 2);
    put(w, (uint16_t)f->result.score, 2);
    put(w, f->result.move, 2);
    put(w, f->result.pv.length, 1);
    for (unsigned i = 0; i < f->result.pv.length; i++) {
        put(w, f->result.pv.move[i], 2);
    }
#define X(name, json, help) put(w, f->counters.name, 8);
    COUNTERS(X)
#undef X
    put(w, f->time_us, 8);
}

size_t bag_letter_write(const struct bag_letter *letter, uint8_t body[PROTO_BODY_MAX])
{
    struct writer w = {body, body + PROTO_BODY_MAX, false};
    put(&w, letter->kind, 1);
    put(&w, letter->is_shared, 1);
    put(&w, letter->count, 1);
    for (unsigned i = 0; i < letter->count; i++) {
        put(&w, letter->item[i], 4);
        const size_t length = letter->kind == BAG_WORK ? strlen(letter->text[i]) : 0;
        if (letter->kind == BAG_WORK) {
            put(&w, length, 1);
        }
        for (size_t k = 0; k < length; k++) {
            put(&w, (uint8_t)letter->text[i][k], 1);
        }
    }
    if (letter->kind == BAG_HAS) {
        put(&w, letter->nodes, 8);
    } else if (letter->kind == BAG_FOUND) {
        put_found(&w, &letter->found);
    }
    return w.is_full ? 0 : (size_t)(w.at - body);
}

/* ---- reading ---- */

struct reader {
    const uint8_t *at, *end;
    bool is_short; /* it ended too early, or has what no search has */
};

static uint64_t get(struct reader *r, size_t bytes)
{
    uint64_t value = 0;
    if ((size_t)(r->end - r->at) < bytes) {
        r->is_short = true;
        return 0;
    }
    for (size_t i = 0; i < bytes; i++) {
        value |= (uint64_t)*r->at++ << 8 * i;
    }
    return value;
}

/* A position's text is printable ASCII. */
static void get_text(struct reader *r, char text[GAME_TEXT_MAX])
{
    const size_t length = (size_t)get(r, 1);
    if (length >= GAME_TEXT_MAX || (size_t)(r->end - r->at) < length) {
        r->is_short = true;
        return;
    }
    for (size_t i = 0; i < length; i++) {
        r->is_short = r->is_short || r->at[i] < ' ' || r->at[i] > '~';
        text[i] = (char)r->at[i];
    }
    text[length] = '\0';
    r->at += length;
}

static void get_found(struct reader *r, struct bag_found *f)
{
    f->item = (uint32_t)get(r, 4);
    const uint8_t refused = (uint8_t)get(r, 1);
    f->is_refused = refused == 1;
    f->result.depth = (unsigned)get(r, 1);
    f->result.deepest = (unsigned)get(r, 2);
    f->result.score = (int16_t)get(r, 2);
    f->result.bound = TT_EXACT;
    f->result.move = (uint16_t)get(r, 2);
    f->result.pv.length = (uint16_t)get(r, 1);
    if (refused > 1 || f->result.depth > SEARCH_DEPTH_MAX || f->result.deepest > SEARCH_PLY_MAX ||
        f->result.score > GAME_MATE || f->result.score < -GAME_MATE ||
        f->result.pv.length > SEARCH_PV_MAX) {
        r->is_short = true;
        return;
    }
    for (unsigned i = 0; i < f->result.pv.length; i++) {
        f->result.pv.move[i] = (uint16_t)get(r, 2);
    }
#define X(name, json, help) \
    f->counters.name = get(r, 8) & ((UINT64_C(1) << PROTO_COUNTER_BITS) - 1);
    COUNTERS(X)
#undef X
    f->time_us = get(r, 8) & ((UINT64_C(1) << PROTO_COUNTER_BITS) - 1);
}

bool bag_letter_read(const uint8_t *body, size_t length, struct bag_letter *out)
{
    struct reader r = {body, body + length, false};
    memset(out, 0, sizeof *out);
    const unsigned kind = (unsigned)get(&r, 1), shared = (unsigned)get(&r, 1);
    out->is_shared = shared == 1;
    out->count = (unsigned)get(&r, 1);
    if (r.is_short || kind < BAG_WORK || kind > BAG_FOUND || shared > 1 ||
        out->count > BAG_ASSIGNED_MAX) {
        return false;
    }
    out->kind = (enum bag_kind)kind;
    for (unsigned i = 0; i < out->count; i++) {
        out->item[i] = (uint32_t)get(&r, 4);
        if (out->kind == BAG_WORK) {
            get_text(&r, out->text[i]);
        }
    }
    if (out->kind == BAG_HAS) {
        out->nodes = get(&r, 8) & ((UINT64_C(1) << PROTO_COUNTER_BITS) - 1);
    } else if (out->kind == BAG_FOUND) {
        get_found(&r, &out->found);
    }
    return !r.is_short && r.at == r.end;
}

/* ---- the inbox ---- */

struct bag_envelope {
    uint64_t from;
    uint32_t length;
    uint8_t body[PROTO_BODY_MAX];
};

struct bag_inbox {
    uint64_t job;
    unsigned first, count; /* of the ring */
    uint64_t join_due_us;
    uint32_t join_pause_ms; /* after the next join */
    unsigned peers;
    uint64_t peer[BAG_PEERS_MAX];
    struct bag_envelope ring[BAG_INBOX_ROOM];
};

enum err bag_inbox_open(struct bag_inbox **out)
{
    struct bag_inbox *box = calloc(1, sizeof *box);
    if (box == NULL) {
        return ERR_NOMEM;
    }
    *out = box;
    return ERR_OK;
}

void bag_inbox_close(struct bag_inbox **inbox)
{
    free(*inbox);
    *inbox = NULL;
}

void bag_inbox_begin(struct bag_inbox *box, uint64_t job)
{
    box->job = job;
    box->first = box->count = box->peers = 0;
    box->join_due_us = 0;
    box->join_pause_ms = BAG_JOIN_FIRST_MS;
}

void bag_inbox_event(struct bag_inbox *box, const struct client_event *event)
{
    if (event->kind == CLIENT_SHARD_UP || event->kind == CLIENT_SHARD_DOWN) {
        box->join_due_us = 0;
        box->join_pause_ms = BAG_JOIN_FIRST_MS;
    } else if (event->kind == CLIENT_CORRESPONDENTS && event->correspondents->job == box->job) {
        const struct proto_mail_list *list = event->correspondents;
        box->peers = 0;
        for (uint32_t i = 0; i < list->list.count && i < BAG_PEERS_MAX; i++) {
            box->peer[box->peers++] = list->list.at[i].alias;
        }
    } else if (event->kind == CLIENT_MAIL && event->mail->job == box->job &&
               event->mail->body.length <= PROTO_BODY_MAX && box->count < BAG_INBOX_ROOM) {
        struct bag_envelope *at = &box->ring[(box->first + box->count++) % BAG_INBOX_ROOM];
        at->from = event->mail->from;
        at->length = event->mail->body.length;
        memcpy(at->body, event->mail->body.at, at->length);
    }
}

bool bag_inbox_next(struct bag_inbox *box, struct bag_letter *out, uint64_t *from)
{
    while (box->count > 0) {
        const struct bag_envelope *at = &box->ring[box->first];
        box->first = (box->first + 1) % BAG_INBOX_ROOM;
        box->count--;
        if (bag_letter_read(at->body, at->length, out)) {
            *from = at->from;
            return true;
        }
    }
    return false;
}

unsigned bag_inbox_peers(struct bag_inbox *box, uint64_t out[BAG_PEERS_MAX])
{
    const unsigned peers = box->peers;
    memcpy(out, box->peer, peers * sizeof out[0]);
    box->peers = 0;
    return peers;
}

/* ---- joining ---- */

static void join_after(struct bag_inbox *box, uint32_t pause_ms, uint64_t now_us)
{
    box->join_due_us = now_us + pause_ms * UINT64_C(1000);
    box->join_pause_ms = pause_ms < BAG_JOIN_LONGEST_MS / 2 ? 2 * pause_ms : BAG_JOIN_LONGEST_MS;
}

bool bag_inbox_join_is_due(struct bag_inbox *box, uint64_t now_us)
{
    const bool is_due = now_us >= box->join_due_us;
    if (is_due) {
        join_after(box, box->join_pause_ms, now_us);
    }
    return is_due;
}

void bag_inbox_answered(struct bag_inbox *box, uint64_t now_us)
{
    join_after(box, BAG_JOIN_LONGEST_MS, now_us);
}

void bag_inbox_await(struct bag_inbox *box, uint64_t now_us)
{
    join_after(box, BAG_JOIN_AWAIT_MS, now_us);
}
