/* redis_tls: TLS over a socket that is connected and does not block, for rediss:// addresses. The
 * server's certificate and its name or address are checked.
 *
 * Threads: one for a trust and all that is begun with it. Memory: allocates. Blocking: never, but
 * for reading the file of certificates at the start. */
#ifndef COMMON_REDIS_REDIS_TLS_H
#define COMMON_REDIS_REDIS_TLS_H

#include "common/redis/redis_address.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct redis_tls_trust; /* the certificates that are trusted */
struct redis_tls; /* one connection */

enum redis_tls_status { REDIS_TLS_DONE, REDIS_TLS_WAIT, REDIS_TLS_FAILED };

/* `ca_file`: empty for the system's certificates. ERR_IO with one line in `why`: it cannot be used.
 */
enum err redis_tls_trust_open(struct redis_tls_trust **out, const char *ca_file,
                              char why[REDIS_WHY_MAX]);
/* Accepts NULL; nulls. */
void redis_tls_trust_close(struct redis_tls_trust **trust);

/* The socket stays the caller's. NULL: no memory. */
struct redis_tls *redis_tls_begin(struct redis_tls_trust *trust, int fd, const char *host);
void redis_tls_end(struct redis_tls **tls);

/* One step. FAILED: why in one line. */
enum redis_tls_status redis_tls_handshake(struct redis_tls *tls, char why[REDIS_WHY_MAX]);
/* As recv and send: 0 at the end, -1 with errno, which is EAGAIN where one has to wait. A read of
 * 16 KiB or more leaves nothing behind that poll would not show. */
ssize_t redis_tls_read(struct redis_tls *tls, void *out, size_t size);
ssize_t redis_tls_write(struct redis_tls *tls, const void *bytes, size_t length);
/* Does what was begun last wait for the socket to take something? */
bool redis_tls_waits_to_write(const struct redis_tls *tls);

#endif
