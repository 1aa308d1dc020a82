/* effort.h - how many random cases a test takes. Sanitizers are slow and look
 * for other mistakes than the build without them, which takes most cases; so
 * they take fewer. All are for ./test --long, which sets TEST_LONG. */
#ifndef TESTS_EFFORT_H
#define TESTS_EFFORT_H

#include <stdint.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#define TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TEST_SANITIZED 1
#endif
#endif
#ifndef TEST_SANITIZED
#define TEST_SANITIZED 0
#endif

static inline uint32_t cases_of(uint32_t most, uint32_t sanitized) {
    return TEST_SANITIZED && !getenv("TEST_LONG") ? sanitized : most;
}

/* The same where there are more for ./test --long alone. */
static inline uint32_t cases_up_to(uint32_t all, uint32_t most,
                                   uint32_t sanitized) {
    return getenv("TEST_LONG") ? all : cases_of(most, sanitized);
}

#endif
