"""tap: runs the functions of a test program and prints what came out as TAP."""


def run(tests, call=lambda test: test()):
    """Each by `call`; one that asserts what is not so has failed. Returns the exit status."""
    failed = 0
    print(f"1..{len(tests)}")
    for number, test in enumerate(tests, 1):
        try:
            call(test)
            print(f"ok {number} - {test.__name__}", flush=True)
        except AssertionError as error:
            failed += 1
            print(f"not ok {number} - {test.__name__}\n# {error}", flush=True)
    return 1 if failed else 0
