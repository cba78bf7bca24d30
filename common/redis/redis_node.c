#include "common/redis/redis_node.h"

#include "common/redis/redis_reader.h"

#include <ctype.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { IOV_MAX_HERE = 64, READS_MAX = 16, WORD_MAX = 24 };

/* ---- calls ---- */

static size_t decimal_length(size_t n)
{
    size_t digits = 1;
    for (; n >= 10; n /= 10) {
        digits++;
    }
    return digits;
}

/* One argument as the protocol has it; returns its end. */
static char *put_word(char *at, const char *word, size_t length)
{
    at += sprintf(at, "$%zu\r\n", length);
    memcpy(at, word, length);
    memcpy(at + length, "\r\n", 2);
    return at + length + 2;
}

static size_t word_length(size_t length)
{
    return 1 + decimal_length(length) + 2 + length + 2;
}

struct redis_call *redis_call_make(enum redis_call_kind kind, int script, unsigned keys,
                                   unsigned argc, const char *const *argv, const size_t *length)
{
    static const char command[] = "EVALSHA", hash[REDIS_CALL_HASH];
    char count[16];
    unsigned words = argc;
    size_t count_length = (size_t)snprintf(count, sizeof count, "%u", keys), whole = 0;
    if (script >= 0) {
        words += 3;
        whole = word_length(sizeof command - 1) + word_length(REDIS_CALL_HASH) +
                word_length(count_length);
    }
    whole += 1 + decimal_length(words) + 2;
    for (unsigned i = 0; i < argc; i++) {
        if (length[i] > REDIS_CALL_BYTES_MAX || whole > REDIS_CALL_BYTES_MAX) {
            return NULL;
        }
        whole += word_length(length[i]);
    }
    struct redis_call *call = malloc(sizeof *call + whole + 1);
    if (call == NULL) {
        return NULL;
    }
    *call = (struct redis_call){.kind = kind, .length = whole};
    char *at = call->bytes + sprintf(call->bytes, "*%u\r\n", words);
    if (script >= 0) {
        at = put_word(at, command, sizeof command - 1);
        at = put_word(at, hash, REDIS_CALL_HASH);
        call->script = (uint8_t)script;
        call->hash_at = (size_t)(at - call->bytes) - 2 - REDIS_CALL_HASH;
        at = put_word(at, count, count_length);
    }
    for (unsigned i = 0; i < argc; i++) {
        at = put_word(at, argv[i], length[i]);
    }
    CHECK_THAT(at == call->bytes + whole, "call: it is as long as was reckoned");
    return call;
}

void redis_call_free(struct redis_call *call)
{
    if (call != NULL && call->kind == REDIS_CALL_AUTH) {
        explicit_bzero(call->bytes, call->length);
    }
    free(call);
}

struct redis_call *redis_call_make_words(enum redis_call_kind kind, unsigned argc,
                                         const char *const *argv)
{
    size_t length[8];
    for (unsigned i = 0; i < argc; i++) {
        length[i] = strlen(argv[i]);
    }
    return redis_call_make(kind, -1, 0, argc, argv, length);
}

static void append(struct redis_node *node, struct redis_call *call)
{
    CHECK_THAT((node->calls > 0) == (node->first != NULL), "node: it counts the calls that wait");
    call->next = NULL;
    call->queued_us = node->now_us;
    if (call->hash_at != 0) {
        memcpy(call->bytes + call->hash_at, node->hash[call->script], REDIS_CALL_HASH);
    }
    if (node->first == NULL) {
        node->first = call;
    } else {
        node->last->next = call;
    }
    node->last = call;
    if (node->unsent == NULL) {
        node->unsent = call;
        node->unsent_offset = 0;
    }
    node->calls++;
    node->bytes += call->length;
}

static struct redis_call *take_first(struct redis_node *node)
{
    struct redis_call *call = node->first;
    CHECK_THAT(node->calls > 0 && node->bytes >= call->length, "node: what waits is counted");
    node->first = call->next;
    node->calls--;
    node->bytes -= call->length;
    CHECK_THAT((node->calls > 0) == (node->first != NULL), "node: it counts the calls that wait");
    return call;
}

/* ---- the end of a connection ---- */

__attribute__((format(printf, 2, 3))) static void say(struct redis_node *node, const char *format,
                                                      ...)
{
    char address[OPTIONS_HOST_MAX + 16], reason[REDIS_WHY_MAX];
    va_list list;
    va_start(list, format);
    vsnprintf(reason, sizeof reason, format, list);
    va_end(list);
    options_host_port_text(node->at.host, node->at.port, address, sizeof address);
    snprintf(node->why, sizeof node->why, "%.80s: %.170s", address, reason);
}

void redis_node_break(struct redis_node *node, const char *reason)
{
    if (!node->is_broken) {
        node->is_broken = true;
        say(node, "%s", reason);
    }
}

static void break_by(struct redis_node *node, const redisReply *error)
{
    char text[REDIS_WHY_MAX];
    redis_reader_printable(error->str, error->len, text);
    redis_node_break(node, text);
}

void redis_node_refuse_replica(struct redis_node *node)
{
    node->is_replica = true;
    if (node->state == REDIS_NODE_IDLE) {
        host_lookup_name_forget(&node->name);
    } else {
        redis_node_break(node, "this is a replica: name its master");
    }
}

static void disconnect(struct redis_node *node)
{
    redis_tls_end(&node->tls);
    redis_reader_close(&node->reader);
    if (node->fd >= 0) {
        close(node->fd);
    }
    node->fd = -1;
    node->state = REDIS_NODE_IDLE;
    node->is_broken = false;
    node->unsent = NULL;
    memset(node->is_loading, 0, sizeof node->is_loading);
}

/* Hands back what waits, once the node is one that takes no calls. */
static void hand_back(struct redis_node *node)
{
    while (node->first != NULL) {
        struct redis_call *call = take_first(node);
        if (call->kind == REDIS_CALL_USER || call->kind == REDIS_CALL_MAP) {
            node->setup->lost(node->setup->self, call);
        } else {
            redis_call_free(call);
        }
    }
    node->last = NULL;
    CHECK_THAT(node->calls == 0 && node->bytes == 0, "node: what waits is counted");
}

/* With node->why. Another address of the host is tried at once. */
static void end_connection(struct redis_node *node)
{
    bool has_another =
        (node->state <= REDIS_NODE_CONNECTING || node->is_replica) && node->name.next != NULL;
    node->was_refused = node->state == REDIS_NODE_SECURING || node->state == REDIS_NODE_LOGIN;
    disconnect(node);
    node->retry_us = node->now_us;
    if (!has_another) {
        node->name.next = NULL;
        node->retry_us += node->backoff_us;
        node->backoff_us *= node->backoff_us < REDIS_NODE_RETRY_MAX_US ? 2 : 1;
        if (node->is_replica) { /* by now the name may be that of the master */
            host_lookup_name_forget(&node->name);
            node->backoff_us = REDIS_NODE_REPLICA_US;
        }
        node->has_failed = true;
    }
    hand_back(node);
    if (!has_another) {
        node->setup->changed(node->setup->self, node);
    }
}

/* ---- connecting ---- */

/* NULL, or why not. */
static const char *try_to_connect(struct redis_node *node)
{
    int one = 1;
    const char *why = "";
    if (node->setup->unusable[0] != '\0') {
        return node->setup->unusable;
    }
    const struct addrinfo *to =
        host_lookup_name_next(&node->name, &node->at, REDIS_NODE_LOOKUP_US, node->now_us, &why);
    if (to == NULL) {
        return why; /* NULL: it is being resolved */
    }
    node->fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    node->reader = redis_reader_open();
    if (node->fd < 0 || node->reader == NULL) {
        return node->fd < 0 ? strerror(errno) : err_text(ERR_NOMEM);
    }
    setsockopt(node->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    node->state = REDIS_NODE_CONNECTING;
    return connect(node->fd, to->ai_addr, to->ai_addrlen) != 0 && errno != EINPROGRESS
               ? strerror(errno)
               : NULL;
}

/* False: no memory; the connection is as good as none. */
static bool queue_words(struct redis_node *node, enum redis_call_kind kind, unsigned argc,
                        const char *const *argv)
{
    struct redis_call *call = redis_call_make_words(kind, argc, argv);
    if (call == NULL) {
        redis_node_break(node, err_text(ERR_NOMEM));
        return false;
    }
    append(node, call);
    return true;
}

static bool queue_load(struct redis_node *node, unsigned script)
{
    const char *words[] = {"SCRIPT", "LOAD", node->setup->script[script]};
    if (!queue_words(node, REDIS_CALL_LOAD, 3, words)) {
        return false;
    }
    node->last->script = (uint8_t)script;
    node->is_loading[script] = true;
    return true;
}

static void begin_login(struct redis_node *node)
{
    const struct redis_node_setup *s = node->setup;
    char db[16];
    bool fine = true;
    node->state = REDIS_NODE_LOGIN;
    if (*s->password != '\0' || *s->user != '\0') {
        const char *both[] = {"AUTH", s->user, s->password}, *alone[] = {"AUTH", s->password};
        fine = *s->user != '\0' ? queue_words(node, REDIS_CALL_AUTH, 3, both)
                                : queue_words(node, REDIS_CALL_AUTH, 2, alone);
    }
    if (s->db != 0) {
        snprintf(db, sizeof db, "%u", s->db);
        fine = fine && queue_words(node, REDIS_CALL_SELECT, 2, (const char *[]){"SELECT", db});
    }
    fine = fine && (!node->is_replica ||
                    queue_words(node, REDIS_CALL_ROLE, 2, (const char *[]){"HELLO", "2"}));
    for (unsigned i = 0; !node->is_subscriber && fine && i < s->scripts; i++) {
        fine = queue_load(node, i);
    }
    if (fine) {
        queue_words(node, REDIS_CALL_READY, 1, (const char *[]){"PING"});
    }
}

static void on_connected(struct redis_node *node)
{
    struct pollfd fd = {.fd = node->fd, .events = POLLOUT};
    int error = 0;
    socklen_t size = sizeof error;
    if (poll(&fd, 1, 0) != 1) {
        return;
    }
    if (getsockopt(node->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
        redis_node_break(node, strerror(error != 0 ? error : errno));
        return;
    }
    if (host_lookup_drop_if_itself(node->fd)) {
        redis_node_break(node, strerror(ECONNREFUSED));
        return;
    }
    node->progress_us = node->now_us;
    if (node->setup->trust == NULL) {
        begin_login(node);
        return;
    }
    node->tls = redis_tls_begin(node->setup->trust, node->fd, node->at.host);
    node->state = REDIS_NODE_SECURING;
    if (node->tls == NULL) {
        redis_node_break(node, err_text(ERR_NOMEM));
    }
}

static void on_handshake(struct redis_node *node)
{
    char why[REDIS_WHY_MAX];
    switch (redis_tls_handshake(node->tls, why)) {
    case REDIS_TLS_DONE:
        node->progress_us = node->now_us;
        begin_login(node);
        break;
    case REDIS_TLS_FAILED:
        redis_node_break(node, why);
        break;
    case REDIS_TLS_WAIT:
        break;
    }
}

/* ---- writing ---- */

/* Whichever way a connection that worked ends, it is one event for people. */
static void break_off(struct redis_node *node, const char *how)
{
    char text[REDIS_WHY_MAX];
    snprintf(text, sizeof text, "%s%s", how,
             node->state == REDIS_NODE_LOGIN && node->tls == NULL
                 ? " when we logged in: perhaps it wants TLS, rediss://"
                 : "");
    redis_node_break(node, node->state == REDIS_NODE_UP ? "the connection broke" : text);
}

static ssize_t write_some(struct redis_node *node)
{
    if (node->tls != NULL) {
        return redis_tls_write(node->tls, node->unsent->bytes + node->unsent_offset,
                               node->unsent->length - node->unsent_offset);
    }
    struct iovec iov[IOV_MAX_HERE];
    struct msghdr message = {.msg_iov = iov};
    size_t offset = node->unsent_offset;
    for (struct redis_call *c = node->unsent; c != NULL && message.msg_iovlen < IOV_MAX_HERE;
         c = c->next) {
        iov[message.msg_iovlen++] =
            (struct iovec){.iov_base = c->bytes + offset, .iov_len = c->length - offset};
        offset = 0;
    }
    return sendmsg(node->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void write_unsent(struct redis_node *node)
{
    while (node->unsent != NULL && !node->is_broken) {
        ssize_t n = write_some(node);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == EAGAIN) {
            return;
        }
        if (n <= 0) {
            break_off(node, n < 0 ? strerror(errno) : "it closed the connection");
            return;
        }
        node->unsent_offset += (size_t)n;
        while (node->unsent != NULL && node->unsent_offset >= node->unsent->length) {
            node->unsent_offset -= node->unsent->length;
            node->unsent = node->unsent->next;
        }
    }
}

bool redis_node_call(struct redis_node *node, struct redis_call *call, uint64_t now_us)
{
    if (node->state != REDIS_NODE_UP || node->is_broken || node->calls >= REDIS_NODE_CALLS_MAX ||
        node->bytes + call->length > REDIS_CALL_BYTES_MAX) {
        return false;
    }
    node->now_us = now_us;
    append(node, call);
    if (node->unsent == call) { /* else the socket did not take all before it */
        write_unsent(node);
    }
    return true;
}

bool redis_node_load(struct redis_node *node, unsigned script, uint64_t now_us)
{
    CHECK(script < node->setup->scripts);
    node->now_us = now_us;
    return node->state == REDIS_NODE_UP && !node->is_broken &&
           (node->is_loading[script] || queue_load(node, script));
}

/* ---- reading ---- */

/* A log-in that the server does not take. The text of its error may repeat the password. */
static void refuse_login(struct redis_node *node, const redisReply *reply)
{
    char word[WORD_MAX];
    size_t n = 0;
    while (n < reply->len && n + 1 < sizeof word && isupper((unsigned char)reply->str[n])) {
        word[n] = reply->str[n];
        n++;
    }
    word[n] = '\0';
    char text[REDIS_WHY_MAX];
    snprintf(text, sizeof text, "it refuses our user or password (%s)", word);
    redis_node_break(node, text);
}

/* An answer to a call of the node's own. */
static void take_own(struct redis_node *node, const struct redis_call *call,
                     const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR && call->kind == REDIS_CALL_AUTH) {
        refuse_login(node, reply);
    } else if (reply->type == REDIS_REPLY_ERROR) {
        if (call->kind != REDIS_CALL_ASKING && call->kind != REDIS_CALL_ROLE) {
            break_by(node, reply);
        }
    } else if (call->kind == REDIS_CALL_LOAD) {
        node->is_loading[call->script] = false;
        if (reply->type == REDIS_REPLY_STRING && reply->len == REDIS_CALL_HASH) {
            memcpy(node->hash[call->script], reply->str, REDIS_CALL_HASH);
        } else {
            redis_node_break(node, "it does not take our scripts");
        }
    } else if (call->kind == REDIS_CALL_ROLE) { /* HELLO: anybody may say it, whatever the ACL */
        for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i + 1 < reply->elements; i += 2) {
            if (redis_reader_is(reply->element[i], "role") &&
                !redis_reader_is(reply->element[i + 1], "master")) {
                redis_node_refuse_replica(node);
            }
        }
    } else if (call->kind == REDIS_CALL_READY) {
        node->state = REDIS_NODE_UP;
        node->is_replica = node->has_failed = false;
        node->why[0] = '\0';
        node->backoff_us = REDIS_NODE_RETRY_MIN_US;
        node->setup->changed(node->setup->self, node);
    }
}

static void on_reply(struct redis_node *node, const redisReply *reply)
{
    if (node->is_subscriber && reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
        redis_reader_is(reply->element[0], "message")) {
        node->setup->pushed(node->setup->self, reply);
        return;
    }
    if (node->first == NULL || node->first == node->unsent) {
        if (reply->type == REDIS_REPLY_ERROR) { /* "max number of clients reached" */
            break_by(node, reply);
        } else {
            redis_node_break(node, "it answers what was not asked");
        }
        return;
    }
    struct redis_call *call = take_first(node);
    if (call->kind <= REDIS_CALL_SUBSCRIBE) {
        node->setup->replied(node->setup->self, node, call, reply);
    } else {
        take_own(node, call, reply);
        redis_call_free(call);
    }
}

/* All replies that are complete. */
static void take_replies(struct redis_node *node)
{
    while (!node->is_broken) {
        struct redisReply *reply = NULL;
        enum err err = redis_reader_next(node->reader, &reply);
        if (err != ERR_OK) {
            redis_node_break(node, err == ERR_FULL ? "its reply is too large"
                                                   : "it does not speak Redis' protocol");
        }
        if (reply == NULL) {
            return;
        }
        node->progress_us = node->now_us; /* a part of a reply is none: it may never end */
        on_reply(node, reply);
        freeReplyObject(reply);
    }
}

static bool read_some(struct redis_node *node)
{
    bool any = false;
    for (unsigned i = 0; i < READS_MAX && !node->is_broken; i++) {
        char *buffer = node->setup->buffer;
        ssize_t n = node->tls != NULL ? redis_tls_read(node->tls, buffer, REDIS_NODE_READ)
                                      : recv(node->fd, buffer, REDIS_NODE_READ, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == EAGAIN) {
            break;
        }
        if (n <= 0) {
            break_off(node, n < 0 ? strerror(errno) : "it closed the connection");
            break;
        }
        any = true;
        if (redis_reader_feed(node->reader, buffer, (size_t)n) != ERR_OK) {
            redis_node_break(node, err_text(ERR_NOMEM));
            break;
        }
        take_replies(node);
    }
    return any;
}

/* ---- all of it ---- */

bool redis_node_serve(struct redis_node *node, uint64_t now_us)
{
    bool any = false;
    node->now_us = now_us;
    if (node->state == REDIS_NODE_IDLE) {
        return false;
    }
    if (node->state == REDIS_NODE_CONNECTING) {
        on_connected(node);
    }
    if (node->state == REDIS_NODE_SECURING && !node->is_broken) {
        on_handshake(node);
    }
    if (node->state >= REDIS_NODE_LOGIN) {
        write_unsent(node);
        any = !node->is_broken && read_some(node);
        write_unsent(node);
    }
    CHECK_THAT(node->unsent == NULL || node->unsent_offset < node->unsent->length,
               "node: what is unsent is not wholly written");
    if (node->is_broken) {
        end_connection(node);
    }
    CHECK_THAT((node->state == REDIS_NODE_IDLE) == (node->fd < 0), "node: connected by a socket");
    CHECK_THAT((node->fd < 0) == (node->reader == NULL), "node: what a socket brings is read");
    return any;
}

void redis_node_tick(struct redis_node *node, uint64_t now_us)
{
    node->now_us = now_us;
    if (node->state == REDIS_NODE_IDLE) {
        const bool is_due = node->is_wanted && now_us >= node->retry_us;
        node->progress_us = is_due ? now_us : node->progress_us;
        const char *why = is_due ? try_to_connect(node) : NULL;
        if (why != NULL) {
            say(node, "%s", why);
            end_connection(node);
        }
        return;
    }
    redis_node_serve(node, now_us); /* the silence may have been ours: read before judging */
    if (node->state == REDIS_NODE_IDLE) {
        return;
    }
    bool owes = node->state < REDIS_NODE_UP || node->first != NULL;
    uint64_t from_us = node->progress_us;
    if (node->first != NULL && node->first->queued_us > from_us) {
        from_us = node->first->queued_us;
    }
    uint64_t silence_us = now_us > from_us ? now_us - from_us : 0;
    if (owes && silence_us > node->setup->silence_us) {
        redis_node_break(node, redis_node_silence_text(node->state));
        end_connection(node);
    } else if (!owes && node->is_wanted && silence_us > REDIS_NODE_IDLE_US) {
        queue_words(node, REDIS_CALL_PING, 1, (const char *[]){"PING"});
        write_unsent(node);
    } else if (!owes && !node->is_wanted) {
        disconnect(node);
    }
}

bool redis_node_poll(const struct redis_node *node, struct pollfd *out)
{
    if (node->state == REDIS_NODE_IDLE) {
        return false;
    }
    bool writes = node->state == REDIS_NODE_CONNECTING || node->unsent != NULL || node->is_broken ||
                  (node->tls != NULL && redis_tls_waits_to_write(node->tls));
    *out = (struct pollfd){.fd = node->fd, .events = (short)(POLLIN | (writes ? POLLOUT : 0))};
    return true;
}

void redis_node_moved(struct redis_node *node)
{
    CHECK_THAT(node->state == REDIS_NODE_IDLE, "node: connected where it says");
    host_lookup_name_forget(&node->name);
    node->backoff_us = REDIS_NODE_RETRY_MIN_US;
}

bool redis_node_open(struct redis_node *node, struct redis_node_setup *setup, const char *host,
                     uint16_t port, bool is_subscriber)
{
    CHECK(setup->scripts <= REDIS_SCRIPTS_MAX);
    *node = (struct redis_node){
        .setup = setup,
        .at.port = port,
        .is_subscriber = is_subscriber,
        .fd = -1,
        .backoff_us = REDIS_NODE_RETRY_MIN_US,
    };
    return snprintf(node->at.host, sizeof node->at.host, "%s", host) < (int)sizeof node->at.host;
}

void redis_node_close(struct redis_node *node)
{
    if (node->setup == NULL) {
        return;
    }
    if (node->state == REDIS_NODE_UP && !node->is_broken) {
        write_unsent(node);
        /* What is unread at close would make the system drop what is still on its way out. */
        for (unsigned i = 0; i < READS_MAX; i++) {
            if (recv(node->fd, node->setup->buffer, REDIS_NODE_READ, MSG_DONTWAIT) <= 0) {
                break;
            }
        }
        shutdown(node->fd, SHUT_WR);
    }
    disconnect(node);
    host_lookup_name_forget(&node->name);
    while (node->first != NULL) {
        redis_call_free(take_first(node));
    }
    *node = (struct redis_node){.fd = -1};
}
