#include "worker/lab/event.h"

#include <stdlib.h>
#include <string.h>

static bool before(const struct lab_event *a, const struct lab_event *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->serial < b->serial;
}

void lab_heap_push(struct lab_heap *heap, struct lab_event event)
{
    if (heap->count == heap->room) {
        heap->room = heap->room ? heap->room * 2 : 1024;
        heap->at = realloc(heap->at, heap->room * sizeof *heap->at);
        CHECK(heap->at != NULL);
    }
    event.serial = heap->serial++;
    size_t i = heap->count++;
    while (i > 0 && before(&event, &heap->at[(i - 1) / 2])) {
        heap->at[i] = heap->at[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap->at[i] = event;
}

bool lab_heap_pop(struct lab_heap *heap, struct lab_event *out)
{
    if (heap->count == 0) {
        return false;
    }
    *out = heap->at[0];
    struct lab_event last = heap->at[--heap->count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < heap->count; i = child) {
        if (child + 1 < heap->count && before(&heap->at[child + 1], &heap->at[child])) {
            child++;
        }
        if (!before(&heap->at[child], &last)) {
            break;
        }
        heap->at[i] = heap->at[child];
    }
    heap->at[i] = last;
    return true;
}

void lab_heap_close(struct lab_heap *heap)
{
    for (size_t i = 0; i < heap->count; i++) {
        free(heap->at[i].packet);
    }
    free(heap->at);
    *heap = (struct lab_heap){0};
}

struct lab_packet *lab_packet_new(const void *bytes, size_t length)
{
    struct lab_packet *packet = malloc(sizeof *packet + length);
    CHECK(packet != NULL);
    *packet = (struct lab_packet){.length = (uint32_t)length};
    if (length > 0) {
        memcpy(packet->bytes, bytes, length);
    }
    return packet;
}

void lab_queue_put(struct lab_queue *q, struct lab_packet *packet)
{
    packet->next = NULL;
    *(q->first == NULL ? &q->first : &q->last->next) = packet;
    q->last = packet;
}

struct lab_packet *lab_queue_take(struct lab_queue *q)
{
    struct lab_packet *packet = q->first;
    q->first = packet != NULL ? packet->next : NULL;
    return packet;
}

void lab_queue_free(struct lab_queue *q)
{
    for (struct lab_packet *packet; (packet = lab_queue_take(q)) != NULL;) {
        free(packet);
    }
}
