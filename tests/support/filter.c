/* Linked into every unit test program: ONLY=PATTERN in the environment runs the tests whose names
 * match (* and ? as in a shell). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

__attribute__((constructor)) static void take_filter(void)
{
    const char *only = getenv("ONLY");
    if (only != NULL) {
        cmocka_set_test_filter(only);
    }
}
