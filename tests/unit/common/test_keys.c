#include "tests/support/test_tt.h"

#include "common/keys/keys.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

struct place {
    char dir[64]; /* a directory of its own for each test */
    char why[KEYS_WHY_MAX];
    char path[2][PATH_MAX];
};

static int make_place(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    strcpy(p->dir, "/tmp/abdada-keys-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    *state = p;
    return 0;
}

static int remove_place(void **state)
{
    struct place *p = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", p->dir);
    int code = system(command);
    free(p);
    return code;
}

/* One of two paths in the test's directory at a time. */
static const char *path(struct place *p, unsigned which, const char *name)
{
    stpcpy(stpcpy(stpcpy(p->path[which], p->dir), "/"), name);
    return p->path[which];
}

static void put(struct place *p, const char *name, const char *text, mode_t mode)
{
    FILE *file = fopen(path(p, 0, name), "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(p->path[0], mode), 0);
}

static void get(struct place *p, const char *name, char *text, size_t size)
{
    FILE *file = fopen(path(p, 0, name), "r");
    assert_non_null(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

static mode_t mode_of(struct place *p, const char *name)
{
    struct stat at;
    assert_int_equal(stat(path(p, 0, name), &at), 0);
    return at.st_mode & 07777;
}

static void move(struct place *p, const char *from, const char *to)
{
    assert_int_equal(rename(path(p, 0, from), path(p, 1, to)), 0);
}

static void make_ring(struct place *p)
{
    assert_int_equal(keys_make_ring(p->dir, p->why), ERR_OK);
}

#define says(p, text) assert_non_null(strstr((p)->why, text))

static void ring_has_a_server_and_a_user_of_each_role(void **state)
{
    struct place *p = *state;
    struct keys_pair server;
    struct keys_user *user;
    size_t count = 0;
    unsigned roles = 0;
    umask(0);
    make_ring(p);
    assert_int_equal(keys_load_server(p->dir, &server, p->why), ERR_OK);
    assert_int_equal(keys_load_allowed(p->dir, &user, &count, NULL, p->why), ERR_OK);
    assert_int_equal(count, KEYS_ROLES);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(user[i].name, keys_role_text(user[i].role));
        roles |= 1u << user[i].role;
        assert_ptr_equal(keys_find(user, count, user[i].public_key), &user[i]);
    }
    assert_int_equal(roles, (1u << KEYS_ROLES) - 1);
    for (unsigned r = 0; r < KEYS_ROLES; r++) {
        struct keys_client client;
        assert_int_equal(keys_load_client(p->dir, (enum keys_role)r, &client, p->why), ERR_OK);
        assert_memory_equal(client.server_key, server.public_key, KEYS_BYTES);
        const struct keys_user *u = keys_find(user, count, client.own.public_key);
        assert_non_null(u);
        assert_int_equal(u->role, r);
    }
    assert_null(keys_find(user, count, server.public_key));
    assert_null(keys_find(user, 0, user[0].public_key));
    free(user);
    assert_int_equal(mode_of(p, "server.secret"), 0600);
    assert_int_equal(mode_of(p, "worker.secret"), 0600);
    assert_int_equal(mode_of(p, "allowed"), 0700);
    assert_int_equal(mode_of(p, "."), 0700);
}

static void new_directory_is_its_owners_alone(void **state)
{
    struct place *p = *state;
    umask(0);
    assert_int_equal(keys_make_ring(path(p, 1, "new"), p->why), ERR_OK);
    assert_int_equal(mode_of(p, "new"), 0700);
    assert_int_equal(keys_make_ring(path(p, 1, "no/such"), p->why), ERR_ABSENT);
}

static void nothing_is_overwritten_and_nothing_left_behind(void **state)
{
    struct place *p = *state;
    bool is_allowed;
    char before[512], after[512];
    put(p, "monitor.secret", "mine", 0600);
    assert_int_equal(keys_make_ring(p->dir, p->why), ERR_EXIST);
    says(p, "monitor.secret: already there");
    assert_int_not_equal(access(path(p, 0, "worker.secret"), F_OK), 0);
    assert_int_not_equal(access(path(p, 0, "allowed/worker.public"), F_OK), 0);
    get(p, "monitor.secret", after, sizeof after);
    assert_string_equal(after, "mine");
    assert_int_equal(unlink(path(p, 0, "monitor.secret")), 0);
    /* Nor through a link: that its target is not there changes nothing. */
    assert_int_equal(symlink(path(p, 1, "elsewhere"), path(p, 0, "server.secret")), 0);
    assert_int_equal(keys_make_ring(p->dir, p->why), ERR_EXIST);
    assert_int_not_equal(access(path(p, 0, "elsewhere"), F_OK), 0);
    assert_int_equal(unlink(path(p, 0, "server.secret")), 0);
    assert_int_equal(keys_check_ring(p->dir, p->why), ERR_ABSENT);
    make_ring(p);
    get(p, "worker.secret", before, sizeof before);
    assert_int_equal(keys_make_user(p->dir, "worker", KEYS_WORKER, &is_allowed, p->why), ERR_EXIST);
    assert_int_equal(keys_make_ring(p->dir, p->why), ERR_EXIST);
    assert_int_equal(keys_check_ring(p->dir, p->why), ERR_OK);
    assert_int_equal(keys_check_user(p->dir, "worker", KEYS_WORKER, p->why), ERR_OK);
    assert_int_equal(keys_check_user(p->dir, "worker", KEYS_FRONT, p->why), ERR_EXIST);
    says(p, "already there");
    get(p, "worker.secret", after, sizeof after);
    assert_string_equal(before, after);
    /* The public file is there, the secret is not: no half of a pair stays. */
    put(p, "allowed/anna.public", "", 0644);
    assert_int_equal(keys_make_user(p->dir, "anna", KEYS_WORKER, &is_allowed, p->why), ERR_EXIST);
    assert_int_not_equal(access(path(p, 0, "anna.secret"), F_OK), 0);
}

static void one_more_user_is_let_in_or_waits_for_the_operator(void **state)
{
    struct place *p = *state;
    struct keys_user *user;
    struct keys_client client;
    size_t count;
    bool is_allowed = false;
    make_ring(p);
    assert_int_equal(keys_make_user(p->dir, "anna-2.b_c", KEYS_FRONT, &is_allowed, p->why), ERR_OK);
    assert_true(is_allowed);
    assert_int_equal(keys_load_allowed(p->dir, &user, &count, NULL, p->why), ERR_OK);
    assert_int_equal(count, KEYS_ROLES + 1);
    free(user);
    assert_int_equal(keys_make_user(path(p, 1, "hers"), "anna", KEYS_FRONT, &is_allowed, p->why),
                     ERR_OK);
    assert_false(is_allowed);
    assert_int_equal(access(path(p, 0, "hers/anna.public"), F_OK), 0);
    assert_int_equal(keys_load_client(path(p, 1, "hers"), KEYS_FRONT, &client, p->why), ERR_ABSENT);
    says(p, "hers/server.public");
}

static void names_of_users_are_checked(void **state)
{
    struct place *p = *state;
    static const char *const bad[] = {
        "",    ".x",     "server", "a/b",      "..",
        "a b", "worker", "a\n",    "\xc3\xa4", "12345678901234567890123456789012"};
    bool is_allowed;
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(keys_make_user(p->dir, bad[i], KEYS_FRONT, &is_allowed, p->why),
                         ERR_SYNTAX);
    }
}

static void secrets_that_others_may_read_are_refused(void **state)
{
    struct place *p = *state;
    struct keys_pair server;
    struct keys_client client;
    struct keys_user *user;
    size_t count;
    static const mode_t open_modes[] = {0640, 0604, 0620, 0602, 0610, 0644};
    make_ring(p);
    for (unsigned i = 0; i < sizeof open_modes / sizeof open_modes[0]; i++) {
        chmod(path(p, 0, "server.secret"), open_modes[i]);
        assert_int_equal(keys_load_server(p->dir, &server, p->why), ERR_RANGE);
        says(p, "server.secret: others than its owner may read it: chmod 600");
        chmod(path(p, 0, "worker.secret"), open_modes[i]);
        assert_int_equal(keys_load_client(p->dir, KEYS_WORKER, &client, p->why), ERR_RANGE);
        says(p, "worker.secret: others");
    }
    chmod(path(p, 0, "server.secret"), 0400);
    assert_int_equal(keys_load_server(p->dir, &server, p->why), ERR_OK);
    /* Who may write public keys may let themselves in. */
    chmod(path(p, 0, "allowed/worker.public"), 0664);
    assert_int_equal(keys_load_allowed(p->dir, &user, &count, NULL, p->why), ERR_RANGE);
    says(p, "allowed/worker.public is writable by others; run chmod go-w ");
    chmod(path(p, 0, "allowed/worker.public"), 0644);
    chmod(path(p, 0, "allowed"), 0777);
    assert_int_equal(keys_load_allowed(p->dir, &user, &count, NULL, p->why), ERR_RANGE);
    chmod(path(p, 0, "allowed"), 0755);
    assert_int_equal(keys_load_allowed(p->dir, &user, &count, NULL, p->why), ERR_OK);
    free(user);
    chmod(path(p, 0, "server.public"), 0646);
    assert_int_equal(keys_load_client(p->dir, KEYS_FRONT, &client, p->why), ERR_RANGE);
    chmod(path(p, 0, "server.public"), 0644);
    chmod(p->dir, 0770);
    assert_int_equal(keys_load_client(p->dir, KEYS_FRONT, &client, p->why), ERR_RANGE);
    assert_int_equal(keys_load_server(p->dir, &server, p->why), ERR_RANGE);
}

#define PUBLIC_A "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID" /* RFC 26's examples */
#define SECRET_A "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs"
#define PUBLIC_B "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"

static void wrong_files_are_refused_and_no_secret_repeated(void **state)
{
    struct place *p = *state;
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "should have the lines"},
        {"public " PUBLIC_A "\n", "should have the lines public, secret"},
        {"secret " SECRET_A "\n", "should have the lines"},
        {"public " PUBLIC_A "\nsecret " SECRET_A "\nrole worker\n", "and no others"},
        {"public " PUBLIC_B "\nsecret " SECRET_A "\n", "not that of the secret"},
        {"public " PUBLIC_A "\nsecret " SECRET_A "x\n", ":2: not a key"},
        {"public " PUBLIC_A "\nsecret \x01:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs\n",
         ":2: not a key"},
        {"public " PUBLIC_A "\nsecret short\n", ":2: not a key"},
        {"public " PUBLIC_A "\nsecret\n", ":2: not role, public or secret"},
        {"public " PUBLIC_A "\nsecret " SECRET_A " " SECRET_A "\n", ":2: not role"},
        {"public " PUBLIC_A "\npublic " PUBLIC_A "\n", ":2: the field is there twice"},
        {SECRET_A "\n", ":1: not role, public or secret"},
        {"role king\n", ":1: a role is"},
    };
    struct keys_pair pair, zero = {0};
    memset(&pair, 0, sizeof pair);
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        put(p, "server.secret", bad[i].text, 0600);
        assert_int_equal(keys_load_server(p->dir, &pair, p->why), ERR_RANGE);
        says(p, bad[i].says);
        assert_null(strstr(p->why, "D:)Q"));
        assert_null(strchr(p->why, '\n'));
        assert_memory_equal(&pair, &zero, sizeof pair);
    }
    /* Comments, empty lines, other ends of lines; the last line may have no end. */
    put(p, "server.secret", "# a key\r\n\n  #x\n\tpublic\t" PUBLIC_A "  \r\nsecret " SECRET_A,
        0600);
    assert_int_equal(keys_load_server(p->dir, &pair, p->why), ERR_OK);
    uint8_t expected[KEYS_BYTES];
    zmq_z85_decode(expected, SECRET_A);
    assert_memory_equal(pair.secret_key, expected, KEYS_BYTES);
    keys_wipe(&pair, sizeof pair);
    assert_memory_equal(&pair, &zero, sizeof pair);
}

static void what_is_not_a_small_file_is_refused(void **state)
{
    struct place *p = *state;
    struct keys_pair pair;
    assert_int_equal(keys_load_server(p->dir, &pair, p->why), ERR_ABSENT);
    says(p, "server.secret: No such file");
    assert_int_equal(keys_load_server(path(p, 1, "none"), &pair, p->why), ERR_ABSENT);
    assert_int_equal(mkfifo(path(p, 0, "server.secret"), 0600), 0);
    assert_int_equal(keys_load_server(p->dir, &pair, p->why), ERR_RANGE); /* and does not wait */
    says(p, "not a file");
    assert_int_equal(unlink(p->path[0]), 0);
    assert_int_equal(mkdir(path(p, 0, "server.secret"), 0700), 0);
    assert_int_equal(keys_load_server(p->dir, &pair, p->why), ERR_RANGE);
    assert_int_equal(rmdir(p->path[0]), 0);
    put(p, "server.secret", "", 0600);
    assert_int_equal(truncate(path(p, 0, "server.secret"), (off_t)1 << 40), 0); /* has holes only */
    assert_int_equal(keys_load_server(p->dir, &pair, p->why), ERR_RANGE);
    says(p, "not a file of keys");
    assert_int_equal(truncate(path(p, 0, "server.secret"), 1), 0);
    assert_int_equal(keys_load_server(p->dir, &pair, p->why), ERR_RANGE);
    char longest[PATH_MAX + 8];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_not_equal(keys_load_server(longest, &pair, p->why), ERR_OK);
}

enum { NOBODY = 65534 };

static void give(struct place *p, const char *name, unsigned owner)
{
    if (geteuid() != 0) {
        skip(); /* only root can give files away */
    }
    assert_int_equal(chown(path(p, 0, name), owner, (gid_t)-1), 0);
}

static void assert_refused(struct place *p, enum err err, const char *of)
{
    assert_int_equal(err, ERR_RANGE);
    says(p, of);
    says(p, "belongs to another user");
}

/* As a server and a worker together. */
static enum err load_all(const char *ring, char *why)
{
    struct keys_pair pair;
    struct keys_client client;
    struct keys_user *user;
    size_t count;
    enum err err = keys_load_server(ring, &pair, why);
    err = err != ERR_OK ? err : keys_load_client(ring, KEYS_WORKER, &client, why);
    err = err != ERR_OK ? err : keys_load_allowed(ring, &user, &count, NULL, why);
    if (err == ERR_OK) {
        free(user);
    }
    return err;
}

/* Secrets that a system mounts are often links. What is at their end counts, and the way there. */
static void links_are_followed_to_what_they_name(void **state)
{
    struct place *p = *state;
    make_ring(p);
    assert_int_equal(mkdir(path(p, 0, "mounts"), 0755), 0);
    move(p, "server.secret", "mounts/secret");
    assert_int_equal(symlink("mounts/secret", path(p, 0, "server.secret")), 0);
    assert_int_equal(load_all(p->dir, p->why), ERR_OK);
    chmod(path(p, 0, "mounts/secret"), 0644);
    assert_int_equal(load_all(p->dir, p->why), ERR_RANGE);
    chmod(p->path[0], 0600);
    give(p, "mounts", NOBODY);
    assert_refused(p, load_all(p->dir, p->why), "/mounts");
}

/* What another user owns, that user may change at any time, whatever the rights say now. */
static void keys_of_another_owner_are_refused(void **state)
{
    struct place *p = *state;
    static const char *const names[] = {"above/ring/server.secret",
                                        "above/ring/server.public",
                                        "above/ring/worker.secret",
                                        "above/ring/allowed/worker.public",
                                        "above/ring/allowed",
                                        "above/ring",
                                        "above"};
    char ring[PATH_MAX];
    bool is_allowed;
    assert_int_equal(mkdir(path(p, 0, "above"), 0755), 0);
    stpcpy(stpcpy(ring, p->path[0]), "/ring");
    assert_int_equal(keys_make_ring(ring, p->why), ERR_OK);
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        give(p, names[i], NOBODY);
        assert_refused(p, load_all(ring, p->why), names[i]);
        give(p, names[i], 0);
    }
    assert_int_equal(load_all(ring, p->why), ERR_OK);
    give(p, "above", NOBODY);
    assert_refused(p, keys_make_user(ring, "anna", KEYS_FRONT, &is_allowed, p->why), "above");
}

/* Anyone who may write a folder can put another ring in the place of the one in it. */
static void keys_below_a_folder_that_others_may_write_are_refused(void **state)
{
    struct place *p = *state;
    char ring[PATH_MAX], wanted[2 * PATH_MAX + 64];
    bool is_allowed;
    static const mode_t open_modes[] = {0777, 0775, 0757};
    assert_int_equal(mkdir(path(p, 0, "above"), 0755), 0);
    stpcpy(stpcpy(ring, p->path[0]), "/ring");
    assert_int_equal(keys_make_ring(ring, p->why), ERR_OK);
    snprintf(wanted, sizeof wanted, "%s is writable by others; run chmod go-w %s", p->path[0],
             p->path[0]);
    for (unsigned i = 0; i < sizeof open_modes / sizeof open_modes[0]; i++) {
        assert_int_equal(chmod(path(p, 0, "above"), open_modes[i]), 0);
        assert_int_equal(load_all(ring, p->why), ERR_RANGE);
        assert_string_equal(p->why, wanted);
        assert_int_equal(keys_make_user(ring, "anna", KEYS_FRONT, &is_allowed, p->why), ERR_RANGE);
    }
    assert_int_equal(chmod(path(p, 0, "above"), 01777), 0); /* as /tmp */
    assert_int_equal(load_all(ring, p->why), ERR_OK);
}

static void no_ring_is_made_that_would_be_refused(void **state)
{
    struct place *p = *state;
    bool is_allowed;
    umask(002);
    assert_int_equal(mkdir(path(p, 0, "work"), 0777), 0);
    assert_int_equal(keys_make_ring(path(p, 0, "work/keys"), p->why), ERR_RANGE);
    says(p, "/work is writable by others; run chmod go-w ");
    assert_int_not_equal(access(path(p, 0, "work/keys"), F_OK), 0);
    assert_int_equal(keys_make_user(p->path[0], "anna", KEYS_FRONT, &is_allowed, p->why),
                     ERR_RANGE);
    assert_int_not_equal(access(p->path[0], F_OK), 0);
    assert_int_equal(chmod(path(p, 0, "work"), 0755), 0);
    assert_int_equal(keys_make_ring(path(p, 0, "work/keys"), p->why), ERR_OK);
    assert_int_equal(load_all(p->path[0], p->why), ERR_OK);
}

static void a_ring_that_programs_would_refuse_is_not_there(void **state)
{
    struct place *p = *state;
    make_ring(p);
    chmod(path(p, 0, "monitor.secret"), 0640);
    assert_int_equal(keys_check_ring(p->dir, p->why), ERR_RANGE);
    says(p, "monitor.secret: others than its owner may read it");
    chmod(p->path[0], 0600);
    put(p, "server.secret", "public " PUBLIC_B "\nsecret " SECRET_A "\n", 0600);
    put(p, "server.public", "public " PUBLIC_B "\n", 0644);
    assert_int_equal(keys_check_ring(p->dir, p->why), ERR_RANGE);
    says(p, "server.secret: the public key is not that of the secret one");
}

/* Who is not root believes root and their own files. */
static void keys_of_root_and_of_oneself_are_taken(void **state)
{
    struct place *p = *state;
    struct keys_user *user = NULL;
    size_t count;
    make_ring(p);
    chmod(p->dir, 0755);
    chmod(path(p, 0, "allowed"), 0755);
    for (unsigned other = 0; other < 2; other++) {
        give(p, "allowed/worker.public", NOBODY - other);
        assert_int_equal(seteuid(NOBODY), 0);
        enum err err = keys_load_allowed(p->dir, &user, &count, NULL, p->why);
        assert_int_equal(seteuid(0), 0);
        assert_int_equal(err, other ? ERR_RANGE : ERR_OK);
    }
    says(p, "allowed/worker.public: belongs to another user");
    free(user);
}

static void unreadable_directory_is_said(void **state)
{
    struct place *p = *state;
    struct keys_client client;
    struct keys_user *user;
    size_t count;
    bool is_allowed;
    make_ring(p);
    if (geteuid() == 0) {
        /* Rights do not bind this user: the same errors come from what is no directory. */
        put(p, "plain", "", 0600);
        assert_int_not_equal(keys_load_allowed(path(p, 1, "plain"), &user, &count, NULL, p->why),
                             ERR_OK);
        assert_int_not_equal(keys_make_user(p->path[1], "anna", KEYS_FRONT, &is_allowed, p->why),
                             ERR_OK);
        return;
    }
    chmod(path(p, 0, "allowed"), 0);
    assert_int_equal(keys_load_allowed(p->dir, &user, &count, NULL, p->why), ERR_IO);
    assert_int_equal(keys_make_user(p->dir, "anna", KEYS_FRONT, &is_allowed, p->why), ERR_IO);
    chmod(path(p, 0, "allowed"), 0700);
    chmod(p->dir, 0);
    assert_int_equal(keys_load_client(p->dir, KEYS_FRONT, &client, p->why), ERR_IO);
    says(p, "Permission denied");
    chmod(p->dir, 0700);
}

static void expect_client(struct place *p, enum keys_role role, const char *name)
{
    struct keys_client client;
    char text[512], z85[64];
    assert_int_equal(keys_load_client(p->dir, role, &client, p->why), ERR_OK);
    get(p, name, text, sizeof text);
    zmq_z85_encode(z85, client.own.secret_key, KEYS_BYTES);
    assert_non_null(strstr(text, z85));
}

static void make_user(struct place *p, const char *name, enum keys_role role)
{
    bool is_allowed;
    assert_int_equal(keys_make_user(p->dir, name, role, &is_allowed, p->why), ERR_OK);
}

static void key_that_suits_is_found(void **state)
{
    struct place *p = *state;
    struct keys_client client;
    put(p, "server.public", "public " PUBLIC_A "\n", 0644);
    assert_int_equal(keys_load_client(p->dir, KEYS_WORKER, &client, p->why), ERR_ABSENT);
    says(p, "has no key of the role worker");
    make_user(p, "root", KEYS_ADMINISTRATOR);
    expect_client(p, KEYS_WORKER, "root.secret");
    expect_client(p, KEYS_MONITOR, "root.secret");
    make_user(p, "anna", KEYS_FRONT);
    expect_client(p, KEYS_FRONT, "anna.secret");
    expect_client(p, KEYS_MONITOR, "anna.secret");
    expect_client(p, KEYS_WORKER, "root.secret");
    make_user(p, "otto", KEYS_FRONT);
    assert_int_equal(keys_load_client(p->dir, KEYS_FRONT, &client, p->why), ERR_RANGE);
    says(p, "has two keys of the role front-end");
    make_user(p, "front-end", KEYS_FRONT);
    expect_client(p, KEYS_FRONT, "front-end.secret");
    make_user(p, "eyes", KEYS_MONITOR);
    expect_client(p, KEYS_MONITOR, "eyes.secret");
    move(p, "eyes.secret", "worker.secret");
    assert_int_equal(keys_load_client(p->dir, KEYS_WORKER, &client, p->why), ERR_RANGE);
    says(p, "worker.secret: its role is monitor");
}

static void monitors_key_is_no_front_ends(void **state)
{
    struct place *p = *state;
    struct keys_client client;
    make_ring(p);
    unlink(path(p, 0, "front-end.secret"));
    unlink(path(p, 0, "administrator.secret"));
    assert_int_equal(keys_load_client(p->dir, KEYS_FRONT, &client, p->why), ERR_ABSENT);
    unlink(path(p, 0, "server.secret"));
    expect_client(p, KEYS_MONITOR, "monitor.secret");
}

static void users_are_sorted_and_found(void **state)
{
    struct place *p = *state;
    struct keys_user *user;
    struct keys_client client;
    char name[16];
    size_t count = 0;
    enum { USERS = 200 };
    make_ring(p);
    for (unsigned i = 0; i < USERS; i++) {
        snprintf(name, sizeof name, "u%u", i);
        make_user(p, name, KEYS_WORKER);
    }
    put(p, "allowed/notes.txt", "no key", 0644);
    put(p, "allowed/.hidden.public", "no key", 0644);
    put(p, "allowed/.public", "no key", 0644);
    assert_int_equal(keys_load_allowed(p->dir, &user, &count, NULL, p->why), ERR_OK);
    assert_int_equal(count, USERS + KEYS_ROLES);
    for (size_t i = 1; i < count; i++) {
        assert_true(memcmp(user[i - 1].public_key, user[i].public_key, KEYS_BYTES) < 0);
    }
    assert_int_equal(keys_load_client(p->dir, KEYS_FRONT, &client, p->why), ERR_OK);
    const struct keys_user *u = keys_find(user, count, client.own.public_key);
    assert_non_null(u);
    assert_int_equal(u->role, KEYS_FRONT);
    free(user);
}

static void wrong_file_among_the_allowed_is_named(void **state)
{
    struct place *p = *state;
    struct keys_user *user = NULL;
    size_t count = 7;
    make_ring(p);
    put(p, "allowed/long-name-of-a-user-that-is-cut-at-31.public",
        "public " PUBLIC_A "\nrole worker\n", 0644);
    assert_int_equal(keys_load_allowed(p->dir, &user, &count, NULL, p->why), ERR_OK);
    uint8_t key[KEYS_BYTES];
    zmq_z85_decode(key, PUBLIC_A);
    assert_string_equal(keys_find(user, count, key)->name, "long-name-of-a-user-that-is-cut");
    free(user);
    user = NULL;
    count = 7;
    put(p, "allowed/again.public", "role monitor\npublic " PUBLIC_A "\n", 0644);
    assert_int_equal(keys_load_allowed(p->dir, &user, &count, NULL, p->why), ERR_RANGE);
    says(p, "have the same key");
    put(p, "allowed/again.public", "public " PUBLIC_B "\n", 0644);
    assert_int_equal(keys_load_allowed(p->dir, &user, &count, NULL, p->why), ERR_RANGE);
    says(p, "again.public: should have the lines role, public");
    put(p, "allowed/again.public", "role worker\npublic " PUBLIC_A "\nsecret " SECRET_A "\n", 0600);
    assert_int_equal(keys_load_allowed(p->dir, &user, &count, NULL, p->why), ERR_RANGE);
    says(p, "again.public: has a secret");
    assert_null(user);
    assert_int_equal(count, 7);
}

static void too_many_users_are_refused(void **state)
{
    struct place *p = *state;
    struct keys_user *user = NULL;
    size_t count;
    char name[32], text[128], z85[64];
    uint8_t key[KEYS_BYTES] = {0};
    assert_int_equal(mkdir(path(p, 1, "allowed"), 0700), 0);
    for (unsigned i = 0; i <= KEYS_USERS_MAX; i++) {
        key[0] = (uint8_t)i;
        key[1] = (uint8_t)(i >> 8);
        zmq_z85_encode(z85, key, sizeof key);
        snprintf(name, sizeof name, "allowed/%u.public", i);
        snprintf(text, sizeof text, "role worker\npublic %s\n", z85);
        put(p, name, text, 0644);
    }
    assert_int_equal(keys_load_allowed(p->dir, &user, &count, NULL, p->why), ERR_RANGE);
    says(p, "more than 4096 users");
    unlink(path(p, 0, "allowed/77.public"));
    assert_int_equal(keys_load_allowed(p->dir, &user, &count, NULL, p->why), ERR_OK);
    assert_int_equal(count, KEYS_USERS_MAX);
    free(user);
}

static void roles_have_texts(void **state)
{
    (void)state;
    enum keys_role role = KEYS_MONITOR;
    for (unsigned i = 0; i < KEYS_ROLES; i++) {
        assert_int_equal(keys_read_role(keys_role_text((enum keys_role)i), &role), ERR_OK);
        assert_int_equal(role, i);
    }
    assert_int_equal(keys_read_role("king", &role), ERR_SYNTAX);
    assert_int_equal(keys_read_role("", &role), ERR_SYNTAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_place, remove_place)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ring_has_a_server_and_a_user_of_each_role),
        TEST(new_directory_is_its_owners_alone),
        TEST(nothing_is_overwritten_and_nothing_left_behind),
        TEST(one_more_user_is_let_in_or_waits_for_the_operator),
        TEST(names_of_users_are_checked),
        TEST(secrets_that_others_may_read_are_refused),
        TEST(wrong_files_are_refused_and_no_secret_repeated),
        TEST(what_is_not_a_small_file_is_refused),
        TEST(links_are_followed_to_what_they_name),
        TEST(keys_of_another_owner_are_refused),
        TEST(keys_below_a_folder_that_others_may_write_are_refused),
        TEST(no_ring_is_made_that_would_be_refused),
        TEST(a_ring_that_programs_would_refuse_is_not_there),
        TEST(keys_of_root_and_of_oneself_are_taken),
        TEST(unreadable_directory_is_said),
        TEST(key_that_suits_is_found),
        TEST(monitors_key_is_no_front_ends),
        TEST(users_are_sorted_and_found),
        TEST(wrong_file_among_the_allowed_is_named),
        TEST(too_many_users_are_refused),
        TEST(roles_have_texts),
    };
    return cmocka_run_group_tests_name("keys", tests, NULL, NULL);
}
