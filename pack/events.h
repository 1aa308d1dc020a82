/* events.h - births and deaths of half-open lives, in the order of time. */
#ifndef PACK_EVENTS_H
#define PACK_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct LifeEvent {
    uint32_t step;
    bool birth;
    uint32_t who;
} LifeEvent;

/* By step, deaths before births, then by who. */
void events_sort(LifeEvent *event, size_t n);

#endif
