#include "worker/table/broadcast_queue.h"

void share_queue_init(struct share_queue *q)
{
    pthread_mutex_init(&q->lock, NULL);
    atomic_init(&q->count, 0);
    atomic_init(&q->due_us, 0);
    atomic_init(&q->least, SHARE_DEPTH_FIRST * SHARE_STEPS);
}

void share_queue_free(struct share_queue *q)
{
    pthread_mutex_destroy(&q->lock);
}
