/* SPDX-License-Identifier: MIT
 *
 * endpoint.c: addresses as text: "127.0.0.1:80", "[::1]:80", "[fe80::1%2]:80".
 */
#if defined(_WIN32)
#include <winsock2.h>
#include <ws2tcpip.h>
#else
#include <arpa/inet.h>
#endif

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "weft.h"

/* Reads a decimal number of at most maximum that ends at the end of the text: digits only, no sign, no more of them than the
 * maximum has. */
static bool read_number(const char *text, uint64_t maximum, size_t digits_max, uint64_t *number) {
    size_t digits = 0;
    uint64_t value = 0;
    for (; text[digits] >= '0' && text[digits] <= '9'; digits++) {
        if (digits == digits_max) return false;
        value = value * 10 + (uint64_t)(text[digits] - '0');
    }
    if (digits == 0 || text[digits] != '\0' || value > maximum) return false;
    *number = value;
    return true;
}

/* Copies the text from begin up to, not including, end. */
static bool copy_part(char *part, size_t size, const char *begin, const char *end) {
    size_t length = (size_t)(end - begin);
    if (length >= size) return false;
    memcpy(part, begin, length);
    part[length] = '\0';
    return true;
}

static bool parse_ipv4(const char *text, const char *colon, weft_endpoint *endpoint) {
    char address[INET_ADDRSTRLEN];
    endpoint->family = WEFT_IPV4;
    return copy_part(address, sizeof address, text, colon) && inet_pton(AF_INET, address, endpoint->address) == 1;
}

/* text is behind the opening bracket, end at the closing one. */
static bool parse_ipv6(const char *text, const char *end, weft_endpoint *endpoint) {
    char address[INET6_ADDRSTRLEN];
    char scope[11];
    const char *percent = memchr(text, '%', (size_t)(end - text));
    endpoint->family = WEFT_IPV6;
    if (percent != NULL) {
        uint64_t number;
        if (!copy_part(scope, sizeof scope, percent + 1, end) || !read_number(scope, UINT32_MAX, 10, &number)) return false;
        endpoint->scope = (uint32_t)number;
    }
    return copy_part(address, sizeof address, text, percent != NULL ? percent : end) &&
           inet_pton(AF_INET6, address, endpoint->address) == 1;
}

int weft_endpoint_parse(const char *text, weft_endpoint *endpoint) {
    if (text == NULL || endpoint == NULL) return WEFT_EINVAL;
    int saved = errno;
    weft_endpoint parsed;
    memset(&parsed, 0, sizeof parsed);
    const char *colon = strrchr(text, ':');
    bool good = false;
    uint64_t port = 0;
    if (colon != NULL && read_number(colon + 1, UINT16_MAX, 5, &port)) {
        if (text[0] != '[')
            good = parse_ipv4(text, colon, &parsed);
        else if (colon[-1] == ']')
            good = parse_ipv6(text + 1, colon - 1, &parsed);
    }
    errno = saved;
    if (!good) return WEFT_EINVAL;
    parsed.port = (uint16_t)port;
    *endpoint = parsed;
    return WEFT_OK;
}

int weft_endpoint_format(const weft_endpoint *endpoint, char *text, size_t size) {
    if (endpoint == NULL || text == NULL) return WEFT_EINVAL;
    char address[INET6_ADDRSTRLEN];
    char whole[WEFT_ENDPOINT_TEXT_BYTES];
    int saved = errno;
    int length;
    switch (endpoint->family) {
    case WEFT_IPV4:
        inet_ntop(AF_INET, endpoint->address, address, sizeof address);
        length = snprintf(whole, sizeof whole, "%s:%u", address, endpoint->port);
        break;
    case WEFT_IPV6:
        inet_ntop(AF_INET6, endpoint->address, address, sizeof address);
        if (endpoint->scope != 0)
            length = snprintf(whole, sizeof whole, "[%s%%%u]:%u", address, endpoint->scope, endpoint->port);
        else
            length = snprintf(whole, sizeof whole, "[%s]:%u", address, endpoint->port);
        break;
    default: return WEFT_EINVAL;
    }
    errno = saved;
    if ((size_t)length >= size) return WEFT_EINVAL;
    memcpy(text, whole, (size_t)length + 1);
    return length;
}
