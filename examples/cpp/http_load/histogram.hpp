// SPDX-License-Identifier: MIT
//
// A histogram of latencies with a fixed relative error, after Gil Tene's HdrHistogram: values below 256 have a bucket
// each; above, every power of two is cut into 128 buckets, so a reported value is at most 1/128 too high.
// Recording is two shifts and an increment, and 64 bits need 58 KiB.
#ifndef EXAMPLES_HTTP_LOAD_HISTOGRAM_HPP
#define EXAMPLES_HTTP_LOAD_HISTOGRAM_HPP

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace http {

class histogram {
public:
    void record(std::uint64_t value) noexcept {
        ++buckets_[bucket_of(value)];
        ++count_;
        sum_ += value;
        largest_ = std::max(largest_, value);
    }

    void add(const histogram& other) noexcept {
        for (std::size_t i = 0; i < buckets_.size(); ++i) {
            buckets_[i] += other.buckets_[i];
        }
        count_ += other.count_;
        sum_ += other.sum_;
        largest_ = std::max(largest_, other.largest_);
    }

    /// The smallest bucket end that at least `percent` of the recorded values do not exceed; 0 if there are none.
    [[nodiscard]] std::uint64_t percentile(double percent) const noexcept {
        const auto wanted = static_cast<double>(count_) * percent / 100.0;
        std::uint64_t seen = 0;
        for (std::size_t i = 0; i < buckets_.size(); ++i) {
            seen += buckets_[i];
            if (seen != 0 && static_cast<double>(seen) >= wanted) {
                return std::min(bucket_end(i), largest_);
            }
        }
        return largest_;
    }

    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] std::uint64_t largest() const noexcept { return largest_; }
    [[nodiscard]] double mean() const noexcept {
        return count_ == 0 ? 0.0 : static_cast<double>(sum_) / static_cast<double>(count_);
    }

private:
    static constexpr int fine_bits = 7;
    static constexpr std::size_t fine = std::size_t{1} << fine_bits;

    // A value with its highest set bit at fine_bits + shift lies in row shift; the fine_bits below that bit say where.
    static std::size_t bucket_of(std::uint64_t value) noexcept {
        const int shift = std::max(0, static_cast<int>(std::bit_width(value)) - 1 - fine_bits);
        return static_cast<std::size_t>(shift) * fine + static_cast<std::size_t>(value >> shift);
    }

    static std::uint64_t bucket_end(std::size_t bucket) noexcept {
        if (bucket < 2 * fine) {
            return bucket;
        }
        const std::size_t shift = bucket / fine - 1;
        return ((static_cast<std::uint64_t>(bucket - shift * fine) + 1) << shift) - 1;
    }

    std::array<std::uint64_t, fine * (64 - fine_bits + 1)> buckets_{};
    std::uint64_t count_ = 0;
    std::uint64_t sum_ = 0;
    std::uint64_t largest_ = 0;
};

} // namespace http

#endif
