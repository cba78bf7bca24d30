#include "ttserver/net/connection.h"

#include <stdlib.h>
#include <string.h>

enum {
    OUT_MIN = 1024,
    READ_ON = 4096, /* behind a message of which a part is here */
};

void connection_init(struct connection *c, const struct socket_port *port, void *socket,
                     const struct zmtp_server *server, size_t *held)
{
    c->port = port;
    c->socket = socket;
    c->held = held;
    c->need = 1;
    zmtp_init(&c->zmtp, server);
    turns_user_init(&c->own);
    c->turn.user = &c->own;
}

static void free_buffer(struct connection *c, uint8_t **buffer, size_t *size)
{
    CHECK_THAT(*c->held >= *size, "connection: its owner counts its buffers");
    *c->held -= *size;
    free(*buffer);
    *buffer = NULL;
    *size = 0;
}

void connection_close(struct connection *c)
{
    c->port->close(c->socket);
    c->socket = NULL;
    free_buffer(c, &c->in, &c->in_size);
    free_buffer(c, &c->out, &c->out_size);
    zmtp_close(&c->zmtp);
}

static bool grow(struct connection *c, uint8_t **buffer, size_t *size, size_t wanted)
{
    if (wanted > *size) {
        uint8_t *larger = realloc(*buffer, wanted);
        if (larger == NULL) {
            c->is_broken = true;
            return false;
        }
        *c->held += wanted - *size;
        *buffer = larger;
        *size = wanted;
    }
    return true;
}

/* ---- in ---- */

uint8_t *connection_read(struct connection *c, uint8_t *scratch, size_t *length)
{
    /* Not all that is needed at once: a peer that announces a large message has sent none of it. */
    size_t most = c->in_used > 0 ? c->need - c->in_used + READ_ON : CONNECTION_READ;
    size_t bound = c->is_ready ? CONNECTION_READ : ZMTP_COMMAND_MAX;
    most = most < bound ? most : bound;
    if (c->in_used > 0 && !grow(c, &c->in, &c->in_size, c->in_used + most)) {
        return NULL;
    }
    CHECK_THAT(c->in_used == 0 || c->in_used + most <= c->in_size,
               "connection: what is read has room");
    uint8_t *at = c->in_used > 0 ? c->in : scratch;
    ssize_t n = c->port->read(c->socket, at + c->in_used, most);
    if (n <= 0) {
        c->is_broken = n == SOCKET_ENDED;
        return NULL;
    }
    CHECK_THAT((size_t)n <= most, "connection: no more is read than there is room for");
    *length = c->in_used + (size_t)n;
    return at;
}

void connection_keep(struct connection *c, const uint8_t *at, size_t left)
{
    if (left == 0) {
        c->in_used = 0;
        free_buffer(c, &c->in, &c->in_size);
        return;
    }
    if (c->in != NULL && at >= c->in && at < c->in + c->in_size) {
        CHECK_THAT(left <= (size_t)(c->in + c->in_size - at), "connection: what is kept is here");
        memmove(c->in, at, left);
    } else if (grow(c, &c->in, &c->in_size, left)) {
        memcpy(c->in, at, left);
    } else {
        left = 0;
    }
    c->in_used = left;
}

/* ---- out ---- */

/* Room for `more` bytes behind those that wait. */
static uint8_t *reserve(struct connection *c, size_t more)
{
    size_t waiting = connection_waiting(c);
    size_t size = c->out_size > OUT_MIN ? c->out_size : OUT_MIN;
    CHECK_THAT(c->out_begin <= c->out_end && c->out_end <= c->out_size,
               "connection: what waits to be sent is in its buffer");
    if (c->is_broken) {
        return NULL;
    }
    if (c->out_begin > 0 && c->out_end + more > c->out_size) {
        memmove(c->out, c->out + c->out_begin, waiting);
        c->out_begin = 0;
        c->out_end = waiting;
    }
    while (size < c->out_end + more) {
        size *= 2;
    }
    return grow(c, &c->out, &c->out_size, size) ? c->out + c->out_end : NULL;
}

bool connection_put(struct connection *c, const uint8_t *message, size_t length)
{
    if (connection_waiting(c) > 0 && connection_waiting(c) + length > CONNECTION_OUT_MAX) {
        return false;
    }
    uint8_t *at = reserve(c, length + ZMTP_OVERHEAD);
    if (at == NULL) {
        return false;
    }
    c->out_end += zmtp_put(&c->zmtp, false, message, length, at);
    return true;
}

void connection_put_raw(struct connection *c, const uint8_t *bytes, size_t length)
{
    uint8_t *at = reserve(c, length);
    if (at != NULL) {
        memcpy(at, bytes, length);
        c->out_end += length;
    }
}

void connection_flush(struct connection *c)
{
    while (connection_waiting(c) > 0 && !c->is_broken) {
        ssize_t n = c->port->write(c->socket, c->out + c->out_begin, connection_waiting(c));
        if (n == SOCKET_LATER) {
            return;
        }
        if (n == SOCKET_ENDED) {
            c->is_broken = true;
        } else {
            c->out_begin += (size_t)n;
            CHECK_THAT(c->out_begin <= c->out_end, "connection: what was sent had waited");
        }
    }
    c->out_begin = c->out_end = 0;
    if (c->out_size > 4 * OUT_MIN) {
        free_buffer(c, &c->out, &c->out_size);
    }
}
