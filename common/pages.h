/* pages: what memory of many pages asks Linux for; newer than some C libraries. A kernel that does
 * not know a request answers EINVAL. Pure: names only. */
#ifndef COMMON_PAGES_H
#define COMMON_PAGES_H

#include <sys/mman.h>

enum { PAGES_LARGE = 2 << 20 }; /* bytes of one, where they are not larger still */

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

#endif
