/* visitors: the connections of an HTTP server (common/http.h), and which of them must end so that
 * nobody keeps others out by being slow.
 *
 * A visitor says a request, is answered, and may say another; each has a time for all of it. When
 * there are more than there may be, one of the address with most of them ends, the one that has
 * taken longest for its request; so a newcomer gets in whoever holds the others. Followers of a
 * stream (followed) are left alone. A connection ends by shutdown(2): its owner reads its end, and
 * closes it.
 *
 * Threads: any; one of its own looks once a second while there is a visitor, and takes no signals
 * if the opener masks them. Memory: an entry for each visitor. Blocks: visitors_close, for that
 * thread.
 */
#ifndef COMMON_VISITORS_H
#define COMMON_VISITORS_H

#include "common/err.h"

#include <sys/socket.h>

struct visitors;
struct visitor;

struct visitors_limits {
    unsigned max;
    unsigned request_s, answer_s; /* for the head of a request; with the answer */
};

enum err visitors_open(struct visitors **out, const struct visitors_limits *limits);
/* All visitors have gone. Accepts a NULL inside; nulls. */
void visitors_close(struct visitors **visitors);

/* Somebody connected; may end another, or this one. NULL without memory: then this one ends. */
struct visitor *visitors_come(struct visitors *visitors, int fd, const struct sockaddr *from);
/* What has happened to a visitor: its whole request is there (asked); what it gets goes on until it
 * leaves (followed); its answer is sent, and it may ask again (answered); it leaves, and its
 * descriptor is still open. All accept a NULL visitor. */
void visitors_asked(struct visitors *visitors, struct visitor *visitor);
void visitors_followed(struct visitors *visitors, struct visitor *visitor);
void visitors_answered(struct visitors *visitors, struct visitor *visitor);
void visitors_leave(struct visitors *visitors, struct visitor *visitor);

#endif
