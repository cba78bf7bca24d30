#include "common/streams.h"

#include <fcntl.h>
#include <unistd.h>

void streams_open(void)
{
    int fd;
    while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd <= STDERR_FILENO) {
    }
    if (fd > STDERR_FILENO) {
        close(fd);
    }
}
