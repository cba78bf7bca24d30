/* Messages between the threads of a process, and letters: in order, and no more than there is room
 * for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/test_remote.h"
#include "worker/engine/letter.h"
#include "worker/engine/mailbox.h"

static void send_numbers(const struct peer_port *port, unsigned to, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        const struct peer_message m = {.job = 7, .kind = STEAL_REQUEST, .request = {i}};
        port->send(port->self, to, &m);
    }
}

static void expect_numbers(const struct peer_port *port, uint32_t first, uint32_t count)
{
    struct peer_message m;
    for (uint32_t i = first; i < first + count; i++) {
        assert_true(port->receive(port->self, &m));
        assert_int_equal(m.request.number, i);
        assert_int_equal(m.from, 1);
    }
}

static void what_finds_no_room_is_lost_and_counted(void **state)
{
    (void)state;
    struct mailboxes *boxes;
    struct peer_message m;
    assert_int_equal(mailboxes_open(&boxes, 2, true), ERR_OK);
    const struct peer_port *port = mailboxes_port(boxes, 0, NULL);
    const struct peer_port *other = mailboxes_port(boxes, 1, NULL);
    assert_int_equal(mailboxes_begin(boxes, 7, true), ERR_OK);
    send_numbers(other, 0, 0, 10);
    expect_numbers(port, 0, 5); /* so that the list goes round its end */
    send_numbers(other, 0, 10, MAILBOX_ROOM - 5);
    assert_false(other->receive(other->self, &m));
    send_numbers(other, 0, MAILBOX_ROOM + 5, 3); /* too many */
    expect_numbers(port, 5, MAILBOX_ROOM);
    assert_false(port->receive(port->self, &m));
    assert_int_equal(port->lost, 3);
    send_numbers(other, 0, 1, 2); /* there is room again */
    expect_numbers(port, 1, 2);
    send_numbers(other, 0, 1, 2);
    assert_int_equal(mailboxes_begin(boxes, 8, true),
                     ERR_OK); /* forgets what came, and what was lost */
    assert_false(port->receive(port->self, &m));
    assert_int_equal(port->lost, 0);
    mailboxes_close(&boxes);
    mailboxes_close(&boxes);
}

static void bring_letters_of(struct mailboxes *boxes, uint64_t from, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        const struct peer_message m = {.kind = STEAL_REQUEST, .request = {i}};
        uint8_t body[PROTO_BODY_MAX];
        struct proto_mail letter = {.job = 7, .from = from, .body = {.at = body}};
        letter.body.length = (uint32_t)letter_write(&m, body);
        mailboxes_event(boxes, 0, &(struct client_event){.kind = CLIENT_MAIL, .mail = &letter});
    }
}

static void bring_letters(struct mailboxes *boxes, uint32_t first, uint32_t count)
{
    bring_letters_of(boxes, 99, first, count);
}

static void letters_leave_room_for_messages_of_the_process(void **state)
{
    (void)state;
    struct world *world = world_open();
    struct mailboxes *boxes;
    struct peer_message m;
    peer_open(world, 0, 0, 0);
    assert_int_equal(mailboxes_open(&boxes, 2, true), ERR_OK);
    mailboxes_connect(boxes, 0, world->peer[0].remote, 1);
    bring_letters(boxes, 0, 1); /* of no search: they are not kept, and there is no list yet */
    const struct peer_port *port = mailboxes_port(boxes, 0, NULL);
    const struct peer_port *other = mailboxes_port(boxes, 1, NULL);
    assert_int_equal(mailboxes_begin(boxes, 7, false), ERR_OK);
    bring_letters(boxes, 0, MAILBOX_LETTERS_MAX + 3);
    send_numbers(other, 0, 0, MAILBOX_ROOM - MAILBOX_LETTERS_MAX + 4);
    bring_letters(boxes, 0, 1);
    for (uint32_t i = 0; i < MAILBOX_LETTERS_MAX; i++) {
        assert_true(port->receive(port->self, &m));
        assert_int_equal(m.request.number, i);
        assert_int_equal(m.from, 2); /* the next number after the threads' */
    }
    expect_numbers(port, 0, MAILBOX_ROOM - MAILBOX_LETTERS_MAX);
    assert_false(port->receive(port->self, &m));
    assert_int_equal(port->lost, 3 + 4 + 1);
    mailboxes_end(boxes);
    bring_letters(boxes, 0, 1);
    assert_false(port->receive(port->self, &m));
    mailboxes_close(&boxes);
    world_close(world);
}

/* Shards may name any number of searchers, and pass on letters of any address. */
static void no_letter_comes_from_searchers_beyond_the_most(void **state)
{
    (void)state;
    enum { FIRST = 1000, THREADS = 2, EACH = MAILBOX_PEERS_MAX / 2 };
    static struct proto_correspondent named[EACH];
    struct proto_mail_list list = {.job = 7, .list = {EACH, named}};
    const struct client_event event = {.kind = CLIENT_CORRESPONDENTS, .correspondents = &list};
    struct world *world = world_open();
    struct mailboxes *boxes;
    struct peer_message m;
    peer_open(world, 0, 0, 0);
    assert_int_equal(mailboxes_open(&boxes, THREADS, true), ERR_OK);
    mailboxes_connect(boxes, 0, world->peer[0].remote, 1);
    const struct peer_port *port = mailboxes_port(boxes, 0, NULL);
    assert_int_equal(mailboxes_begin(boxes, 7, false), ERR_OK);
    for (unsigned page = 0; page < 2; page++) { /* with the threads, more than there is room for */
        for (unsigned i = 0; i < EACH; i++) {
            named[i].alias = FIRST + page * EACH + i;
        }
        mailboxes_event(boxes, 0, &event);
    }
    assert_int_equal(port->count, MAILBOX_PEERS_MAX);
    bring_letters_of(boxes, FIRST + 2 * EACH - 1, 1, 1); /* the last, which found no room */
    bring_letters_of(boxes, FIRST, 2, 1);
    bring_letters(boxes, 3, 1); /* of an address that nobody named */
    bring_letters_of(boxes, FIRST + MAILBOX_PEERS_MAX - THREADS - 1, 4, 1);
    assert_true(port->receive(port->self, &m));
    assert_int_equal(m.request.number, 2);
    assert_int_equal(m.from, THREADS);
    assert_true(port->receive(port->self, &m));
    assert_int_equal(m.request.number, 4);
    assert_int_equal(m.from, MAILBOX_PEERS_MAX - 1);
    assert_false(port->receive(port->self, &m));
    mailboxes_close(&boxes);
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_finds_no_room_is_lost_and_counted),
        cmocka_unit_test(letters_leave_room_for_messages_of_the_process),
        cmocka_unit_test(no_letter_comes_from_searchers_beyond_the_most),
    };
    return cmocka_run_group_tests_name("mailbox", tests, NULL, NULL);
}
