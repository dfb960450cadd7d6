package main

import (
	"runtime"
	"sync"
	"sync/atomic"
)

var taskWorks = []work{
	{"micro_inside", microInside},
	{"chain", chain},
	{"yield2", func(o options) result { return yields(o, 2) }},
	{"yield1000", func(o options) result { return yields(o, 1000) }},
	{"pingpong_event", pingPong},
	{"pingpong_channel", pingPong},
}

// microInside starts goroutines from a goroutine; Go knows no other place to start them from.
func microInside(o options) result {
	n := o.count(1_000_000)
	want := uint64(0)
	for i := range n {
		want += microValue(i)
	}
	return measure(n, func() {
		var sum atomic.Uint64
		var all sync.WaitGroup
		all.Add(n)
		for i := range n {
			go func() {
				sum.Add(microValue(i))
				all.Done()
			}()
		}
		all.Wait()
		check(sum.Load(), want, "sum of micro tasks")
	})
}

func link(left int, hops *int, end *sync.WaitGroup) {
	*hops++
	if left > 1 {
		go link(left-1, hops, end)
	} else {
		end.Done()
	}
}

func chain(o options) result {
	n := o.count(100_000)
	return measure(n, func() {
		hops := 0
		var end sync.WaitGroup
		end.Add(1)
		go link(n, &hops, &end)
		end.Wait()
		check(uint64(hops), uint64(n), "hops")
	})
}

func yields(o options, goroutines int) result {
	each := o.count(1_000_000 / goroutines)
	return measure(goroutines*each, func() {
		type count struct {
			done uint64
			_    [120]byte
		}
		counts := make([]count, goroutines)
		var end sync.WaitGroup
		for g := range goroutines {
			end.Go(func() {
				for range each {
					runtime.Gosched()
					counts[g].done++
				}
			})
		}
		end.Wait()
		for _, c := range counts {
			check(c.done, uint64(each), "yields")
		}
	})
}

// pingPong is two goroutines and two unbuffered channels: what Go has for a hand-over, with and without a value.
func pingPong(o options) result {
	rounds := o.count(200_000)
	return measure(rounds, func() {
		there, back := make(chan uint64), make(chan uint64)
		go func() {
			for v := range there {
				back <- v + 1
			}
			close(back)
		}()
		sum := uint64(0)
		for i := range rounds {
			there <- uint64(i)
			sum += <-back
		}
		close(there)
		check(sum, uint64(rounds)*uint64(rounds+1)/2, "sum of the answers")
	})
}
