// SPDX-License-Identifier: MIT
//
// weft/buffer.hpp: memory to be filled or to be sent, made from whatever holds bytes in a row: spans, arrays, vectors,
// strings, of char, unsigned char or std::byte. It is a view: the memory stays the caller's and must outlive the operation.
// An array of them, for the operations that move several pieces with one system call, is an array of weft_buffer.
#ifndef WEFT_BUFFER_HPP
#define WEFT_BUFFER_HPP

#include <concepts>
#include <cstddef>
#include <iterator>
#include <span>
#include <string_view>
#include <type_traits>

#include "c/io.h"

namespace weft {

namespace detail {

template <class T>
concept byte_like = std::same_as<T, char> || std::same_as<T, unsigned char> || std::same_as<T, std::byte>;

template <class Range>
using element_of = std::remove_pointer_t<decltype(std::data(std::declval<Range &>()))>;

template <class Range>
concept bytes = requires(Range &range) {
    { std::size(range) } -> std::convertible_to<std::size_t>;
    requires byte_like<std::remove_const_t<element_of<Range>>>;
};

template <class Range>
concept writable_bytes = bytes<Range> && !std::is_const_v<element_of<Range>>;

// An array of char may be a string with its NUL or a place for one: const_buffer wants to be told.
template <class Range>
concept sendable_bytes = bytes<Range> && !(std::is_array_v<Range> && std::same_as<std::remove_cv_t<element_of<Range>>, char>);

} // namespace detail

/// Memory to be filled.
class buffer {
public:
    constexpr buffer() noexcept = default;

    template <class Range>
        requires detail::writable_bytes<std::remove_reference_t<Range>>
    buffer(Range &&range) noexcept : raw_{std::data(range), std::size(range)}
    {
    }

    [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {static_cast<std::byte *>(raw_.data), raw_.length}; }
    [[nodiscard]] const weft_buffer *native() const noexcept { return &raw_; }

private:
    weft_buffer raw_{};
};

/// Memory to be sent; it is only read.
class const_buffer {
public:
    constexpr const_buffer() noexcept = default;

    template <class Range>
        requires detail::sendable_bytes<std::remove_reference_t<Range>>
    const_buffer(Range &&range) noexcept : const_buffer(std::data(range), std::size(range))
    {
    }

    /// A literal, without its NUL.
    const_buffer(const char *text) noexcept : const_buffer(text, std::string_view(text).size()) {}

    /// Say how much of it is meant: std::string_view(array, size).
    template <std::size_t N>
    const_buffer(char (&array)[N]) = delete;

    const_buffer(const buffer &other) noexcept : raw_(*other.native()) {}

    [[nodiscard]] std::span<const std::byte> bytes() const noexcept
    {
        return {static_cast<const std::byte *>(raw_.data), raw_.length};
    }
    [[nodiscard]] const weft_buffer *native() const noexcept { return &raw_; }

private:
    const_buffer(const void *data, std::size_t size) noexcept : raw_{const_cast<void *>(data), size} {}

    weft_buffer raw_{};
};

static_assert(std::is_standard_layout_v<buffer> && sizeof(buffer) == sizeof(weft_buffer));
static_assert(std::is_standard_layout_v<const_buffer> && sizeof(const_buffer) == sizeof(weft_buffer));

} // namespace weft

#endif
