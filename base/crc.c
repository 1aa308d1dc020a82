/* crc.c - see crc.h. */
#include "base/crc.h"

uint32_t crc32_of(const uint8_t *at, uint64_t n) {
    const uint32_t polynomial = 0xEDB88320, ones = 0xFFFFFFFF;
    uint32_t table[256], crc = ones;
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? polynomial : 0);
    }
    for (uint64_t i = 0; i < n; i++)
        crc = table[(crc ^ at[i]) & 0xFF] ^ crc >> 8;
    return crc ^ ones;
}
