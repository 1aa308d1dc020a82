/* crc.c - see crc.h. */
#include "base/crc.h"

static uint32_t crc(uint32_t polynomial, const uint8_t *at, uint64_t n) {
    const uint32_t ones = 0xFFFFFFFF;
    uint32_t table[256], sum = ones;
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? polynomial : 0);
    }
    for (uint64_t i = 0; i < n; i++)
        sum = table[(sum ^ at[i]) & 0xFF] ^ sum >> 8;
    return sum ^ ones;
}

uint32_t crc32_of(const uint8_t *at, uint64_t n) {
    return crc(0xEDB88320, at, n);
}

uint32_t crc32c_of(const uint8_t *at, uint64_t n) {
    return crc(0x82F63B78, at, n);
}
