package core

// Stats are the counters of one worker or of a whole runtime: weft_stats of include/weft/c/runtime.h, in its order,
// without its size and what the blocking pool counts, which is C's.
type Stats struct {
	OpsRun          uint64
	Crossings       uint64
	Steals          uint64
	OpsStolen       uint64
	Parks           uint64
	Wakes           uint64
	Injected        uint64
	TimersStarted   uint64
	TimersFired     uint64
	TimersCancelled uint64
	IOStarted       uint64
	IOEvents        uint64
	IOImmediate     uint64
	Workers         uint64 // level
	Parked          uint64 // level
	Descriptors     uint64 // level; 0 for one worker

	WorkersMost     uint64 // level; 1 for one worker
	Stalls          uint64 // 0 for one worker, and so the next three
	Dismissed       uint64
	StalledLongest  uint64 // ns
	Replacements    uint64
	Recoveries      uint64
	RecoveryTotal   uint64 // ns
	RecoveryLongest uint64 // ns
}

func (s *Stats) add(o Stats) {
	s.OpsRun += o.OpsRun
	s.Crossings += o.Crossings
	s.Steals += o.Steals
	s.OpsStolen += o.OpsStolen
	s.Parks += o.Parks
	s.Wakes += o.Wakes
	s.Injected += o.Injected
	s.TimersStarted += o.TimersStarted
	s.TimersFired += o.TimersFired
	s.TimersCancelled += o.TimersCancelled
	s.IOStarted += o.IOStarted
	s.IOEvents += o.IOEvents
	s.IOImmediate += o.IOImmediate
	s.Workers += o.Workers
	s.Parked += o.Parked
	s.Recoveries += o.Recoveries
	s.RecoveryTotal += o.RecoveryTotal
	s.RecoveryLongest = max(s.RecoveryLongest, o.RecoveryLongest)
}

// WorkerStats reads the counters of one worker; they are read one by one, not at one instant. It returns EInval when there can be no such worker.
func (r *Runtime) WorkerStats(i int) (Stats, error) {
	if i < 0 || i >= int(r.shared.WorkerMax) {
		return Stats{}, EInval
	}
	if i >= int(r.shared.Begun.Load()) {
		return Stats{WorkersMost: 1}, nil
	}
	w := r.shared.Worker(i)
	s := Stats{
		OpsRun:      w.Ticks.Load(),
		Crossings:   w.Crossings.Load(),
		Steals:      w.Steals.Load(),
		OpsStolen:   w.OpsStolen.Load(),
		Parks:       w.Parks.Load(),
		Wakes:       w.Wakes.Load(),
		Injected:    w.InjectedCount.Load(),
		IOStarted:   w.IOStarted.Load(),
		IOEvents:    w.IOEvents.Load(),
		IOImmediate: w.IOImmediate.Load(),
		WorkersMost: 1,
	}
	if life := w.Life.Load(); life == LifeRunning || life == LifeAsked {
		s.Workers = 1
	}
	s.Recoveries = w.Recoveries.Load()
	s.RecoveryTotal, s.RecoveryLongest = uint64(w.RecoveryTotal.Load()), uint64(w.RecoveryLongest.Load())
	if park := w.Park.Load(); park == Parked || park == ParkedInPoller {
		s.Parked = 1
	}
	wheel := &w.Wheel
	wheel.lock(r.lane)
	s.TimersStarted, s.TimersFired, s.TimersCancelled = wheel.Started, wheel.Fired, wheel.Cancelled
	wheel.unlock()
	return s, nil
}

// Stats reads the counters of all workers and of the threads that are none, and adds them up.
func (r *Runtime) Stats() Stats {
	s := Stats{
		Crossings:   r.shared.Crossings.Load(),
		Wakes:       r.shared.Wakes.Load(),
		IOStarted:   r.shared.IOStarted.Load(),
		IOEvents:    r.shared.IOEvents.Load(),
		IOImmediate: r.shared.IOImmediate.Load(),
	}
	for i := range int(r.shared.Begun.Load()) {
		w, _ := r.WorkerStats(i)
		s.add(w)
	}
	s.Descriptors = uint64(r.shared.Descriptors.Load())
	s.Stalls, s.StalledLongest = r.shared.Stalls.Load(), uint64(r.shared.StalledLongest.Load())
	s.Replacements, s.Dismissed = r.shared.Replacements.Load(), r.shared.Dismissed.Load()
	s.WorkersMost = uint64(r.shared.WorkerMax)
	return s
}
