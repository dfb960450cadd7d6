// SPDX-License-Identifier: MIT
//
// The checksum of POSIX cksum: a CRC of 32 bits over the bytes and then over their number.
#ifndef COPY_CHECKSUM_HPP
#define COPY_CHECKSUM_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

class checksum {
public:
    void add(std::span<const char> bytes) noexcept {
        for (const char byte : bytes) {
            add(static_cast<std::uint8_t>(byte));
        }
        length_ += bytes.size();
    }

    [[nodiscard]] std::uint64_t length() const noexcept { return length_; }

    [[nodiscard]] std::uint32_t value() const noexcept {
        checksum whole = *this;
        for (std::uint64_t rest = length_; rest != 0; rest >>= 8) {
            whole.add(static_cast<std::uint8_t>(rest));
        }
        return ~whole.crc_;
    }

private:
    void add(std::uint8_t byte) noexcept { crc_ = (crc_ << 8) ^ table[(crc_ >> 24) ^ byte]; }

    static constexpr std::array<std::uint32_t, 256> table = [] {
        std::array<std::uint32_t, 256> made{};
        for (std::uint32_t i = 0; i < 256; ++i) {
            std::uint32_t crc = i << 24;
            for (int bit = 0; bit < 8; ++bit) {
                crc = (crc << 1) ^ ((crc >> 31) != 0 ? 0x04c11db7U : 0U);
            }
            made[i] = crc;
        }
        return made;
    }();

    std::uint32_t crc_ = 0;
    std::uint64_t length_ = 0;
};

#endif
