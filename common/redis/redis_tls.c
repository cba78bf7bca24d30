#include "common/redis/redis_tls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

struct redis_tls_trust {
    SSL_CTX *context;
    BIO_METHOD *socket;
};

struct redis_tls {
    SSL *ssl;
    bool waits_to_write;
};

/* ---- the socket, as OpenSSL sees it: its own one would raise SIGPIPE ---- */

static int fd_of(BIO *bio)
{
    return *(const int *)BIO_get_data(bio);
}

static int socket_write(BIO *bio, const char *bytes, int length)
{
    BIO_clear_retry_flags(bio);
    ssize_t n = send(fd_of(bio), bytes, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        BIO_set_retry_write(bio);
    }
    return (int)n;
}

static int socket_read(BIO *bio, char *out, int size)
{
    BIO_clear_retry_flags(bio);
    ssize_t n = recv(fd_of(bio), out, (size_t)size, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        BIO_set_retry_read(bio);
    }
    return (int)n;
}

static long socket_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static int socket_create(BIO *bio)
{
    BIO_set_init(bio, 1);
    return 1;
}

static int socket_destroy(BIO *bio)
{
    free(BIO_get_data(bio));
    BIO_set_data(bio, NULL);
    return 1;
}

static BIO_METHOD *make_socket(void)
{
    BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    if (m == NULL) {
        return NULL;
    }
    BIO_meth_set_write(m, socket_write);
    BIO_meth_set_read(m, socket_read);
    BIO_meth_set_ctrl(m, socket_control);
    BIO_meth_set_create(m, socket_create);
    BIO_meth_set_destroy(m, socket_destroy);
    return m;
}

/* ---- trust ---- */

enum err redis_tls_trust_open(struct redis_tls_trust **out, const char *ca_file,
                              char why[REDIS_WHY_MAX])
{
    struct redis_tls_trust *t = calloc(1, sizeof *t);
    if (t == NULL) {
        return err_say(ERR_NOMEM, why, REDIS_WHY_MAX, "%s", err_text(ERR_NOMEM));
    }
    t->socket = make_socket();
    t->context = SSL_CTX_new(TLS_client_method());
    ERR_clear_error();
    if (t->context == NULL || t->socket == NULL) {
        snprintf(why, REDIS_WHY_MAX, "cannot start TLS");
    } else if (*ca_file != '\0' && SSL_CTX_load_verify_locations(t->context, ca_file, NULL) != 1) {
        snprintf(why, REDIS_WHY_MAX, "%.180s: not a file of certificates in PEM", ca_file);
    } else if (*ca_file == '\0' && SSL_CTX_set_default_verify_paths(t->context) != 1) {
        snprintf(why, REDIS_WHY_MAX, "no trusted certificates here; set ABDADA_REDIS_CA");
    } else {
        SSL_CTX_set_min_proto_version(t->context, TLS1_2_VERSION);
        SSL_CTX_set_options(t->context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
        SSL_CTX_set_mode(t->context,
                         SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        SSL_CTX_set_verify(t->context, SSL_VERIFY_PEER, NULL);
        *out = t;
        return ERR_OK;
    }
    ERR_clear_error();
    redis_tls_trust_close(&t);
    return ERR_IO;
}

void redis_tls_trust_close(struct redis_tls_trust **trust)
{
    if (*trust != NULL) {
        SSL_CTX_free((*trust)->context);
        BIO_meth_free((*trust)->socket);
        free(*trust);
        *trust = NULL;
    }
}

/* ---- a connection ---- */

static bool expect_host(SSL *ssl, const char *host)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    if (X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1) {
        return true;
    }
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return X509_VERIFY_PARAM_set1_host(param, host, 0) == 1 &&
           SSL_set_tlsext_host_name(ssl, host) == 1;
}

struct redis_tls *redis_tls_begin(struct redis_tls_trust *trust, int fd, const char *host)
{
    struct redis_tls *tls = calloc(1, sizeof *tls);
    int *copy = malloc(sizeof *copy);
    BIO *bio = BIO_new(trust->socket);
    SSL *ssl = SSL_new(trust->context);
    if (tls == NULL || copy == NULL || bio == NULL || ssl == NULL || !expect_host(ssl, host)) {
        SSL_free(ssl);
        BIO_free(bio);
        free(copy);
        free(tls);
        ERR_clear_error();
        return NULL;
    }
    *copy = fd;
    BIO_set_data(bio, copy);
    SSL_set_bio(ssl, bio, bio);
    SSL_set_connect_state(ssl);
    tls->ssl = ssl;
    return tls;
}

void redis_tls_end(struct redis_tls **tls)
{
    if (*tls != NULL) {
        SSL_free((*tls)->ssl);
        free(*tls);
        *tls = NULL;
    }
}

/* True: wait and do the same again. */
static bool has_to_wait(struct redis_tls *tls, int result)
{
    int error = SSL_get_error(tls->ssl, result);
    tls->waits_to_write = error == SSL_ERROR_WANT_WRITE;
    return error == SSL_ERROR_WANT_WRITE || error == SSL_ERROR_WANT_READ;
}

enum redis_tls_status redis_tls_handshake(struct redis_tls *tls, char why[REDIS_WHY_MAX])
{
    ERR_clear_error();
    int result = SSL_do_handshake(tls->ssl);
    tls->waits_to_write = false;
    if (result == 1) {
        return REDIS_TLS_DONE;
    }
    if (has_to_wait(tls, result)) {
        return REDIS_TLS_WAIT;
    }
    long verify = SSL_get_verify_result(tls->ssl);
    const char *reason = ERR_reason_error_string(ERR_peek_error());
    if (verify != X509_V_OK) {
        snprintf(why, REDIS_WHY_MAX, "its certificate is refused: %s",
                 X509_verify_cert_error_string(verify));
    } else {
        snprintf(why, REDIS_WHY_MAX, "it does not speak TLS with us: %s",
                 reason != NULL ? reason : "it closed the connection");
    }
    ERR_clear_error();
    return REDIS_TLS_FAILED;
}

static ssize_t result_of(struct redis_tls *tls, int result)
{
    tls->waits_to_write = false;
    if (result > 0) {
        return result;
    }
    if (has_to_wait(tls, result)) {
        errno = EAGAIN;
        return -1;
    }
    bool at_end = SSL_get_error(tls->ssl, result) == SSL_ERROR_ZERO_RETURN;
    errno = at_end || errno == 0 || errno == EAGAIN ? ECONNRESET : errno;
    ERR_clear_error();
    return at_end ? 0 : -1;
}

ssize_t redis_tls_read(struct redis_tls *tls, void *out, size_t size)
{
    ERR_clear_error();
    errno = 0;
    return result_of(tls, SSL_read(tls->ssl, out, size > INT_MAX ? INT_MAX : (int)size));
}

ssize_t redis_tls_write(struct redis_tls *tls, const void *bytes, size_t length)
{
    ERR_clear_error();
    errno = 0;
    return result_of(tls, SSL_write(tls->ssl, bytes, length > INT_MAX ? INT_MAX : (int)length));
}

bool redis_tls_waits_to_write(const struct redis_tls *tls)
{
    return tls->waits_to_write;
}
