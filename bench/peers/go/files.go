package main

import (
	"encoding/binary"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

var fileWorks = []work{
	{"file_read1", func(o options) result { return readBlocks(o, 1, o.count(100_000), false) }},
	{"file_read64", func(o options) result { return readBlocks(o, 64, o.count(100_000), false) }},
	{"file_cold64", func(o options) result { return readBlocks(o, 64, o.count(5_000), true) }},
}

// bench/common/file.h
const (
	blockBytes = 4096
	blocks     = 16384
)

func splitmix(i uint64) uint64 {
	z := (i + 1) * 0x9e3779b97f4a7c15
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

func blockOf(i int) uint64      { return splitmix(uint64(i)) % blocks }
func blockWord(b uint64) uint64 { return splitmix(b + 1_000_000) }

// readBlocks reads so many blocks at once, each by a goroutine.
func readBlocks(_ options, atOnce, n int, cold bool) result {
	folder := os.Getenv("TMPDIR")
	if folder == "" {
		folder = "/var/tmp"
	}
	file, err := os.CreateTemp(folder, "weft-bench-*")
	need(err)
	defer os.Remove(file.Name())
	block := make([]byte, blockBytes)
	for i := range uint64(blocks) {
		binary.NativeEndian.PutUint64(block, blockWord(i))
		_, err := file.Write(block)
		need(err)
	}
	need(file.Sync())
	want := uint64(0)
	for i := range n {
		want += blockWord(blockOf(i))
	}
	return measure(n, func() {
		if cold {
			need(unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED))
		}
		var sum atomic.Uint64
		var all sync.WaitGroup
		for first := range atOnce {
			all.Add(1)
			go func() {
				defer all.Done()
				block := make([]byte, blockBytes)
				mine := uint64(0)
				for i := first; i < n; i += atOnce {
					_, err := file.ReadAt(block, int64(blockOf(i)*blockBytes))
					need(err)
					mine += binary.NativeEndian.Uint64(block)
				}
				sum.Add(mine)
			}()
		}
		all.Wait()
		check(sum.Load(), want, "sum of the blocks' words")
	})
}
