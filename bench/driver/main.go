// Command driver runs weft's benchmark programs against each other and prints what came out.
//
// Each sample is a process of its own, so that no peer disturbs another: not by its threads, not by its heap. The samples of
// all peers are interleaved: a round runs every work once for every peer, one peer directly after the other, and there are five
// rounds or more. bench/run builds the programs and calls the driver; bench/README.md tells how to read the result.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// job is a cell of the table: a work, a peer and its number of workers.
type job struct {
	work    work
	peer    peer
	workers int
	program string // path
}

func (j job) cell() string   { return j.work.name + "/" + j.peer.name }
func (j job) String() string { return fmt.Sprintf("%s/%s/%d", j.work.name, j.peer.name, j.workers) }

// sample is what one process measured, and how much others disturbed it.
type sample struct {
	values  values
	foreign float64 // cores
}

type bench struct {
	jobs     []job
	offers   map[string]int      // numbers of workers to choose from, by WORK/PEER, the filter notwithstanding
	samples  map[string][]sample // by job.String
	failures []string
	scale    float64
	rounds   int
	progress io.Writer
}

func main() {
	programs := flag.String("programs", "build/bench", "folder of the built programs")
	rounds := flag.Int("rounds", 5, "how often everything is run")
	scale := flag.Float64("scale", 1, "share of the full counts; results of less than 1 are for trying things out")
	filter := flag.String("filter", "", "run only what matches this regular expression, of WORK/PEER/WORKERS")
	table := flag.String("table", "", "also write the tables to this file")
	jsonFile := flag.String("json", "", "write the results as JSON to this file")
	flag.Parse()

	match, err := regexp.Compile(*filter)
	if err != nil || *rounds < 1 || !(*scale > 0) || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "driver: wrong arguments", err)
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	b := &bench{offers: map[string]int{}, samples: map[string][]sample{}, scale: *scale, rounds: *rounds, progress: os.Stderr}
	b.discover(ctx, *programs, match)
	b.run(ctx)
	text := b.report(*programs)
	fmt.Print(text)
	if *table != "" {
		b.note(os.WriteFile(*table, []byte(text), 0o644))
	}
	if *jsonFile != "" {
		b.note(writeJSON(*jsonFile, b.records()))
	}
	if len(b.failures) > 0 {
		os.Exit(1)
	}
}

// note turns an error into a failure of the whole run, which goes on.
func (b *bench) note(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "driver:", err)
		b.failures = append(b.failures, err.Error())
	}
}

// discover asks every program for its works.
func (b *bench) discover(ctx context.Context, folder string, match *regexp.Regexp) {
	for _, p := range peers {
		program, err := filepath.Abs(filepath.Join(folder, p.program))
		if err != nil {
			b.note(err)
			continue
		}
		text, err := output(ctx, startTimeout, program, "list")
		if err != nil {
			b.note(fmt.Errorf("%s: %w", p.name, err))
			continue
		}
		for line := range strings.Lines(text) {
			b.note(b.announce(p, program, line, match))
		}
	}
}

// announce takes in one line of a program's list, "WORK WORKERS".
func (b *bench) announce(p peer, program, line string, match *regexp.Regexp) error {
	var asked string
	var workers int
	if _, err := fmt.Sscan(line, &asked, &workers); err != nil {
		return fmt.Errorf("%s lists %q", p.name, line)
	}
	known := false
	for _, w := range works {
		if w.asked() != asked {
			continue
		}
		known = true
		j := job{w, p, workers, program}
		b.offers[j.cell()]++
		if match.MatchString(j.String()) {
			b.jobs = append(b.jobs, j)
		}
	}
	if !known {
		return fmt.Errorf("%s lists a work that the driver does not know: %q", p.name, asked)
	}
	return nil
}

// run does all rounds. The peers of a work take turns at being first.
func (b *bench) run(ctx context.Context) {
	failed := map[string]bool{}
	for round := range b.rounds {
		begin := time.Now()
		for _, group := range groups(b.jobs) {
			group = slices.DeleteFunc(slices.Clone(group), func(j job) bool { return failed[j.String()] })
			if len(group) == 0 {
				continue
			}
			if group[0].work.kind == together {
				b.runTogether(ctx, group, failed)
				continue
			}
			for i := range group {
				b.runOne(ctx, group[(i+round)%len(group)], failed)
			}
		}
		if ctx.Err() != nil {
			fmt.Fprintln(b.progress, "driver: interrupted")
			return
		}
		fmt.Fprintf(b.progress, "round %d of %d: %.0f s\n", round+1, b.rounds, time.Since(begin).Seconds())
	}
}

// groups are the jobs that belong side by side: of one work and, unless all run at once, one number of workers. Peers that have
// no workers to choose go with the first number.
func groups(jobs []job) [][]job {
	var all [][]job
	var waiting []job
	for _, w := range works {
		for _, workers := range []int{1, 2} {
			var group []job
			for _, j := range jobs {
				if j.work.name == w.name && (j.workers == workers || j.workers == 0 && workers == 1) {
					group = append(group, j)
				}
			}
			if w.kind == together {
				waiting = append(waiting, group...)
			} else if len(group) > 0 {
				all = append(all, group)
			}
		}
	}
	if len(waiting) > 0 {
		all = append(all, waiting)
	}
	return all
}

func (b *bench) runOne(ctx context.Context, j job, failed map[string]bool) {
	if ctx.Err() != nil {
		return
	}
	run := runAlone
	if j.work.kind == server {
		run = runServer
	}
	others := beginForeign()
	v, err := run(ctx, j, b.scale)
	b.take(ctx, j, v, others.cores(), err, failed)
}

// runTogether runs processes at the same time that only sleep: what each uses of the CPU is its own.
func (b *bench) runTogether(ctx context.Context, group []job, failed map[string]bool) {
	results := make([]values, len(group))
	errs := make([]error, len(group))
	var all sync.WaitGroup
	for i, j := range group {
		all.Go(func() { results[i], errs[i] = runAlone(ctx, j, b.scale) })
	}
	all.Wait()
	for i, j := range group {
		b.take(ctx, j, results[i], 0, errs[i], failed)
	}
}

// take records a sample. A job that failed is not tried again; one failure fails the run.
func (b *bench) take(ctx context.Context, j job, v values, foreign float64, err error, failed map[string]bool) {
	switch {
	case ctx.Err() != nil:
	case err != nil:
		failed[j.String()] = true
		b.note(fmt.Errorf("%v: %w", j, err))
	default:
		b.samples[j.String()] = append(b.samples[j.String()], sample{v, foreign})
	}
}
