#include "ttserver/io/check.h"

#include "proto/codec.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

enum { SMALL_MAX = 256, LINGER_MS = 100 };

static bool say(void *socket, const struct proto_message *message)
{
    uint8_t bytes[SMALL_MAX];
    size_t length = proto_encode(message, bytes, sizeof bytes);
    return length > 0 && zmq_send(socket, bytes, length, 0) >= 0;
}

static enum err ask(void *socket)
{
    static struct proto_decoder decoder;
    uint8_t bytes[SMALL_MAX];
    struct proto_message hello = {.type = PROTO_HELLO}, answer, bye = {.type = PROTO_BYE};
    hello.hello = (struct proto_hello){.request = 1,
                                       .role = PROTO_CLIENT,
                                       .instance = (uint64_t)getpid(),
                                       .name = proto_text_of("check")};
    if (!say(socket, &hello)) {
        return ERR_ABSENT;
    }
    int length = zmq_recv(socket, bytes, sizeof bytes, 0);
    if (length < 0 || (size_t)length > sizeof bytes ||
        proto_decode(&decoder, bytes, (size_t)length, &answer) != ERR_OK ||
        answer.type != PROTO_WELCOME) {
        return ERR_ABSENT;
    }
    say(socket, &bye);
    return ERR_OK;
}

enum err check_shard(const struct options_host_port *at)
{
    char name[OPTIONS_HOST_MAX + 16], endpoint[sizeof name + 16];
    int wait_ms = CHECK_MS, linger_ms = LINGER_MS, one = 1;
    void *context = zmq_ctx_new();
    void *socket = context == NULL ? NULL : zmq_socket(context, ZMQ_DEALER);
    enum err err = socket == NULL ? ERR_NOMEM : ERR_OK;
    if (err == ERR_OK) {
        options_host_port_text(at->host, at->port, name, sizeof name);
        snprintf(endpoint, sizeof endpoint, "tcp://%s", name);
        zmq_setsockopt(socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
        zmq_setsockopt(socket, ZMQ_IMMEDIATE, &one, sizeof one); /* send waits for a connection */
        zmq_setsockopt(socket, ZMQ_SNDTIMEO, &wait_ms, sizeof wait_ms);
        zmq_setsockopt(socket, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms);
        zmq_setsockopt(socket, ZMQ_IPV6, &one, sizeof one);
        err = zmq_connect(socket, endpoint) == 0 ? ask(socket) : ERR_IO;
    }
    if (socket != NULL) {
        zmq_close(socket);
    }
    if (context != NULL) {
        zmq_ctx_term(context);
    }
    return err;
}
