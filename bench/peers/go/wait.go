package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

var waitWorks = []work{
	{"sleep1000", func(o options) result { return sleeps(o, 1000, 100) }},
	{"sleep100k", func(o options) result { return sleeps(o, 100_000, 50) }},
	{"timer_cancel", timerCancel},
	{"timer_lateness", timerLateness},
	{"wake", wake},
	{"parked", parked},
	{"idle_cpu", func(o options) result { return idle(o) }},
	{"idle_cpu_timer", func(o options) result {
		defer time.AfterFunc(time.Hour, func() {}).Stop()
		return idle(o)
	}},
}

func sleeps(o options, full, most int) result {
	n := o.count(full)
	return measure(1, func() {
		var early atomic.Uint64
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				span := sleepOf(i, n, most)
				begin := time.Now()
				time.Sleep(span)
				if time.Since(begin) < span {
					early.Add(1)
				}
			})
		}
		all.Wait()
		check(early.Load(), 0, "sleepers that woke early")
	})
}

func timerCancel(o options) result {
	n := o.count(1_000_000)
	return measure(n, func() {
		stopped := uint64(0)
		for i := range n {
			t := time.AfterFunc(10*time.Second+time.Duration(i)*time.Microsecond, func() { fail("a cancelled timer fired") })
			if t.Stop() {
				stopped++
			}
		}
		check(stopped, uint64(n), "cancelled timers")
	})
}

func burn(span time.Duration) {
	for begin := time.Now(); time.Since(begin) < span; {
	}
}

func timerLateness(o options) result {
	const sleepers = 100
	each := o.count(100)
	samples := make([]int64, sleepers*each)
	var stop atomic.Bool
	var burners, all sync.WaitGroup
	for range 2 * o.workers {
		burners.Go(func() {
			for !stop.Load() {
				burn(20 * time.Microsecond)
				runtime.Gosched()
			}
		})
	}
	for s := range sleepers {
		all.Go(func() {
			for i := range each {
				span := time.Duration(1+random(uint64(s*each+i))%10) * time.Millisecond
				begin := time.Now()
				time.Sleep(span)
				samples[s*each+i] = int64(time.Since(begin) - span)
			}
		})
	}
	all.Wait()
	stop.Store(true)
	burners.Wait()
	return percentiles(samples)
}

// wake sends to a goroutine that waits on a channel. The sender is a thread of its own, which takes one more of GOMAXPROCS:
// it stands for the thread outside.
func wake(o options) result {
	runtime.GOMAXPROCS(o.workers + 1)
	runtime.LockOSThread()
	var began atomic.Int64
	calls := make(chan struct{})
	go func() {
		for range calls {
			began.Store(nowNS())
		}
	}()
	samples := make([]int64, o.count(1000))
	for i := range samples {
		time.Sleep(500*time.Microsecond + time.Duration(random(uint64(i))%1_000_000))
		began.Store(0)
		submitted := nowNS()
		calls <- struct{}{}
		for began.Load() == 0 {
			time.Sleep(100 * time.Microsecond)
		}
		samples[i] = began.Load() - submitted
	}
	close(calls)
	return percentiles(samples)
}

func residentBytes() int64 {
	var pages, resident int64
	f, err := os.Open("/proc/self/statm")
	need(err)
	defer f.Close()
	_, err = fmt.Fscan(f, &pages, &resident)
	need(err)
	return resident * int64(os.Getpagesize())
}

// parked counts the whole stack of a goroutine; there is no frame apart from it.
func parked(o options) result {
	n := o.count(1_000_000)
	gate := make(chan struct{})
	var started, ended sync.WaitGroup
	started.Add(n)
	ended.Add(n)
	before := residentBytes()
	begin := time.Now()
	for range n {
		go func() {
			started.Done()
			<-gate
			ended.Done()
		}()
	}
	started.Wait()
	parkTime := time.Since(begin)
	bytes := residentBytes() - before
	begin = time.Now()
	close(gate)
	ended.Wait()
	releaseTime := time.Since(begin)
	each := func(all float64) float64 { return all / float64(n) }
	return result{each(float64(parkTime + releaseTime)), []value{{"bytes", each(float64(bytes))},
		{"park_ns", each(float64(parkTime))}, {"release_ns", each(float64(releaseTime))}}}
}

func idle(o options) result {
	time.Sleep(200 * time.Millisecond)
	begin, cpu := time.Now(), cpuNS()
	time.Sleep(time.Duration(5e9 * o.scale))
	perSecond := float64(cpuNS()-cpu) / time.Since(begin).Seconds()
	return result{perSecond, []value{{"cpu_percent", perSecond / 1e7}}}
}
