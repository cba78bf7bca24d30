#include "proto/lane/handshake.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

enum {
    EVENTS = ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
             ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_SUCCEEDED,
    /* A server that dies in a handshake ends one connection like this; one that does not want us,
     * or has other keys, ends all. */
    CLOSED_MAX = 2,
};

enum err handshake_keys(void *socket, const struct keys_client *keys)
{
    if (keys == NULL) {
        return ERR_OK;
    }
    bool ok = zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, keys->server_key, KEYS_BYTES) == 0 &&
              zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, keys->own.public_key, KEYS_BYTES) == 0 &&
              zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, keys->own.secret_key, KEYS_BYTES) == 0;
    return ok ? ERR_OK : ERR_IO;
}

enum err handshake_watch(struct handshake *out, void *context, void *socket, bool has_keys)
{
    char name[64];
    int none = 0;
    snprintf(name, sizeof name, "inproc://handshake-%p", socket);
    if (zmq_socket_monitor(socket, name, EVENTS) != 0) {
        return ERR_NOMEM;
    }
    void *monitor = zmq_socket(context, ZMQ_PAIR);
    if (monitor == NULL || zmq_setsockopt(monitor, ZMQ_LINGER, &none, sizeof none) != 0 ||
        zmq_connect(monitor, name) != 0) {
        if (monitor != NULL) {
            zmq_close(monitor);
        }
        zmq_socket_monitor(socket, NULL, 0);
        return ERR_NOMEM;
    }
    *out = (struct handshake){.monitor = monitor, .has_keys = has_keys};
    return ERR_OK;
}

/* An event is two frames: number and value, and the address. */
static bool next_event(void *monitor, uint16_t *number, uint32_t *value)
{
    uint8_t frame[sizeof *number + sizeof *value];
    char address[256];
    if (zmq_recv(monitor, frame, sizeof frame, ZMQ_DONTWAIT) < (int)sizeof frame) {
        return false;
    }
    memcpy(number, frame, sizeof *number);
    memcpy(value, frame + sizeof *number, sizeof *value);
    zmq_recv(monitor, address, sizeof address, ZMQ_DONTWAIT);
    return true;
}

const char *handshake_refusal(struct handshake *h)
{
    uint16_t event;
    uint32_t value;
    while (h->monitor != NULL && next_event(h->monitor, &event, &value)) {
        if (event == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL &&
            value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH) {
            h->is_final = true;
            return h->has_keys ? "has no keys, and we do: give it some, or leave out --keys and "
                                 "ABDADA_KEYS"
                               : "needs keys: add --keys DIR, or set ABDADA_KEYS";
        }
        if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
            h->closed = 0;
            continue;
        }
        if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH) { /* it said so: ERROR */
            h->is_final = true;
            return "refused our key: its operator must add it to allowed/";
        }
        if (++h->closed >= CLOSED_MAX) {
            return h->has_keys ? "refused our key, without a reason: check that server.public is "
                                 "that of this shard"
                               : "ends connections in the handshake: if it needs keys, add --keys "
                                 "DIR";
        }
    }
    return NULL;
}

void handshake_renew(void *socket, const char *endpoint)
{
    zmq_disconnect(socket, endpoint); /* fails if libzmq gave it up, which is why it is renewed */
    zmq_connect(socket, endpoint);
}

void handshake_close(struct handshake *h, void *socket)
{
    if (h->monitor != NULL) {
        zmq_socket_monitor(socket, NULL, 0);
        zmq_close(h->monitor);
    }
    *h = (struct handshake){0};
}
