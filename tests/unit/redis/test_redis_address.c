/* Addresses of Redis servers and clusters, and what the environment adds. */
#include "common/redis/redis_address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void good_addresses_are_read(void **state)
{
    static const struct {
        const char *url, *text, *user, *password;
        bool is_tls, is_cluster;
        unsigned nodes, db;
    } good[] = {
        {"redis://a", "redis://a:6379", "", "", false, false, 1, 0},
        {"REDIS://a:1/", "redis://a:1", "", "", false, false, 1, 0},
        {"rediss://a.b-c_d.example:65535/15", "rediss://a.b-c_d.example:65535/15", "", "", true,
         false, 1, 15},
        {"redis://[::1]", "redis://[::1]:6379", "", "", false, false, 1, 0},
        {"redis://[fe80::1%eth0]:7/1", "redis://[fe80::1%eth0]:7/1", "", "", false, false, 1, 1},
        {"redis://anna@h", "redis://h:6379", "anna", "", false, false, 1, 0},
        {"redis://:secret@h", "redis://h:6379", "", "secret", false, false, 1, 0},
        {"redis://anna:secret@h:1", "redis://h:1", "anna", "secret", false, false, 1, 0},
        {"redis://a%40b:%3a%2F%25@h:1", "redis://h:1", "a@b", ":/%", false, false, 1, 0},
        {"redis://a:b:c@d@h:1", "redis://h:1", "a", "b:c@d", false, false, 1, 0},
        {"redis://@h", "redis://h:6379", "", "", false, false, 1, 0},
        {"redis+cluster://a,b:2,[::3]:4", "redis+cluster://a:6379,b:2,[::3]:4", "", "", false, true,
         3, 0},
        {"redis+cluster://a, b:2 ,[::3]:4", "redis+cluster://a:6379,b:2,[::3]:4", "", "", false,
         true, 3, 0},
        {"rediss+cluster://u:p@a/0", "rediss+cluster://a:6379", "u", "p", true, true, 1, 0},
    };
    (void)state;
    for (unsigned i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct redis_address a;
        char why[REDIS_WHY_MAX] = "", text[REDIS_TEXT_MAX];
        assert_int_equal(redis_address_parse(&a, good[i].url, why), ERR_OK);
        assert_string_equal(why, "");
        redis_address_text(&a, text);
        assert_string_equal(text, good[i].text);
        assert_string_equal(a.user, good[i].user);
        assert_string_equal(a.password, good[i].password);
        assert_int_equal(a.is_tls, good[i].is_tls);
        assert_int_equal(a.is_cluster, good[i].is_cluster);
        assert_int_equal(a.nodes, good[i].nodes);
        assert_int_equal(a.db, good[i].db);
        redis_address_wipe(&a);
        assert_string_equal(a.password, "");
    }
}

static void bad_addresses_are_refused_and_never_repeated(void **state)
{
    static const struct {
        const char *url, *says;
    } bad[] = {
        {"", "begins with redis://"},
        {"hunter2", "begins with redis://"},
        {"redis:/hunter2@h", "begins with redis://"},
        {"http://hunter2@h", "begins with redis://"},
        {"redis://", "no host"},
        {"redis:///1", "no host"},
        {"redis://hunter2@", "no host"},
        {"redis://hunter2@/1", "no host"},
        {"redis://::1", "node 1 is not HOST"},
        {"redis://[::1", "node 1 is not HOST"},
        {"redis://[::1]x", "node 1 is not HOST"},
        {"redis://[]:1", "node 1 is not HOST"},
        {"redis://h:", "node 1 is not HOST"},
        {"redis://h:0", "node 1 is not HOST"},
        {"redis://h:65536", "node 1 is not HOST"},
        {"redis://h:-1", "node 1 is not HOST"},
        {"redis://h:x", "node 1 is not HOST"},
        {"redis://:1", "node 1 is not HOST"},
        {"redis://a b", "node 1 is not HOST"},
        {"redis://a\n", "node 1 is not HOST"},
        {"redis://a?db=1", "node 1 is not HOST"},
        {"redis://a%41", "node 1 is not HOST"},
        {"redis://u:hun/ter2@h", "node 1 is not HOST"},
        {"redis://a,b", "redis+cluster://"},
        {"redis+cluster://a,", "node 2 is not HOST"},
        {"redis+cluster://,a", "node 1 is not HOST"},
        {"redis+cluster://a,,b", "node 2 is not HOST"},
        {"redis+cluster://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "more than 16 nodes"},
        {"redis+cluster://a/1", "database 0 alone"},
        {"redis://a/x", "number of a database"},
        {"redis://a/-1", "number of a database"},
        {"redis://a/1/2", "number of a database"},
        {"redis://a/1 ", "number of a database"},
        {"redis://a/65536", "number of a database"},
        {"redis://u:hunter2%@h", "hexadecimal"},
        {"redis://u:hunter2%4@h", "hexadecimal"},
        {"redis://u:hunter2%zz@h", "hexadecimal"},
        {"redis://u:hunter2%00@h", "hexadecimal"},
        {"redis://hunter2%g@h", "hexadecimal"},
    };
    (void)state;
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct redis_address a, before;
        char why[REDIS_WHY_MAX] = "";
        memset(&a, 7, sizeof a);
        memset(&before, 7, sizeof before);
        if (redis_address_parse(&a, bad[i].url, why) != ERR_RANGE ||
            strstr(why, bad[i].says) == NULL) {
            fail_msg("%s: %s", bad[i].url, why);
        }
        assert_null(strstr(why, "unter2"));
        assert_null(strstr(why, "ter2"));
        assert_null(strchr(why, '\n'));
        assert_memory_equal(&a, &before, sizeof a);
    }
}

static void long_texts_have_limits(void **state)
{
    struct redis_address a;
    char url[8192] = "redis://u:", why[REDIS_WHY_MAX], text[REDIS_TEXT_MAX];
    (void)state;
    size_t n = strlen(url);
    memset(url + n, 'x', REDIS_LOGIN_MAX - 1);
    strcpy(url + n + REDIS_LOGIN_MAX - 1, "@h");
    assert_int_equal(redis_address_parse(&a, url, why), ERR_OK);
    assert_int_equal(strlen(a.password), REDIS_LOGIN_MAX - 1);
    strcpy(url + n + REDIS_LOGIN_MAX - 1, "x@h");
    assert_int_equal(redis_address_parse(&a, url, why), ERR_RANGE);
    /* The longest hosts, as many as may be: the text is cut, and still one. */
    strcpy(url, "redis+cluster://");
    for (unsigned i = 0; i < REDIS_NODES_MAX; i++) {
        n = strlen(url);
        memset(url + n, 'a' + (int)i, OPTIONS_HOST_MAX - 1);
        strcpy(url + n + OPTIONS_HOST_MAX - 1, i + 1 < REDIS_NODES_MAX ? ":65535," : ":65535");
    }
    assert_int_equal(redis_address_parse(&a, url, why), ERR_OK);
    assert_int_equal(a.nodes, REDIS_NODES_MAX);
    redis_address_text(&a, text);
    assert_true(strlen(text) < REDIS_TEXT_MAX);
    assert_string_equal(text + strlen(text) - 4, ",...");
    memset(url + strlen("redis+cluster://"), 'x', OPTIONS_HOST_MAX);
    assert_int_equal(redis_address_parse(&a, url, why), ERR_RANGE);
}

/* ---- the environment ---- */

struct place {
    char dir[64], path[128], why[REDIS_WHY_MAX];
    struct redis_address address;
};

static int make_place(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    assert_non_null(p);
    strcpy(p->dir, "/tmp/abdada-address-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    snprintf(p->path, sizeof p->path, "%s/password", p->dir);
    unsetenv("ABDADA_REDIS_PASSWORD");
    unsetenv("ABDADA_REDIS_PASSWORD_FILE");
    unsetenv("ABDADA_REDIS_CA");
    assert_int_equal(redis_address_parse(&p->address, "rediss://u@h", p->why), ERR_OK);
    *state = p;
    return 0;
}

static int remove_place(void **state)
{
    struct place *p = *state;
    unlink(p->path);
    rmdir(p->path);
    rmdir(p->dir);
    free(p);
    return 0;
}

static void write_file(const struct place *p, const char *text, size_t length, mode_t mode)
{
    FILE *file = fopen(p->path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(p->path, mode), 0);
    setenv("ABDADA_REDIS_PASSWORD_FILE", p->path, 1);
}

static void says(struct place *p, enum err err, const char *text)
{
    struct redis_address before = p->address;
    p->why[0] = '\0';
    assert_int_equal(redis_address_environment(&p->address, p->why), err);
    if (strstr(p->why, text) == NULL) {
        fail_msg("%s, not %s", p->why, text);
    }
    assert_null(strstr(p->why, "hunter2"));
    assert_memory_equal(&p->address, &before, sizeof before);
}

static void password_comes_from_the_environment(void **state)
{
    struct place *p = *state;
    assert_int_equal(redis_address_environment(&p->address, p->why), ERR_OK);
    assert_string_equal(p->address.password, "");
    setenv("ABDADA_REDIS_PASSWORD", "hunter2", 1);
    assert_int_equal(redis_address_environment(&p->address, p->why), ERR_OK);
    assert_string_equal(p->address.password, "hunter2");
    setenv("ABDADA_REDIS_PASSWORD", "another", 1); /* that of the address wins */
    assert_int_equal(redis_address_environment(&p->address, p->why), ERR_OK);
    assert_string_equal(p->address.password, "hunter2");
    p->address.password[0] = '\0';
    char longest[REDIS_LOGIN_MAX + 1];
    memset(longest, 'x', REDIS_LOGIN_MAX);
    longest[REDIS_LOGIN_MAX] = '\0';
    setenv("ABDADA_REDIS_PASSWORD", longest, 1);
    says(p, ERR_RANGE, "ABDADA_REDIS_PASSWORD: more than");
}

static void password_comes_from_a_file_of_the_owner_alone(void **state)
{
    struct place *p = *state;
    static const mode_t open_modes[] = {0640, 0604, 0620, 0602, 0610, 0644, 0666};
    for (unsigned i = 0; i < sizeof open_modes / sizeof open_modes[0]; i++) {
        write_file(p, "hunter2\n", 8, open_modes[i]);
        says(p, ERR_IO, "others than its owner may read it: chmod 600");
    }
    if (geteuid() == 0) { /* who may give files away */
        write_file(p, "hunter2\n", 8, 0600);
        assert_int_equal(chown(p->path, 65534, (gid_t)-1), 0);
        says(p, ERR_IO, "belongs to another user");
        assert_int_equal(chown(p->path, 0, (gid_t)-1), 0);
    }
    static const char *const good[] = {"hunter2", "hunter2\n", "hunter2\r\n", "hunter2\nmore\n"};
    for (unsigned i = 0; i < sizeof good / sizeof good[0]; i++) {
        p->address.password[0] = '\0';
        write_file(p, good[i], strlen(good[i]), i % 2 == 0 ? 0600 : 0400);
        assert_int_equal(redis_address_environment(&p->address, p->why), ERR_OK);
        assert_string_equal(p->address.password, "hunter2");
        chmod(p->path, 0600);
    }
    setenv("ABDADA_REDIS_PASSWORD", "this one", 1);
    p->address.password[0] = '\0';
    assert_int_equal(redis_address_environment(&p->address, p->why), ERR_OK);
    assert_string_equal(p->address.password, "this one");
}

static void files_that_are_no_passwords_are_refused(void **state)
{
    struct place *p = *state;
    char longest[4096];
    setenv("ABDADA_REDIS_PASSWORD_FILE", p->path, 1);
    says(p, ERR_IO, "No such file");
    write_file(p, "", 0, 0600);
    says(p, ERR_RANGE, "is not a password");
    write_file(p, "\nhunter2\n", 9, 0600);
    says(p, ERR_RANGE, "is not a password");
    write_file(p, "hun\0ter2", 8, 0600);
    says(p, ERR_RANGE, "is not a password");
    memset(longest, 'x', sizeof longest);
    write_file(p, longest, sizeof longest, 0600);
    says(p, ERR_RANGE, "is not a password");
    write_file(p, longest, REDIS_LOGIN_MAX, 0600);
    says(p, ERR_RANGE, "is not a password");
    write_file(p, longest, REDIS_LOGIN_MAX - 1, 0600);
    assert_int_equal(redis_address_environment(&p->address, p->why), ERR_OK);
    p->address.password[0] = '\0';
    assert_int_equal(unlink(p->path), 0);
    assert_int_equal(mkfifo(p->path, 0600), 0);
    says(p, ERR_IO, "not a file"); /* and does not wait */
    assert_int_equal(unlink(p->path), 0);
    assert_int_equal(mkdir(p->path, 0700), 0);
    says(p, ERR_IO, "not a file");
}

static void certificates_are_those_of_the_environment(void **state)
{
    struct place *p = *state;
    setenv("ABDADA_REDIS_CA", p->path, 1);
    says(p, ERR_IO, "ABDADA_REDIS_CA: ");
    write_file(p, "hunter2", 7, 0646);
    unsetenv("ABDADA_REDIS_PASSWORD_FILE");
    says(p, ERR_IO, "ABDADA_REDIS_CA: ");
    says(p, ERR_IO, "is writable by others; run chmod go-w");
    chmod(p->path, 0644); /* no secret */
    assert_int_equal(redis_address_environment(&p->address, p->why), ERR_OK);
    assert_string_equal(p->address.ca_file, p->path);
    char longest[REDIS_TEXT_MAX + 1];
    memset(longest, 'x', REDIS_TEXT_MAX);
    longest[REDIS_TEXT_MAX] = '\0';
    setenv("ABDADA_REDIS_CA", longest, 1);
    says(p, ERR_RANGE, "too long");
    /* Without TLS they are of no use, and not asked for. */
    assert_int_equal(redis_address_parse(&p->address, "redis://h", p->why), ERR_OK);
    assert_int_equal(redis_address_environment(&p->address, p->why), ERR_OK);
    assert_string_equal(p->address.ca_file, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_place, remove_place)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_addresses_are_read),
        cmocka_unit_test(bad_addresses_are_refused_and_never_repeated),
        cmocka_unit_test(long_texts_have_limits),
        TEST(password_comes_from_the_environment),
        TEST(password_comes_from_a_file_of_the_owner_alone),
        TEST(files_that_are_no_passwords_are_refused),
        TEST(certificates_are_those_of_the_environment),
    };
    return cmocka_run_group_tests_name("redis address", tests, NULL, NULL);
}
