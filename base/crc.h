/* crc.h - the checksum of zip and Ethernet: CRC-32 of polynomial 0x04C11DB7,
 * bits reflected. */
#ifndef BASE_CRC_H
#define BASE_CRC_H

#include <stdint.h>

uint32_t crc32_of(const uint8_t *at, uint64_t n);

/* The same with Castagnoli's polynomial 0x1EDC6F41: CRC-32C. */
uint32_t crc32c_of(const uint8_t *at, uint64_t n);

#endif
