/* Messages between the threads of a process: in order, and no more than there is room for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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
    mailboxes_begin(boxes, 7, true);
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
    mailboxes_begin(boxes, 8, true); /* forgets what came, and what was lost */
    assert_false(port->receive(port->self, &m));
    assert_int_equal(port->lost, 0);
    mailboxes_close(&boxes);
    mailboxes_close(&boxes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_finds_no_room_is_lost_and_counted),
    };
    return cmocka_run_group_tests_name("mailbox", tests, NULL, NULL);
}
